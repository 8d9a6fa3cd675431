/* tests/support/torch_samplers.h: torch's RandomSampler and SubsetRandomSampler, and the draws of a generator that no
 * order takes, bit for bit. They prove the generator and the shuffle, on which the orders stand, against more of
 * torch's own numbers. */
#pragma once

#include "proto/order/shuffle.h"

/* torch.empty((), dtype=torch.int64).random_(): 0 .. 2^63-1. Two words. */
int64_t dlp_torch_random63(struct dlp_torch_random *random);

/* torch.rand((), dtype=torch.float32): [0, 1) in steps of 2^-24. One word. */
float dlp_torch_f32(struct dlp_torch_random *random);

/* torch.rand((), dtype=torch.float64): [0, 1) in steps of 2^-53. Two words. */
double dlp_torch_f64(struct dlp_torch_random *random);

/* torch.randint(low, high, ()): low <= value < high, where low < high (asserted). One word, or two for wide ranges. */
int64_t dlp_torch_randint(struct dlp_torch_random *random, int64_t low, int64_t high, enum dlp_torch_compat compat);

/* RandomSampler(range(n), replacement, num_samples, generator=random), run to its end. `table` is scratch of n elements
 * (contents do not matter); ret_indices takes n_samples. With n = 0, n_samples must be 0 (asserted). A sampler without
 * a generator of its own seeds a fresh one with dlp_torch_random63() of the default generator. */
void dlp_random_sampler(struct dlp_torch_random *random, uint64_t n, uint64_t n_samples, bool replacement,
                        enum dlp_torch_compat compat, void *table, uint64_t *ret_indices);

/* SubsetRandomSampler(subset, generator=random). `table` is scratch of n elements; ret_indices takes n. */
void dlp_subset_random_sampler(struct dlp_torch_random *random, const uint64_t *subset, uint64_t n,
                               enum dlp_torch_compat compat, void *table, uint64_t *ret_indices);
