#include "daemon/data/formats/listing/class_names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/keyed_hash.h"
#include "daemon/data/formats/name_order.h"
#include "daemon/data/index/index_layout.h"
#include "daemon/data/index/indexing_sort.h"

#define FIRST_PLACES 64u /* a power of two */

void class_names_fini(struct class_names *names) {
        growing_fini(&names->texts);
        growing_fini(&names->names);
        growing_fini(&names->places);
        growing_fini(&names->rows);
        growing_fini(&names->sorted);
}

size_t class_names_count(const struct class_names *names) {
        return names->names.n_bytes / sizeof(struct class_name);
}

static struct class_name *name_at(const struct class_names *names, size_t idx) {
        return (struct class_name *)(void *)names->names.bytes + idx;
}

static const char *class_names_text_at(const struct class_names *names, size_t idx) {
        return (const char *)names->texts.bytes + name_at(names, idx)->text;
}

/* ---- the names that were found --------------------------------------------------------------------------------- */

/* The place of this text in the table, or the empty one where it belongs. */
static uint32_t *class_names_place_of(const struct class_names *names, const char *text, size_t n) {
        uint32_t *places = (void *)names->places.bytes;
        size_t mask = names->places.n_bytes / sizeof(*places) - 1, at = keyed_hash(text, n) & mask;

        for (; places[at] != 0; at = (at + 1) & mask) {
                const char *other = class_names_text_at(names, places[at] - 1);

                if (strncmp(other, text, n) == 0 && other[n] == '\0')
                        break;
        }
        return &places[at];
}

static int grow_places(struct class_names *names) {
        size_t n_places = names->places.n_bytes / sizeof(uint32_t), n_names = class_names_count(names);
        struct growing before = names->places;

        if (2 * (n_names + 1) < n_places)
                return 0;
        names->places = (struct growing){ 0 };
        if (growing_append(&names->places, NULL, (n_places > 0 ? 2 * n_places : FIRST_PLACES) * sizeof(uint32_t)) < 0) {
                names->places = before;
                return -ENOMEM;
        }
        for (size_t i = 0; i < n_names; i++)
                *class_names_place_of(names, class_names_text_at(names, i),
                                      strlen(class_names_text_at(names, i))) = (uint32_t)i + 1;
        growing_fini(&before);
        return 0;
}

static int class_names_add_name(struct class_names *names, const char *text, size_t n) {
        struct class_name name = { .text = names->texts.n_bytes };
        int r;

        if (class_names_count(names) == INDEX_CLASSES_MAX)
                return -E2BIG;
        r = growing_append(&names->texts, text, n);
        if (r == 0)
                r = growing_append(&names->texts, "", 1);
        return r < 0 ? r : growing_append(&names->names, &name, sizeof(name));
}

int class_names_put(struct class_names *names, uint64_t row, const char *text, size_t n) {
        uint64_t n_rows = names->rows.n_bytes / sizeof(uint32_t);
        uint32_t *place;
        int r = grow_places(names);

        if (r < 0)
                return r;
        place = class_names_place_of(names, text, n);
        if (*place == 0) {
                r = class_names_add_name(names, text, n);
                if (r < 0)
                        return r;
                *place = (uint32_t)class_names_count(names);
        }
        if (n_rows <= row && growing_append(&names->rows, NULL, (row + 1 - n_rows) * sizeof(uint32_t)) < 0)
                return -ENOMEM;
        ((uint32_t *)(void *)names->rows.bytes)[row] = *place;
        return 0;
}

void class_names_forget(struct class_names *names, uint64_t row) {
        if (row < names->rows.n_bytes / sizeof(uint32_t))
                ((uint32_t *)(void *)names->rows.bytes)[row] = 0;
}

/* ---- their order ----------------------------------------------------------------------------------------------- */

static int class_names_compare(const void *a, const void *b, void *userdata) {
        const struct class_names *names = userdata;

        return name_compare(class_names_text_at(names, *(const uint32_t *)a),
                            class_names_text_at(names, *(const uint32_t *)b));
}

int class_names_sort(struct class_names *names) {
        size_t n = class_names_count(names);
        uint32_t *sorted;
        int r;

        growing_clear(&names->sorted);
        if (n == 0)
                return 0;
        if (growing_append(&names->sorted, NULL, n * sizeof(uint32_t)) < 0)
                return -ENOMEM;
        sorted = (void *)names->sorted.bytes;
        for (size_t i = 0; i < n; i++)
                sorted[i] = (uint32_t)i;
        r = indexing_sort(sorted, n, sizeof(*sorted), class_names_compare, names);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++)
                name_at(names, sorted[i])->label = (uint32_t)i;
        return 0;
}

const char *class_names_at(const struct class_names *names, size_t label) {
        return class_names_text_at(names, ((const uint32_t *)(const void *)names->sorted.bytes)[label]);
}

int32_t class_names_label(const struct class_names *names, uint64_t row) {
        uint32_t name = 0;

        if (row < names->rows.n_bytes / sizeof(name))
                name = ((const uint32_t *)(const void *)names->rows.bytes)[row];
        return name > 0 ? (int32_t)name_at(names, name - 1)->label : -1;
}
