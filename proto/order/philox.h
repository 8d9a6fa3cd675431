/* proto/order/philox.h: random numbers that belong to a sample.
 *
 * Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", 2011) turns a counter into
 * four random words. The counter holds epoch, sample and step of the pipeline, the key is the seed: so what a sample's
 * step draws depends on nothing else, neither on the number of workers, ranks or jobs nor on what was drawn before. No
 * state is kept, and a sample can be made again alone. */
#pragma once

#include <stdint.h>

/* A stream of words for one (seed, epoch, sample, step). Lives on the stack. */
struct dlp_philox {
        uint32_t key[2];     /* seed, low word first */
        uint32_t counter[4]; /* step << 16 | block, epoch, sample low, sample high */
        uint32_t words[4];   /* of the current block */
        unsigned n_left;     /* of them not yet handed out */
};

/* Four random words for a counter and a key. */
void dlp_philox_block(const uint32_t counter[4], const uint32_t key[2], uint32_t ret_words[4]);

/* `step` numbers the step within the pipeline; 0xffff is taken (the permutations of orders, tdperm.h). */
void dlp_philox_init(struct dlp_philox *philox, uint64_t seed, uint32_t epoch, uint64_t sample, uint16_t step);

/* The seed of another stream of draws: `draws` 0 is the seed itself; any other number gives an independent seed, for
 * callers that want several views of the same samples. */
uint64_t dlp_philox_seed(uint64_t seed, uint64_t draws);

uint32_t dlp_philox_u32(struct dlp_philox *philox);

/* Uniform in [0, 1): 24 bits of one word. */
float dlp_philox_f32(struct dlp_philox *philox);

/* Uniform in [0, 1): 53 bits of two words, the first one the higher. */
double dlp_philox_f64(struct dlp_philox *philox);

/* Uniform below n (1 <= n), one word. The bias is below n / 2^32. */
uint32_t dlp_philox_below(struct dlp_philox *philox, uint32_t n);
