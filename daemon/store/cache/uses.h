/* store/cache/uses.h: when ranks will need what, as far as their orders say: what should stay when the cache is full.
 *
 * A rank's uses are a table: for each chunk, which of the rank's samples of this epoch needs it first. With how far the
 * rank is, and how long a sample takes, that is a time. Of a chunk that it needs no more in this epoch all that is
 * known is that the next epoch needs it, on average in the middle of it.
 *
 * With several jobs that share an origin, the chunk that all of them need last makes room (L. Belady's rule, over all
 * jobs): of chosen ones, as looking at all would take long. For one job that never removes anything that it still needs
 * in this epoch, which is the best that can be had. Any thread. */
#pragma once

#include <stdint.h>

#include "daemon/store/cache/cache.h"

struct cached_uses;

/* Is it worth while? The cache is full, and there are several jobs. n_bytes of memory are what a table takes. */
bool cached_wants_uses(struct cached *cached, uint64_t *ret_n_bytes);

/* The table of a rank, empty. NULL: no memory. It must be freed before the origin is given back. */
struct cached_uses *cached_uses_new(struct cached *cached);
void cached_uses_free(struct cached_uses *uses); /* NULL is fine */

/* Sample number `k` of the rank's epoch (the first is 0) needs this part of a file, as in cached_want(). In ascending
 * order of k. */
void cached_uses_add(struct cached_uses *uses, const char *folder, const char *path, uint64_t offset, uint64_t n_bytes,
                     uint32_t k);

/* The rank is at sample `k` of n_samples, and a sample takes so long. */
void cached_uses_at(struct cached_uses *uses, uint32_t k, uint32_t n_samples, uint64_t sample_ns);
