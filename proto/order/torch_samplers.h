/* order/torch_samplers.h: torch's RandomSampler and SubsetRandomSampler, bit for bit. libc only, no allocation, no
 * locks. */
#pragma once

#include "proto/order/shuffle.h"

/* RandomSampler(range(n), replacement, num_samples, generator=random), run to its end. `table` is scratch of n elements
 * (contents do not matter); ret_indices takes n_samples. With n = 0, n_samples must be 0 (asserted). A sampler without
 * a generator of its own seeds a fresh one with dlp_torch_random63() of the default generator. */
void dlp_random_sampler(struct dlp_torch_random *random, uint64_t n, uint64_t n_samples, bool replacement,
                        enum dlp_torch_compat compat, void *table, uint64_t *ret_indices);

/* SubsetRandomSampler(subset, generator=random). `table` is scratch of n elements; ret_indices takes n. */
void dlp_subset_random_sampler(struct dlp_torch_random *random, const uint64_t *subset, uint64_t n,
                               enum dlp_torch_compat compat, void *table, uint64_t *ret_indices);
