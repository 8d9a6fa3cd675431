/* augment/steps/pixels/autocontrast.c: torchvision's RandomAutocontrast. Draws one f32: below p means yes. */
#include "daemon/augment/step.h"

enum {
        PROBABILITY
};

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        (void)why;
        if (step_happens(&values[PROBABILITY], philox))
                fold_operate(fold, &(struct operation){ &operation_autocontrast });
        return 0;
}

const struct step_type step_autocontrast = {
        .kind = { .name = "autocontrast",
                  .other_names = "RandomAutocontrast",
                  .doc = "With the probability `p`, stretches the levels of each channel, so that its lowest becomes "
                         "0 and its highest 255.",
                  .like = "torchvision.transforms.v2.RandomAutocontrast",
                  .example = "autocontrast(0.5)",
                  .arguments = ARGUMENTS([PROBABILITY] = { ARGUMENT_NUMBER, "p", "0.5", 0, 1 }) },
        .stage = STAGE_AUTOCONTRAST,
        .plan = plan,
        .convert = levels_check,
};
