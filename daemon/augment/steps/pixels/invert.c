/* augment/steps/pixels/invert.c: torchvision's RandomInvert. Draws one f32: below p means yes. And what the other steps that
 * change levels (operations/levels.c) have in common with it. */
#include "daemon/augment/step.h"

enum {
        PROBABILITY
};

bool step_happens(const struct value *probability, struct dlp_philox *philox) {
        return dlp_philox_f32(philox) < (float)probability->number;
}

int levels_check(const struct value *values, struct conversion *conversion, struct why *why) {
        (void)values;
        return mode_check(conversion, ~(1u << PIXELS_RGB | 1u << PIXELS_L), "mode=RGB or L", why);
}

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        (void)why;
        if (step_happens(&values[PROBABILITY], philox))
                fold_operate(fold, &(struct operation){ &operation_invert });
        return 0;
}

const struct step_type step_invert = {
        .kind = { .name = "invert",
                  .other_names = "RandomInvert",
                  .doc = "Each level becomes 255 minus itself, with the probability `p`.",
                  .like = "torchvision.transforms.v2.RandomInvert",
                  .example = "invert(0.5)",
                  .arguments = ARGUMENTS([PROBABILITY] = { ARGUMENT_NUMBER, "p", "0.5", 0, 1 }) },
        .stage = STAGE_INVERT,
        .plan = plan,
        .convert = levels_check,
};
