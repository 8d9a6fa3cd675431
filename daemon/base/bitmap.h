/* base/bitmap.h: a set of numbers below a bound, such as samples of a dataset.
 *
 * Memory comes page by page as numbers are added: a bit for each that could be, an eighth of a byte a sample at most,
 * and next to nothing while the set is small. The caller locks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct bitmap {
        uint64_t *words; /* NULL: holds nothing and cannot */
        uint64_t n_bits;
};

/* An empty set of numbers below `n_bits`. 0 or -ENOMEM. */
int bitmap_init(struct bitmap *bitmap, uint64_t n_bits);
void bitmap_fini(struct bitmap *bitmap);

/* Adds. Returns true if it was not there; false also for what is not below the bound. */
bool bitmap_add(struct bitmap *bitmap, uint64_t number);

/* Is it there? */
bool bitmap_has(const struct bitmap *bitmap, uint64_t number);
