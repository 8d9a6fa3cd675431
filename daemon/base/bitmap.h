/* base/bitmap.h: a set of numbers below a bound, such as samples of a dataset.
 *
 * Memory is used page by page as numbers are added: at most one bit for each possible number, and next to nothing while
 * the set is small. The caller locks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct bitmap {
        uint64_t *words; /* NULL: an empty set that cannot hold anything */
        uint64_t n_bits;
};

/* An empty set of numbers below `n_bits`. 0 or -ENOMEM. */
int bitmap_init(struct bitmap *bitmap, uint64_t n_bits);
void bitmap_fini(struct bitmap *bitmap);

/* Adds a number. Returns true if it was not in the set; false also for a number that is not below the bound. */
bool bitmap_add(struct bitmap *bitmap, uint64_t number);

/* Is the number in the set? */
bool bitmap_has(const struct bitmap *bitmap, uint64_t number);
