/* augment/steps/pixels/solarize.c: torchvision's RandomSolarize. Draws one f32: below p means yes. */
#include "daemon/augment/step.h"

#include <math.h>

enum {
        THRESHOLD,
        PROBABILITY
};

/* Levels are whole numbers: those from the threshold on are those from the next whole number on. */
static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        float lowest = (float)ceil(values[THRESHOLD].number);

        (void)why;
        if (step_happens(&values[PROBABILITY], philox))
                fold_operate(fold, &(struct operation){ &operation_solarize, lowest });
        return 0;
}

const struct step_type step_solarize = {
        .kind = { .name = "solarize",
                  .other_names = "RandomSolarize",
                  .doc = "With the probability `p`, inverts the levels from `threshold` (0 to 256) on.",
                  .like = "torchvision.transforms.v2.RandomSolarize",
                  .example = "solarize(128)",
                  .arguments = ARGUMENTS([THRESHOLD] = { ARGUMENT_NUMBER, "threshold", NULL, 0, 256 },
                                         [PROBABILITY] = { ARGUMENT_NUMBER, "p", "0.5", 0, 1 }) },
        .stage = STAGE_SOLARIZE,
        .plan = plan,
        .convert = levels_check,
};
