/* augment/steps/policies/policies.h: what the steps of this folder choose from: torchvision's automatic augmentations,
 * whose tables and magnitudes are those of its transforms.v2.
 *
 * Each of them does one change after the other. A change is a warp, or an operation in place; the amount follows from a
 * magnitude, a number of a scale with equal distances, and for some its sign is drawn. As in torchvision, they are for
 * pictures alone: with masks, boxes or points they are refused. */
#pragma once

#include "daemon/augment/step.h"
#include "daemon/augment/steps/policies/scale.h"
#include "daemon/augment/warp/warp_moves.h"

enum policy_change {
        POLICY_IDENTITY,
        POLICY_SHEAR_X,
        POLICY_SHEAR_Y,
        POLICY_TRANSLATE_X,
        POLICY_TRANSLATE_Y,
        POLICY_ROTATE,
        POLICY_BRIGHTNESS,
        POLICY_COLOR,
        POLICY_CONTRAST,
        POLICY_SHARPNESS,
        POLICY_POSTERIZE,
        POLICY_SOLARIZE,
        POLICY_AUTO_CONTRAST,
        POLICY_EQUALIZE,
        POLICY_INVERT,
        N_POLICY_CHANGES
};

/* The changes up to POLICY_EQUALIZE, from which rand_augment and trivial_augment_wide draw. */
#define N_POLICY_DRAWN 14u

/* How far the changes go at the end of their scales. */
struct policy_reach {
        double shear, rotate, blend; /* tangent; degrees; distance of a factor from 1 */
        double translate;            /* pixels, or, if it is relative, a part of the picture's side */
        bool is_relative;
        uint32_t n_bits; /* that posterize takes away */
};

extern const struct policy_reach POLICY_NARROW; /* of AutoAugment and RandAugment */
extern const struct policy_reach POLICY_WIDE;   /* of TrivialAugmentWide */

/* Does one change, downwards if it has a sign. At most one warp or one operation. Errors are those of fold_warp(). */
int policy_change(struct fold *fold, enum policy_change change, const struct policy_reach *reach,
                  struct policy_magnitude magnitude, bool is_negative, const struct warp_look *look, struct why *why);

/* Is the sign negative? Draws one f32. */
bool policy_sign(struct dlp_philox *philox);

/* -EINVAL for what is not a picture. `name` is the step's. */
int policy_begin(const struct fold *fold, const char *name, struct why *why);

/* convert() of such a step. -EINVAL. */
int policy_check(const struct value *fill, const struct conversion *conversion, struct why *why);

#define ARGUMENT_COUNT(name, initial, least, most)                                                                     \
        { ARGUMENT_LIST, name, initial, least, most, .counts = 1u << 1, .is_whole = true, .form = "N" }

/* Numbers on a scale: the fewest that have two ends, and more than anybody wants. */
#define ARGUMENT_BINS ARGUMENT_COUNT("num_magnitude_bins", "31", 2, 1000)
