/* augment/steps/pixels/random_photometric_distort.c: torchvision's RandomPhotometricDistort.
 *
 * Draws twelve words. Two f32 for each of brightness, contrast, saturation and hue: below p means that it is changed,
 * and u gives the factor, from + (to - from) * u, in float64, rounded to float32. Then two f32: the first, below 1/2,
 * means that the contrast is changed before saturation and hue, else after them; the second, below p, that the channels
 * are exchanged. Two words say how, as in random_channel_permutation. */
#include "daemon/augment/step.h"

enum {
        BRIGHTNESS,
        CONTRAST,
        SATURATION,
        HUE,
        PROBABILITY,
        N_ADJUSTMENTS = PROBABILITY
};

struct adjustment {
        bool happens;
        float factor;
};

static void adjust(const struct adjustment *adjustment, const struct operation_type *type, struct fold *fold) {
        if (adjustment->happens)
                fold_operate(fold, &(struct operation){ type, adjustment->factor });
}

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        struct adjustment adjustments[N_ADJUSTMENTS];
        struct operation permute = { .type = &operation_permute };
        bool contrast_first, is_permuted;

        (void)why;
        for (uint32_t i = 0; i < N_ADJUSTMENTS; i++) {
                adjustments[i].happens = step_happens(&values[PROBABILITY], philox);
                adjustments[i].factor = number_between(&values[i], philox);
        }
        contrast_first = dlp_philox_f32(philox) < 0.5f;
        is_permuted = step_happens(&values[PROBABILITY], philox);
        channels_draw(philox, permute.color);

        adjust(&adjustments[BRIGHTNESS], &operation_brightness, fold);
        if (contrast_first)
                adjust(&adjustments[CONTRAST], &operation_contrast, fold);
        adjust(&adjustments[SATURATION], &operation_saturation, fold);
        adjust(&adjustments[HUE], &operation_hue, fold);
        if (!contrast_first)
                adjust(&adjustments[CONTRAST], &operation_contrast, fold);
        if (is_permuted)
                fold_operate(fold, &permute);
        return 0;
}

const struct step_type step_random_photometric_distort = {
        .kind = { .name = "random_photometric_distort",
                  .doc = "Changes brightness, contrast, saturation and hue, each with the probability `p`, by a "
                         "factor from its range, as `color_jitter` does it; so are the channels put into another "
                         "sequence. The contrast comes before the saturation and the hue, or after them.",
                  .like = "torchvision.transforms.v2.RandomPhotometricDistort",
                  .example = "random_photometric_distort()",
                  .arguments = ARGUMENTS([BRIGHTNESS] = { ARGUMENT_LIST, "brightness", "0.875:1.125", 0, 1000,
                                                          .counts = 1u << 2, .is_range = true, .form = "FROM:TO" },
                                         [CONTRAST] = { ARGUMENT_LIST, "contrast", "0.5:1.5", 0, 1000,
                                                        .counts = 1u << 2, .is_range = true, .form = "FROM:TO" },
                                         [SATURATION] = { ARGUMENT_LIST, "saturation", "0.5:1.5", 0, 1000,
                                                          .counts = 1u << 2, .is_range = true, .form = "FROM:TO" },
                                         [HUE] = { ARGUMENT_LIST, "hue", "-0.05:0.05", -0.5, 0.5, .counts = 1u << 2,
                                                   .is_range = true, .form = "FROM:TO" },
                                         [PROBABILITY] = { ARGUMENT_NUMBER, "p", "0.5", 0, 1 }) },
        .stage = STAGE_RANDOM_PHOTOMETRIC_DISTORT,
        .plan = plan,
        .convert = levels_check,
};
