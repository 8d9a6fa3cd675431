/* augment/noise.h: random numbers for pixels, of which a picture needs more than its plan can hold. Private to this
 * floor.
 *
 * A step draws a seed of 64 bits in its plan, two words, the first one the higher. Whoever changes the pixels draws
 * from a stream of this seed: number 0 of epoch 0, sample 0, step 0 comes first. So the pixels of a sample are the same
 * wherever it is made. */
#pragma once

#include "proto/order/philox.h"

/* A seed for an operation. */
uint64_t noise_seed(struct dlp_philox *philox);

/* The stream of an operation's seed. */
void noise_begin(uint64_t seed, struct dlp_philox *ret_philox);

/* Bytes of a stream's words, the lowest of a word first. */
struct noise_bytes {
        struct dlp_philox *philox;
        uint32_t word;
        unsigned n_left; /* of the word; 0 at first */
};

uint8_t noise_byte(struct noise_bytes *bytes);

/* A number of the standard normal distribution, from one word: the quantile of (word + 1/2) / 2^32, in float64, rounded
 * to float32. Never beyond 6.4. The same on all machines. */
float noise_normal(struct dlp_philox *philox);
float noise_of_word(uint32_t word);

/* The quantile of the normal distribution at p, 0 < p < 1: Wichura's algorithm AS 241, which errs by 1e-16 of the
 * result. */
double noise_quantile(double p);
