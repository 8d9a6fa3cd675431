#include "daemon/data/index/indexing_sort.h"

/* Short runs are sorted one by one, then two neighbours become one until there is only one. */

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/growing.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"

#define RUN_ITEMS 4096u /* sorted, or merged, between two looks at whether it is still wanted: a few milliseconds */

struct sorting {
        uint8_t *items;
        size_t n, item_bytes;
        int (*compare)(const void *, const void *, void *);
        void *userdata;
        struct growing left; /* of the two runs that are merged */
};

static uint8_t *item_at(const struct sorting *sorting, size_t idx) {
        return sorting->items + idx * sorting->item_bytes;
}

/* Makes one run of those in [begin, middle) and [middle, end). */
static int merge(struct sorting *sorting, size_t begin, size_t middle, size_t end) {
        size_t size = sorting->item_bytes, n_left = middle - begin, at_left = 0, at_right = middle, to = begin;
        int r;

        if (sorting->compare(item_at(sorting, middle - 1), item_at(sorting, middle), sorting->userdata) <= 0)
                return 0;
        r = growing_reserve(&sorting->left, n_left * size);
        if (r < 0)
                return r;
        memcpy(sorting->left.bytes, item_at(sorting, begin), n_left * size);
        while (at_left < n_left && r == 0) {
                const uint8_t *left = sorting->left.bytes + at_left * size;
                bool is_left = at_right == end ||
                               sorting->compare(left, item_at(sorting, at_right), sorting->userdata) <= 0;

                memcpy(item_at(sorting, to++), is_left ? left : item_at(sorting, at_right), size);
                at_left += is_left;
                at_right += !is_left;
                if (to % RUN_ITEMS == 0 && indexing_is_over())
                        r = -ECANCELED;
        }
        memcpy(item_at(sorting, to), sorting->left.bytes + at_left * size, (n_left - at_left) * size);
        return r;
}

static int sort_runs(const struct sorting *sorting) {
        for (size_t begin = 0; begin < sorting->n; begin += RUN_ITEMS) {
                size_t n_here = sorting->n - begin < RUN_ITEMS ? sorting->n - begin : RUN_ITEMS;

                if (begin > 0 && indexing_is_over())
                        return -ECANCELED;
                qsort_r(item_at(sorting, begin), n_here, sorting->item_bytes, sorting->compare, sorting->userdata);
        }
        return 0;
}

int indexing_sort(void *items, size_t n, size_t item_bytes, int (*compare)(const void *, const void *, void *),
                  void *userdata) {
        struct sorting sorting = {
                .items = items, .n = n, .item_bytes = item_bytes, .compare = compare, .userdata = userdata
        };
        int r = sort_runs(&sorting);

        for (size_t width = RUN_ITEMS; width < n && r == 0; width *= 2)
                for (size_t begin = 0; n - begin > width && r == 0; begin += 2 * width) {
                        size_t end = n - begin > 2 * width ? begin + 2 * width : n;

                        r = merge(&sorting, begin, begin + width, end);
                        if (end == n)
                                break;
                }
        growing_fini(&sorting.left);
        return r;
}
