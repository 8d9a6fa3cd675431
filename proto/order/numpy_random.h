/* order/numpy_random.h: numpy.random.RandomState, bit for bit, as far as orders of other programs need it.
 *
 * Its generator is the MT19937 that torch uses too, with the same seeding for seeds below 2^32. Only the rule for a
 * number below a limit differs: torch takes a word modulo the limit, numpy masks it and draws again until it fits. libc
 * only, no allocation, no locks; a generator belongs to one thread. */
#pragma once

#include <stdint.h>

#include "proto/order/torch_random.h"

/* numpy.random.RandomState(seed). */
void dlp_numpy_seed(struct dlp_torch_random *random, uint32_t seed);

/* RandomState.shuffle() of `table`, of which [0, end) is not final yet: makes the elements end-1 down to begin final.
 * Called first with end = the number of elements (at most 2^32), then with end = the former begin, and so on, down to
 * begin = 0: the parts add up to one shuffle. */
void dlp_numpy_shuffle(struct dlp_torch_random *random, uint32_t *table, uint64_t begin, uint64_t end);

/* The same for elements of 8 bytes. */
void dlp_numpy_shuffle_wide(struct dlp_torch_random *random, uint64_t *table, uint64_t begin, uint64_t end);
