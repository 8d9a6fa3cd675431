/* augment/operations/blur/blur_scalar.c: the loops in plain C. */
#include "daemon/augment/operations/blur/blur.h"

#include <math.h>

static void down(const float *weights, uint32_t reach, const uint8_t *const *rows, size_t n, float *sums) {
        for (size_t i = 0; i < n; i++) {
                float sum = 0;

                for (uint32_t k = reach; k > 0; k--)
                        sum += weights[k] * (float)(rows[reach - k][i] + rows[reach + k][i]);
                sums[i] = sum + weights[0] * (float)rows[reach][i];
        }
}

static void across(const float *weights, uint32_t reach, const float *sums, size_t step, size_t n, uint8_t *levels) {
        for (size_t i = 0; i < n; i++) {
                float sum = 0;

                for (uint32_t k = reach; k > 0; k--)
                        sum += weights[k] * (sums[(ptrdiff_t)i - (ptrdiff_t)(k * step)] + sums[i + k * step]);
                levels[i] = (uint8_t)lrintf(sum + weights[0] * sums[i]);
        }
}

const struct blur_loops blur_loops_scalar = { .down = down, .across = across };

const struct blur_loops *blur_loops_best(void) {
        const struct blur_loops *best = blur_loops_avx2();

        return best ? best : &blur_loops_scalar;
}
