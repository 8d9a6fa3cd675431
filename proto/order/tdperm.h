/* proto/order/tdperm.h: TDPERM-1, an order that needs no table.
 *
 * A permutation of 0 .. n-1 for each (seed, epoch), computed element by element: no memory, no time to make it, and a
 * resume at any position costs what its first element costs. The way back, from a sample to its position, costs the
 * same.
 *
 * A Feistel network of eight rounds permutes the smallest power of two that holds n (256 at least); a value that falls
 * outside is sent through the network again until it is inside, fewer than two passes on average for n > 128. The
 * rounds' keys are drawn from the seed and the epoch (proto/order/philox.h). Such a network is always an even
 * permutation, so one more drawn bit says whether the first two indices change places. The definition is frozen:
 * another one would get another name.
 *
 * It is not a cipher: somebody who chooses seeds and sees samples can predict the order. */
#pragma once

#include <stdint.h>

#define DLP_TDPERM_ROUNDS 8u

/* One permutation. Constant once it is made: any number of threads may ask it. */
struct dlp_tdperm {
        uint64_t n;
        uint64_t keys[DLP_TDPERM_ROUNDS];
        uint32_t high_bits, low_bits; /* how a value is cut into the two halves */
        uint32_t flip;                /* 1: indices 0 and 1 change places */
};

/* Prepares the permutation of n <= 2^63 elements; only 32 bits of `epoch` count. `stream` numbers the permutations of a
 * seed and an epoch, which are independent of each other: that of the order "tdperm" is 0. Some hundred nanoseconds. */
void dlp_tdperm_init(struct dlp_tdperm *tdperm, uint64_t seed, uint64_t epoch, uint64_t stream, uint64_t n);

/* The index at `position` < n. Some tens of nanoseconds. */
uint64_t dlp_tdperm_at(const struct dlp_tdperm *tdperm, uint64_t position);
