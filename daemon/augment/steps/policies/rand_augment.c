/* augment/steps/policies/rand_augment.c: torchvision's RandAugment. For each of num_ops changes draws two words: which
 * one it is, below(14) in the sequence of enum policy_change; and f32, at most 0.5 means the negative sign, for those
 * that have one.
 *
 * timm's RandAugment (rand-m9-mstd0.5-inc1) has other scales, draws whether each change happens, and magnitudes that
 * are distributed around the given one: it would be a step of its own. */
#include <errno.h>

#include "daemon/augment/steps/policies/policies.h"
#include "daemon/augment/steps/warps/warps.h"

enum {
        N_CHANGES,
        MAGNITUDE,
        N_BINS,
        INTERPOLATION,
        FILL
};

#define N_CHANGES_MAX 4 /* each may begin a stage, and a step begins at most four (STAGES_MAX) */

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        struct policy_magnitude magnitude = { (uint32_t)values[MAGNITUDE].list[0], (uint32_t)values[N_BINS].list[0] };
        struct warp_look look = warp_look_of(&values[INTERPOLATION], &values[FILL]);
        int r = policy_begin(fold, "rand_augment", why);

        for (uint32_t i = 0; i < (uint32_t)values[N_CHANGES].list[0] && r == 0; i++) {
                enum policy_change change = (enum policy_change)dlp_philox_below(philox, N_POLICY_DRAWN);
                bool is_negative = policy_sign(philox);

                r = policy_change(fold, change, &POLICY_NARROW, magnitude, is_negative, &look, why);
        }
        return r;
}

static int convert(const struct value *values, struct conversion *conversion, struct why *why) {
        double magnitude = values[MAGNITUDE].list[0], n_bins = values[N_BINS].list[0];

        if (magnitude >= n_bins)
                return why_set(why, -EINVAL, "magnitude is %.0f; expected less than num_magnitude_bins, which is %.0f",
                               magnitude, n_bins);
        return policy_check(&values[FILL], conversion, why);
}

const struct step_type step_rand_augment = {
        .kind = { .name = "rand_augment",
                  .doc = "Does `num_ops` (0 to 4) of 14 changes, one after the other, each with the same `magnitude`, "
                         "which is a number on a scale of `num_magnitude_bins` (2 to 1000).",
                  .like = "torchvision.transforms.v2.RandAugment",
                  .example = "rand_augment(2, 9)",
                  .arguments =
                          ARGUMENTS([N_CHANGES] = ARGUMENT_COUNT("num_ops", "2", 0, N_CHANGES_MAX),
                                    [MAGNITUDE] = ARGUMENT_COUNT("magnitude", "9", 0, 999), [N_BINS] = ARGUMENT_BINS,
                                    [INTERPOLATION] = ARGUMENT_WARP_FILTER("nearest"), [FILL] = ARGUMENT_FILL) },
        .stage = STAGE_RAND_AUGMENT,
        .plan = plan,
        .convert = convert,
};
