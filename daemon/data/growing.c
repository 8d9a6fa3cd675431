#include "daemon/data/growing.h"

/* Each time it grows by half: a million small appends cost a few dozen reallocations, and little memory is unused. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/index/indexing.h"

static int growing_grow(struct growing *growing, size_t n_wanted) {
        size_t capacity = growing->capacity + growing->capacity / 2;
        struct indexing *payer = growing->bytes ? growing->payer : indexing_joined();
        uint8_t *bytes;

        if (capacity < n_wanted)
                capacity = n_wanted;
        if (capacity < 4096)
                capacity = 4096;
        if (indexing_pay(payer, capacity - growing->capacity) < 0)
                return -ENOMEM;
        bytes = realloc(growing->bytes, capacity);
        if (!bytes) {
                indexing_pay_back(payer, capacity - growing->capacity);
                return -ENOMEM;
        }
        growing->bytes = bytes;
        growing->payer = payer && payer->budget ? payer : NULL;
        growing->capacity = capacity;
        return 0;
}

int growing_append(struct growing *growing, const void *bytes, size_t n_bytes) {
        int r;

        if (n_bytes == 0)
                return 0;
        if (n_bytes > SIZE_MAX / 4 - growing->n_bytes)
                return -ENOMEM;
        if (n_bytes > growing->capacity - growing->n_bytes) {
                r = growing_grow(growing, growing->n_bytes + n_bytes);
                if (r < 0)
                        return r;
        }
        if (bytes)
                memcpy(growing->bytes + growing->n_bytes, bytes, n_bytes);
        else
                memset(growing->bytes + growing->n_bytes, 0, n_bytes);
        growing->n_bytes += n_bytes;
        return 0;
}

int growing_reserve(struct growing *growing, size_t n_bytes) {
        if (growing->bytes && n_bytes <= growing->capacity)
                return 0;
        return n_bytes > SIZE_MAX / 4 ? -ENOMEM : growing_grow(growing, n_bytes);
}

void growing_clear(struct growing *growing) {
        growing->n_bytes = 0;
}

void growing_fini(struct growing *growing) {
        free(growing->bytes);
        indexing_pay_back(growing->payer, growing->capacity);
        *growing = (struct growing){ 0 };
}
