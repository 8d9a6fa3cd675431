/* augment/steps/policies/trivial_augment_wide.c: torchvision's TrivialAugmentWide. Draws three words: which change it
 * is, below(14) in the sequence of enum policy_change; its magnitude, below(num_magnitude_bins); and f32, at most 0.5
 * means the negative sign, for those that have one. */
#include "daemon/augment/steps/policies/policies.h"
#include "daemon/augment/steps/warps/warps.h"

enum {
        N_BINS,
        INTERPOLATION,
        FILL
};

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        enum policy_change change = (enum policy_change)dlp_philox_below(philox, N_POLICY_DRAWN);
        struct policy_magnitude magnitude = { .n = (uint32_t)values[N_BINS].list[0] };
        struct warp_look look = warp_look_of(&values[INTERPOLATION], &values[FILL]);
        bool is_negative;
        int r = policy_begin(fold, "trivial_augment_wide", why);

        magnitude.idx = dlp_philox_below(philox, magnitude.n);
        is_negative = policy_sign(philox);
        return r < 0 ? r : policy_change(fold, change, &POLICY_WIDE, magnitude, is_negative, &look, why);
}

static int convert(const struct value *values, struct conversion *conversion, struct why *why) {
        return policy_check(&values[FILL], conversion, why);
}

const struct step_type step_trivial_augment_wide = {
        .kind = { .name = "trivial_augment_wide",
                  .doc = "Does one of 14 changes, which go further, with any magnitude.",
                  .like = "torchvision.transforms.v2.TrivialAugmentWide",
                  .example = "trivial_augment_wide",
                  .arguments = ARGUMENTS([N_BINS] = ARGUMENT_BINS, [INTERPOLATION] = ARGUMENT_WARP_FILTER("nearest"),
                                         [FILL] = ARGUMENT_FILL) },
        .stage = STAGE_TRIVIAL_AUGMENT_WIDE,
        .plan = plan,
        .convert = convert,
};
