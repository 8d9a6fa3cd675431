/* augment/operations/blur/blur_weights.c: the normalised weights of a kernel, from float32 distances as torchvision has
 * them. */
#include "daemon/augment/operations/blur/blur.h"
#include "proto/order/making/order_draws.h"

#include <math.h>

/* What is below this share of the middle weight cannot be seen. */
#define LEAST_WEIGHT 0x1p-32

void blur_weigh(uint32_t n, float sigma, struct blur_weights *ret_weights) {
        float limit = (float)((n - 1) / (2 * sqrt(2.0))), step = n > 1 ? 2 * limit / (float)(n - 1) : 0;
        double unscaled[BLUR_REACH_MAX + 1], sum = 0;

        ret_weights->reach = 0;
        for (uint32_t k = 0; k <= n / 2; k++) {
                float ratio = (limit - step * (float)(n / 2 - k)) / sigma;

                unscaled[k] = k == 0 ? 1 : dlp_exponential(-(double)(ratio * ratio));
                if (unscaled[k] < LEAST_WEIGHT)
                        break;
                ret_weights->reach = k;
                sum += unscaled[k] * (k == 0 ? 1 : 2);
        }
        for (uint32_t k = 0; k <= ret_weights->reach; k++)
                ret_weights->of[k] = (float)(unscaled[k] / sum);
}
