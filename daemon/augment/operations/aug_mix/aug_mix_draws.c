#include "daemon/augment/operations/aug_mix/aug_mix_draws.h"

#include <math.h>

#include "daemon/augment/noise.h"
#include "proto/order/making/order_draws.h"

/* ---- weights --------------------------------------------------------------------------------------------------- */

static double aug_mix_draws_logarithm(double x) {
        return x > 1 ? -dlp_logarithm(1 / x) : dlp_logarithm(x);
}

/* In (0, 1). */
static double aug_mix_draws_open_share(struct dlp_philox *philox) {
        return (dlp_philox_u32(philox) + 0.5) * 0x1p-32;
}

#define TRIES_MAX 64 /* one in twenty pairs is not accepted, so this many never are */

/* The logarithm of a gamma variate, alpha at least 1. */
static double draw_large(double alpha, struct dlp_philox *philox) {
        double d = alpha - 1.0 / 3, c = 1 / sqrt(9 * d);

        for (int i = 0; i < TRIES_MAX; i++) {
                double normal = (double)noise_of_word(dlp_philox_u32(philox)), root = 1 + c * normal;
                double u = aug_mix_draws_open_share(philox), log_cube;

                if (root <= 0)
                        continue;
                log_cube = 3 * aug_mix_draws_logarithm(root);
                if (aug_mix_draws_logarithm(u) < 0.5 * normal * normal + d - d * root * root * root + d * log_cube)
                        return aug_mix_draws_logarithm(d) + log_cube;
        }
        return aug_mix_draws_logarithm(d);
}

/* Of an alpha below 1 the variate may be smaller than any number, its logarithm is not. */
static double draw_log_gamma(double alpha, struct dlp_philox *philox) {
        double large = draw_large(alpha < 1 ? alpha + 1 : alpha, philox);

        return alpha < 1 ? large + aug_mix_draws_logarithm(aug_mix_draws_open_share(philox)) / alpha : large;
}

#define FAR_BELOW (-700.0) /* dlp_exponential(); nothing of it is left in a share */

static void draw_shares(double alpha, uint32_t n, struct dlp_philox *philox, float *ret_shares) {
        double logs[AUG_MIX_WIDTH_MAX], most = -INFINITY, sum = 0;

        for (uint32_t i = 0; i < n; i++) {
                logs[i] = draw_log_gamma(alpha, philox);
                most = logs[i] > most ? logs[i] : most;
        }
        for (uint32_t i = 0; i < n; i++) {
                logs[i] = logs[i] - most < FAR_BELOW ? 0 : dlp_exponential(logs[i] - most);
                sum += logs[i];
        }
        for (uint32_t i = 0; i < n; i++)
                ret_shares[i] = (float)(logs[i] / sum);
}

void aug_mix_draw_weights(uint64_t seed, float alpha, uint32_t width, struct aug_mix_weights *ret_weights) {
        struct dlp_philox philox;
        float shares[2];

        noise_begin(seed, &philox);
        draw_shares((double)alpha, 2, &philox, shares);
        draw_shares((double)alpha, width, &philox, ret_weights->chains);
        ret_weights->original = shares[0];
        for (uint32_t i = 0; i < width; i++)
                ret_weights->chains[i] *= shares[1];
}

/* ---- chains ---------------------------------------------------------------------------------------------------- */

uint32_t aug_mix_begin_chain(uint64_t seed, uint32_t chain, uint32_t depth, struct dlp_philox *ret_philox) {
        uint32_t drawn;

        dlp_philox_init(ret_philox, seed, 0, 1 + (uint64_t)chain, 0);
        drawn = 1 + dlp_philox_below(ret_philox, 3);
        return depth > 0 ? depth : drawn;
}

struct aug_mix_draw aug_mix_draw_change(struct dlp_philox *philox, bool all_ops, uint32_t severity) {
        struct aug_mix_draw draw;

        draw.change = (enum aug_mix_change)dlp_philox_below(philox, all_ops ? N_AUG_MIX_CHANGES : N_AUG_MIX_ALWAYS);
        draw.magnitude = dlp_philox_below(philox, severity);
        draw.is_negative = dlp_philox_f32(philox) <= 0.5f;
        return draw;
}
