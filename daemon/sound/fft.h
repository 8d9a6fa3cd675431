/* sound/fft.h: what a Fourier transform of real numbers of one length needs: its factors, and its roots of unity.
 *
 * Why not a library: those of Debian whose licence fits (KISS FFT) transform one frame after the other without vectors
 * of AVX, and a mel spectrogram is to cost a third of torchaudio's, which has MKL. Frames of a sound are many and
 * independent, so that LANES of them are transformed at once, one in each lane of a vector: then no step of the
 * transform ever moves a number to another lane, and any factor of the length is as simple as 2.
 *
 * A plan does not change once it is made: any number of threads may use it (sound/code.h does). */
#pragma once

#include <stdint.h>

#include "proto/base/why.h"

#define FFT_LENGTH_MAX  16384u
#define FFT_FACTORS_MAX 16u
#define FFT_PRIME_MAX   1021u /* the largest prime factor: its square is what it costs */

/* A step of the transform, after Stockham: `count` butterflies of `factor` numbers for each of `stride` columns. */
struct fft_pass {
        uint32_t factor;
        uint32_t count;      /* what is left of the length, without the factor */
        uint32_t stride;     /* the product of the factors before */
        const float *twists; /* factor - 1 complex numbers for each butterfly: cosine, sine */
        const float *roots;  /* `factor` complex numbers: of factors that have no butterfly of their own, else NULL */
};

struct fft {
        uint32_t n;         /* real numbers of a frame */
        uint32_t n_complex; /* numbers that are transformed: half of n, or n if that is odd */
        uint32_t n_passes;
        struct fft_pass passes[FFT_FACTORS_MAX];
        const float *halves; /* of an even n: the roots that take the halves apart; n / 4 + 1 complex numbers */
        float *memory;       /* of all of them */
};

/* The largest prime factor of n >= 1; 1 of 1. */
uint32_t fft_largest_prime(uint32_t n);

/* Plans frames of n real numbers, 1 to FFT_LENGTH_MAX (asserted), without a prime factor above FFT_PRIME_MAX. -ENOMEM.
 */
int fft_init(struct fft *fft, uint32_t n, struct why *why);

/* Takes one that is all zeroes. */
void fft_fini(struct fft *fft);
