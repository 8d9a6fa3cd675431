/* augment/operations/blur/blur.h: the two loops of a blur by a symmetric kernel, in several forms. Private to this
 * floor.
 *
 * A kernel has 2 * reach + 1 weights: weights[0] is that of the middle, weights[k] that of the two at distance k. A sum
 * begins with 0 and adds, from k = reach down to 1, weights[k] * (the two values' sum), and weights[0] * (the middle
 * value) at last; each operation is rounded to float32, and none are fused. All forms give the same bits. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define BLUR_KERNEL_MAX 255u /* weights along an axis */
#define BLUR_REACH_MAX  (BLUR_KERNEL_MAX / 2)

struct blur_weights {
        uint32_t reach; /* at most that of the kernel: weights that are too small to be seen are left out */
        float of[BLUR_REACH_MAX + 1];
};

/* Of a kernel of n, an odd number: exp(-k^2 / (2 sigma^2)), divided by their sum. */
void blur_weigh(uint32_t n, float sigma, struct blur_weights *ret_weights);

struct blur_loops {
        /* Sums n columns of 2 * reach + 1 rows of levels. */
        void (*down)(const float *weights, uint32_t reach, const uint8_t *const *rows, size_t n, float *sums);

        /* Sums along a row, whose neighbours are `step` numbers apart, and rounds to levels, half to even. The row has
         * reach * step numbers before sums[0] and after sums[n - 1]. */
        void (*across)(const float *weights, uint32_t reach, const float *sums, size_t step, size_t n, uint8_t *levels);
};

extern const struct blur_loops blur_loops_scalar;

/* NULL if this machine has no such instructions. */
const struct blur_loops *blur_loops_avx2(void);

/* The best that this machine has. */
const struct blur_loops *blur_loops_best(void);
