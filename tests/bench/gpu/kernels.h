/* gpu/kernels.h: what a trainer does with a GPU, for measurements beside it: it computes, and it reads what it got.
 *
 * Written as the product's own kernels are (client/cuda/kernels/kernel.h). kernels.ptx is the image; `make kernels`
 * makes it. */
#pragma once

#include <assert.h>
#include <stdint.h>

#define BENCH_THREADS 256u
#define BENCH_TILE    16u /* rows and columns of a block */

/* c = a * b, matrices of n x n. Grid: n / BENCH_TILE in x and y. It keeps all multiprocessors busy, and the less of
 * them it gets the longer it takes. */
struct bench_matmul {
        const float *a, *b;
        float *c;
        uint32_t n; /* a multiple of BENCH_TILE */
        uint32_t zero;
};
static_assert(sizeof(struct bench_matmul) == 32, "the device reads what the host wrote");

/* *sum += each word times an odd number that is of its place, modulo 2^32: words that change their places are seen. */
struct bench_sum {
        const uint32_t *words;
        uint32_t *sum;
        uint64_t n_words;
};
static_assert(sizeof(struct bench_sum) == 24, "the device reads what the host wrote");

static inline uint32_t bench_sum_factor(uint64_t idx) {
        return (uint32_t)idx * 2 + 1;
}

/* X(symbol, parameters) */
#define BENCH_KERNELS(X)                                                                                               \
        X(dlk_bench_matmul, struct bench_matmul)                                                                       \
        X(dlk_bench_sum, struct bench_sum)
