/* augment/noise.h: random numbers for pixels, of which a picture needs more than its plan can hold. Private to this
 * floor.
 *
 * A step draws a seed of 64 bits in its plan, two words, the first one the higher. Whoever changes the pixels draws
 * from a stream of this seed: number 0 of epoch 0, sample 0, step 0 comes first. So the pixels of a sample are the same
 * wherever it is made. */
#pragma once

#include <stddef.h>

#include "proto/order/philox.h"

/* A seed for an operation. */
uint64_t noise_seed(struct dlp_philox *philox);

/* The stream of an operation's seed. */
void noise_begin(uint64_t seed, struct dlp_philox *ret_philox);

/* The stream's next n words: those of dlp_philox_u32(), sooner. */
void noise_words(struct dlp_philox *philox, uint32_t *words, size_t n);

/* Whole blocks of a stream of which no word is left over, from its counter on, which stays as it is: as many of n as
 * there are instructions for. Returns how many; 0 without AVX2. */
size_t noise_blocks_avx2(const struct dlp_philox *philox, uint32_t *words, size_t n_blocks);

#define NOISE_WORDS 64u

/* Bytes of a stream's words, the lowest of a word first. */
struct noise_bytes {
        struct dlp_philox *philox;
        uint64_t n_words;            /* that are still to be taken from the stream */
        unsigned n_left;             /* bytes of `words`, the last ones */
        uint32_t words[NOISE_WORDS]; /* aligned to the end */
};

/* For n_bytes bytes; the stream then continues with a new word. */
void noise_bytes_begin(struct dlp_philox *philox, uint64_t n_bytes, struct noise_bytes *ret_bytes);
void noise_bytes_more(struct noise_bytes *bytes);

static inline uint8_t noise_byte(struct noise_bytes *bytes) {
        unsigned at;

        if (bytes->n_left == 0)
                noise_bytes_more(bytes);
        at = 4 * NOISE_WORDS - bytes->n_left--;
        return (uint8_t)(bytes->words[at / 4] >> at % 4 * 8);
}

/* A number of the standard normal distribution, from one word: the quantile of (word + 1/2) / 2^32, in float64, rounded
 * to float32. Never beyond 6.4. The same on all machines. */
float noise_of_word(uint32_t word);

/* The same of n words each; the second one of a stream's next n words. */
void noise_of_words(const uint32_t *words, size_t n, float *ret_numbers);
void noise_normals(struct dlp_philox *philox, size_t n, float *ret_numbers);
