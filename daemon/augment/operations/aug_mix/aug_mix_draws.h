/* augment/operations/aug_mix/aug_mix_draws.h: what aug_mix draws for a picture. Private to this folder.
 *
 * The step's plan draws a seed (noise.h). The streams of that seed, epoch 0 and step 0, are one for each purpose, so
 * that an argument moves no other draws than its own:
 *
 *      sample 0        the weights of the original and of the mixture, and then those of the chains
 *      sample 1 + i    chain i: its depth, below(3) + 1, which is drawn even if it is given; and for each change three
 *                      words: which one it is, below(9 or 13); how much, below(severity); and f32, at most 0.5 means
 *                      the negative sign, for those that have one
 *
 * Weights are of a Dirichlet distribution with equal alphas: gamma variates of Marsaglia and Tsang ("A simple method
 * for generating gamma variables", 2000), divided by their sum. A variate takes pairs of words, a normal number
 * (noise.h) and a uniform one, until a pair is accepted, mostly the first; if alpha is below 1, one more word. Only
 * additions, multiplications, divisions and square roots take part, so weights are the same on all machines. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/order/philox.h"

#define AUG_MIX_WIDTH_MAX 16u
#define AUG_MIX_DEPTH_MAX 16
#define AUG_MIX_BINS      10u /* the scale on which severity counts */

/* torchvision's, in its sequence. */
enum aug_mix_change {
        AUG_MIX_SHEAR_X,
        AUG_MIX_SHEAR_Y,
        AUG_MIX_TRANSLATE_X,
        AUG_MIX_TRANSLATE_Y,
        AUG_MIX_ROTATE,
        AUG_MIX_POSTERIZE,
        AUG_MIX_SOLARIZE,
        AUG_MIX_AUTO_CONTRAST,
        AUG_MIX_EQUALIZE,
        N_AUG_MIX_ALWAYS,
        AUG_MIX_BRIGHTNESS = N_AUG_MIX_ALWAYS, /* and those only if all are wanted */
        AUG_MIX_COLOR,
        AUG_MIX_CONTRAST,
        AUG_MIX_SHARPNESS,
        N_AUG_MIX_CHANGES
};

/* All are float32, as torch's are. */
struct aug_mix_weights {
        float original, chains[AUG_MIX_WIDTH_MAX];
};

void aug_mix_draw_weights(uint64_t seed, float alpha, uint32_t width, struct aug_mix_weights *ret_weights);

/* Begins the stream of a chain. Returns how many changes it has: depth, or, if that is 0, a number that is drawn. */
uint32_t aug_mix_begin_chain(uint64_t seed, uint32_t chain, uint32_t depth, struct dlp_philox *ret_philox);

struct aug_mix_draw {
        enum aug_mix_change change;
        uint32_t magnitude; /* 0 to severity - 1 */
        bool is_negative;
};

struct aug_mix_draw aug_mix_draw_change(struct dlp_philox *philox, bool all_ops, uint32_t severity);
