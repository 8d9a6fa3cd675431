/* proto/order/shuffle.h: which sample comes when.
 *
 * An order is a pure function of (seed, epoch, position). The positions of an epoch are global: rank r of W takes r,
 * r + W, r + 2W, ...; the sample at position p is order[p mod n]. With order = torch.randperm(n) seeded with
 * seed + epoch that is exactly torch's DistributedSampler: the repetition by which it evens out the ranks is the
 * modulo. The order "tdperm" (proto/order/tdperm.h) is ours and needs no table. Without shuffling, order[i] = i.
 *
 * It lies on the lowest floor because three programs must agree on it: the daemon that fills the batches, `dlctl order`
 * that prints them without a daemon, and the client that counts them and goes on after a resume.
 *
 * All of it is defined for n = 0, and free of overflow for n <= DLP_SAMPLES_MAX and world <= DLP_WORLD_MAX.
 * libc only, no allocation, no locks; a struct dlp_shuffle belongs to one thread.
 *
 * To come: the weighted sampler. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/order/torch_random.h"

/* ---- which order -------------------------------------------------------------------------------------------- */

/* How an epoch is shuffled. The values travel in messages and tokens. */
enum dlp_order_kind {
        DLP_ORDER_TORCH = 0,  /* torch.randperm: a table, made from its beginning */
        DLP_ORDER_TDPERM = 1, /* computed element by element */
};

/* "torch", "tdperm"; NULL for a value that is none of them. Static text. */
const char *dlp_order_kind_name(enum dlp_order_kind kind);

/* The other way round. Returns 0 or -EINVAL. */
int dlp_order_kind_from_name(const char *name, enum dlp_order_kind *ret_kind);

/* ---- how the samples are dealt to the ranks ------------------------------------------------------------------ */

/* What happens if the world does not divide the number of samples. The values travel in messages and tokens. */
enum dlp_partition {
        DLP_PARTITION_PAD = 0,   /* all ranks get ceil(n / W); the last ones repeat samples (DistributedSampler) */
        DLP_PARTITION_DROP = 1,  /* all ranks get floor(n / W); the rest is left out (its drop_last=True) */
        DLP_PARTITION_EXACT = 2, /* each sample once; ranks differ by one at most (for evaluation) */
};

/* "pad", "drop", "exact"; NULL for a value that is none of them. Static text. */
const char *dlp_partition_name(enum dlp_partition partition);

/* The other way round. Returns 0 or -EINVAL. */
int dlp_partition_from_name(const char *name, enum dlp_partition *ret_partition);

/* Samples that `rank` gets in an epoch of n samples; 0 if rank >= world. For an epoch that is resumed at a global
 * position, n is what is left of it: n - position. */
uint64_t dlp_order_rank_samples(uint64_t n, uint32_t world, uint32_t rank, enum dlp_partition partition);

/* Batches that are made of a rank's samples: an incomplete last one counts unless drop_last. 0 if batch = 0. */
uint64_t dlp_order_rank_batches(uint64_t samples, uint32_t batch, bool drop_last);

/* Global position of a rank's sample number `step_in_rank` (0-based, not above DLP_SAMPLES_MAX), counted from where the
 * epoch begins: from its start, or from the position at which it is resumed. That is all there is to a resume at
 * another world size or batch size: the ranks deal out anew what is left. */
uint64_t dlp_order_position(uint64_t step_in_rank, uint32_t world, uint32_t rank);

/* ---- randperm, in steps -------------------------------------------------------------------------------------- */

/* From here on torch >= 2.6 shuffles with 64-bit draws, in a way whose result is final only at the end. */
#define DLP_SHUFFLE_WIDE_FROM 214748364u

/* What an epoch's generator is seeded with. Only 32 bits count for torch, so (seed 0, epoch 1) is (seed 1, epoch 0),
 * and this number with n and the compatibility names a permutation completely. */
uint32_t dlp_order_seed(uint64_t seed, uint64_t epoch);

/* Bytes of one table element for n samples: 4, or 8 once indices need more than 32 bits. */
size_t dlp_shuffle_element_bytes(uint64_t n);

/* torch.randperm(n), made a few elements at a time so that the first batch need not wait for the last element.
 *
 * The table is the caller's: n elements of dlp_shuffle_element_bytes(n), aligned to them, ALL ZERO at the start (fresh
 * mmap or calloc: nothing is written before it is needed). Elements below `n_final` never change again. */
struct dlp_shuffle {
        struct dlp_torch_random *random; /* the caller's, seeded; n - 1 words are drawn (2n in the wide algorithm) */
        union {
                uint32_t *u32;
                uint64_t *u64;
        } table;
        uint64_t n;
        uint64_t n_steps;       /* steps made so far, <= n */
        uint64_t n_final;       /* leading elements that are final */
        bool inside_out;        /* torch >= 2.6 at large n */
        bool elements_are_wide; /* u64 */
};

/* Prepares; draws nothing. `table` may be NULL if n = 0. */
void dlp_shuffle_init(struct dlp_shuffle *shuffle, struct dlp_torch_random *random, void *table, uint64_t n,
                      enum dlp_torch_compat compat);

/* Makes up to n_steps more steps, each a few tens of nanoseconds. Returns how many leading elements are final now; n
 * means it is done. In the wide algorithm the answer stays 0 until then. */
uint64_t dlp_shuffle_advance(struct dlp_shuffle *shuffle, uint64_t n_steps);

/* Element i < n of a table whose element i is final. Any thread that knows it is. */
static inline uint64_t dlp_shuffle_element(const void *table, uint64_t n, uint64_t i) {
        return dlp_shuffle_element_bytes(n) == 4 ? ((const uint32_t *)table)[i] : ((const uint64_t *)table)[i];
}

/* ---- torch's other samplers ---------------------------------------------------------------------------------- */

/* RandomSampler(range(n), replacement, num_samples, generator=random), run to its end. `table` is scratch of n elements
 * (contents do not matter); ret_indices takes n_samples. With n = 0, n_samples must be 0 (asserted). A sampler without
 * a generator of its own seeds a fresh one with dlp_torch_random63() of the default generator. */
void dlp_random_sampler(struct dlp_torch_random *random, uint64_t n, uint64_t n_samples, bool replacement,
                        enum dlp_torch_compat compat, void *table, uint64_t *ret_indices);

/* SubsetRandomSampler(subset, generator=random). `table` is scratch of n elements; ret_indices takes n. */
void dlp_subset_random_sampler(struct dlp_torch_random *random, const uint64_t *subset, uint64_t n,
                               enum dlp_torch_compat compat, void *table, uint64_t *ret_indices);
