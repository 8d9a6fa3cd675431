/* order/shuffle.h: torch.randperm(n) in steps, so that the first elements are ready before the last one is made.
 *
 * All of it is defined for n = 0, and free of overflow for n <= DLP_SAMPLES_MAX. libc only, no allocation, no locks; a
 * struct dlp_shuffle belongs to one thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/order/torch_random.h"

/* From here on torch >= 2.6 shuffles with 64-bit draws, in a way whose result is final only at the end. */
#define DLP_SHUFFLE_WIDE_FROM 214748364u

/* The seed of an epoch's generator. torch uses only 32 bits of it, so (seed 0, epoch 1) equals (seed 1, epoch 0), and
 * this number, n and the compatibility together identify a permutation. */
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
