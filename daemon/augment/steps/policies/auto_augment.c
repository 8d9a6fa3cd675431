/* augment/steps/policies/auto_augment.c: torchvision's AutoAugment. Draws five words: which of the policy's 25 pairs of
 * changes, below(25); then for each of the two f32, at most its probability means yes, and f32, at most 0.5 means the
 * negative sign, for those that have one. */
#include "daemon/augment/steps/policies/policies.h"
#include "daemon/augment/steps/warps/warps.h"

enum {
        POLICY,
        INTERPOLATION,
        FILL
};

enum {
        IMAGENET,
        CIFAR10,
        SVHN,
        N_POLICIES
};

static const char *const POLICY_NAMES[N_POLICIES] = { "imagenet", "cifar10", "svhn" };

#define N_PAIRS 25u
#define N_BINS  10u /* of the magnitudes */

struct chance {
        enum policy_change change;
        float probability;
        uint32_t magnitude; /* 0 for changes without one */
};

/* Cubuk et al., AutoAugment: learning augmentation strategies from data (2019), as in torchvision. */
static const struct chance PAIRS[N_POLICIES][N_PAIRS][2] = {
        [IMAGENET] = {
                { { POLICY_POSTERIZE, 0.4f, 8 }, { POLICY_ROTATE, 0.6f, 9 } },
                { { POLICY_SOLARIZE, 0.6f, 5 }, { POLICY_AUTO_CONTRAST, 0.6f, 0 } },
                { { POLICY_EQUALIZE, 0.8f, 0 }, { POLICY_EQUALIZE, 0.6f, 0 } },
                { { POLICY_POSTERIZE, 0.6f, 7 }, { POLICY_POSTERIZE, 0.6f, 6 } },
                { { POLICY_EQUALIZE, 0.4f, 0 }, { POLICY_SOLARIZE, 0.2f, 4 } },
                { { POLICY_EQUALIZE, 0.4f, 0 }, { POLICY_ROTATE, 0.8f, 8 } },
                { { POLICY_SOLARIZE, 0.6f, 3 }, { POLICY_EQUALIZE, 0.6f, 0 } },
                { { POLICY_POSTERIZE, 0.8f, 5 }, { POLICY_EQUALIZE, 1.0f, 0 } },
                { { POLICY_ROTATE, 0.2f, 3 }, { POLICY_SOLARIZE, 0.6f, 8 } },
                { { POLICY_EQUALIZE, 0.6f, 0 }, { POLICY_POSTERIZE, 0.4f, 6 } },
                { { POLICY_ROTATE, 0.8f, 8 }, { POLICY_COLOR, 0.4f, 0 } },
                { { POLICY_ROTATE, 0.4f, 9 }, { POLICY_EQUALIZE, 0.6f, 0 } },
                { { POLICY_EQUALIZE, 0.0f, 0 }, { POLICY_EQUALIZE, 0.8f, 0 } },
                { { POLICY_INVERT, 0.6f, 0 }, { POLICY_EQUALIZE, 1.0f, 0 } },
                { { POLICY_COLOR, 0.6f, 4 }, { POLICY_CONTRAST, 1.0f, 8 } },
                { { POLICY_ROTATE, 0.8f, 8 }, { POLICY_COLOR, 1.0f, 2 } },
                { { POLICY_COLOR, 0.8f, 8 }, { POLICY_SOLARIZE, 0.8f, 7 } },
                { { POLICY_SHARPNESS, 0.4f, 7 }, { POLICY_INVERT, 0.6f, 0 } },
                { { POLICY_SHEAR_X, 0.6f, 5 }, { POLICY_EQUALIZE, 1.0f, 0 } },
                { { POLICY_COLOR, 0.4f, 0 }, { POLICY_EQUALIZE, 0.6f, 0 } },
                { { POLICY_EQUALIZE, 0.4f, 0 }, { POLICY_SOLARIZE, 0.2f, 4 } },
                { { POLICY_SOLARIZE, 0.6f, 5 }, { POLICY_AUTO_CONTRAST, 0.6f, 0 } },
                { { POLICY_INVERT, 0.6f, 0 }, { POLICY_EQUALIZE, 1.0f, 0 } },
                { { POLICY_COLOR, 0.6f, 4 }, { POLICY_CONTRAST, 1.0f, 8 } },
                { { POLICY_EQUALIZE, 0.8f, 0 }, { POLICY_EQUALIZE, 0.6f, 0 } },
        },
        [CIFAR10] = {
                { { POLICY_INVERT, 0.1f, 0 }, { POLICY_CONTRAST, 0.2f, 6 } },
                { { POLICY_ROTATE, 0.7f, 2 }, { POLICY_TRANSLATE_X, 0.3f, 9 } },
                { { POLICY_SHARPNESS, 0.8f, 1 }, { POLICY_SHARPNESS, 0.9f, 3 } },
                { { POLICY_SHEAR_Y, 0.5f, 8 }, { POLICY_TRANSLATE_Y, 0.7f, 9 } },
                { { POLICY_AUTO_CONTRAST, 0.5f, 0 }, { POLICY_EQUALIZE, 0.9f, 0 } },
                { { POLICY_SHEAR_Y, 0.2f, 7 }, { POLICY_POSTERIZE, 0.3f, 7 } },
                { { POLICY_COLOR, 0.4f, 3 }, { POLICY_BRIGHTNESS, 0.6f, 7 } },
                { { POLICY_SHARPNESS, 0.3f, 9 }, { POLICY_BRIGHTNESS, 0.7f, 9 } },
                { { POLICY_EQUALIZE, 0.6f, 0 }, { POLICY_EQUALIZE, 0.5f, 0 } },
                { { POLICY_CONTRAST, 0.6f, 7 }, { POLICY_SHARPNESS, 0.6f, 5 } },
                { { POLICY_COLOR, 0.7f, 7 }, { POLICY_TRANSLATE_X, 0.5f, 8 } },
                { { POLICY_EQUALIZE, 0.3f, 0 }, { POLICY_AUTO_CONTRAST, 0.4f, 0 } },
                { { POLICY_TRANSLATE_Y, 0.4f, 3 }, { POLICY_SHARPNESS, 0.2f, 6 } },
                { { POLICY_BRIGHTNESS, 0.9f, 6 }, { POLICY_COLOR, 0.2f, 8 } },
                { { POLICY_SOLARIZE, 0.5f, 2 }, { POLICY_INVERT, 0.0f, 0 } },
                { { POLICY_EQUALIZE, 0.2f, 0 }, { POLICY_AUTO_CONTRAST, 0.6f, 0 } },
                { { POLICY_EQUALIZE, 0.2f, 0 }, { POLICY_EQUALIZE, 0.6f, 0 } },
                { { POLICY_COLOR, 0.9f, 9 }, { POLICY_EQUALIZE, 0.6f, 0 } },
                { { POLICY_AUTO_CONTRAST, 0.8f, 0 }, { POLICY_SOLARIZE, 0.2f, 8 } },
                { { POLICY_BRIGHTNESS, 0.1f, 3 }, { POLICY_COLOR, 0.7f, 0 } },
                { { POLICY_SOLARIZE, 0.4f, 5 }, { POLICY_AUTO_CONTRAST, 0.9f, 0 } },
                { { POLICY_TRANSLATE_Y, 0.9f, 9 }, { POLICY_TRANSLATE_Y, 0.7f, 9 } },
                { { POLICY_AUTO_CONTRAST, 0.9f, 0 }, { POLICY_SOLARIZE, 0.8f, 3 } },
                { { POLICY_EQUALIZE, 0.8f, 0 }, { POLICY_INVERT, 0.1f, 0 } },
                { { POLICY_TRANSLATE_Y, 0.7f, 9 }, { POLICY_AUTO_CONTRAST, 0.9f, 0 } },
        },
        [SVHN] = {
                { { POLICY_SHEAR_X, 0.9f, 4 }, { POLICY_INVERT, 0.2f, 0 } },
                { { POLICY_SHEAR_Y, 0.9f, 8 }, { POLICY_INVERT, 0.7f, 0 } },
                { { POLICY_EQUALIZE, 0.6f, 0 }, { POLICY_SOLARIZE, 0.6f, 6 } },
                { { POLICY_INVERT, 0.9f, 0 }, { POLICY_EQUALIZE, 0.6f, 0 } },
                { { POLICY_EQUALIZE, 0.6f, 0 }, { POLICY_ROTATE, 0.9f, 3 } },
                { { POLICY_SHEAR_X, 0.9f, 4 }, { POLICY_AUTO_CONTRAST, 0.8f, 0 } },
                { { POLICY_SHEAR_Y, 0.9f, 8 }, { POLICY_INVERT, 0.4f, 0 } },
                { { POLICY_SHEAR_Y, 0.9f, 5 }, { POLICY_SOLARIZE, 0.2f, 6 } },
                { { POLICY_INVERT, 0.9f, 0 }, { POLICY_AUTO_CONTRAST, 0.8f, 0 } },
                { { POLICY_EQUALIZE, 0.6f, 0 }, { POLICY_ROTATE, 0.9f, 3 } },
                { { POLICY_SHEAR_X, 0.9f, 4 }, { POLICY_SOLARIZE, 0.3f, 3 } },
                { { POLICY_SHEAR_Y, 0.8f, 8 }, { POLICY_INVERT, 0.7f, 0 } },
                { { POLICY_EQUALIZE, 0.9f, 0 }, { POLICY_TRANSLATE_Y, 0.6f, 6 } },
                { { POLICY_INVERT, 0.9f, 0 }, { POLICY_EQUALIZE, 0.6f, 0 } },
                { { POLICY_CONTRAST, 0.3f, 3 }, { POLICY_ROTATE, 0.8f, 4 } },
                { { POLICY_INVERT, 0.8f, 0 }, { POLICY_TRANSLATE_Y, 0.0f, 2 } },
                { { POLICY_SHEAR_Y, 0.7f, 6 }, { POLICY_SOLARIZE, 0.4f, 8 } },
                { { POLICY_INVERT, 0.6f, 0 }, { POLICY_ROTATE, 0.8f, 4 } },
                { { POLICY_SHEAR_Y, 0.3f, 7 }, { POLICY_TRANSLATE_X, 0.9f, 3 } },
                { { POLICY_SHEAR_X, 0.1f, 6 }, { POLICY_INVERT, 0.6f, 0 } },
                { { POLICY_SOLARIZE, 0.7f, 2 }, { POLICY_TRANSLATE_Y, 0.6f, 7 } },
                { { POLICY_SHEAR_Y, 0.8f, 4 }, { POLICY_INVERT, 0.8f, 0 } },
                { { POLICY_SHEAR_X, 0.7f, 9 }, { POLICY_TRANSLATE_Y, 0.8f, 3 } },
                { { POLICY_SHEAR_Y, 0.8f, 5 }, { POLICY_AUTO_CONTRAST, 0.7f, 0 } },
                { { POLICY_SHEAR_X, 0.7f, 2 }, { POLICY_INVERT, 0.1f, 0 } },
        },
};

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        const struct chance *pair = PAIRS[values[POLICY].choice][dlp_philox_below(philox, N_PAIRS)];
        struct warp_look look = warp_look_of(&values[INTERPOLATION], &values[FILL]);
        int r = policy_begin(fold, "auto_augment", why);

        for (uint32_t i = 0; i < 2 && r == 0; i++) {
                bool happens = dlp_philox_f32(philox) <= pair[i].probability, is_negative = policy_sign(philox);
                struct policy_magnitude magnitude = { pair[i].magnitude, N_BINS };

                if (happens)
                        r = policy_change(fold, pair[i].change, &POLICY_NARROW, magnitude, is_negative, &look, why);
        }
        return r;
}

static int convert(const struct value *values, struct conversion *conversion, struct why *why) {
        return policy_check(&values[FILL], conversion, why);
}

const struct step_type step_auto_augment = {
        .kind = { .name = "auto_augment",
                  .doc = "Does one of the 25 pairs of changes of a policy, `imagenet`, `cifar10` or `svhn`.",
                  .like = "torchvision.transforms.v2.AutoAugment",
                  .example = "auto_augment(imagenet)",
                  .arguments = ARGUMENTS([POLICY] = { ARGUMENT_CHOICE, "policy", "imagenet", .choices = POLICY_NAMES,
                                                      .n_choices = N_POLICIES },
                                         [INTERPOLATION] = ARGUMENT_WARP_FILTER("nearest"), [FILL] = ARGUMENT_FILL) },
        .stage = STAGE_AUTO_AUGMENT,
        .plan = plan,
        .convert = convert,
};
