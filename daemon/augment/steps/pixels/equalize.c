/* augment/steps/pixels/equalize.c: torchvision's RandomEqualize. Draws one f32: below p means yes. */
#include "daemon/augment/step.h"

enum {
        PROBABILITY
};

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        (void)why;
        if (step_happens(&values[PROBABILITY], philox))
                fold_operate(fold, &(struct operation){ &operation_equalize });
        return 0;
}

const struct step_type step_equalize = {
        .kind = { .name = "equalize",
                  .other_names = "RandomEqualize",
                  .doc = "With the probability `p`, makes the levels of each channel nearly equally frequent.",
                  .like = "torchvision.transforms.v2.RandomEqualize",
                  .example = "equalize(0.5)",
                  .arguments = ARGUMENTS([PROBABILITY] = { ARGUMENT_NUMBER, "p", "0.5", 0, 1 }) },
        .stage = STAGE_EQUALIZE,
        .plan = plan,
        .convert = levels_check,
};
