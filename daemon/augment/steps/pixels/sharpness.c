/* augment/steps/pixels/sharpness.c: torchvision's RandomAdjustSharpness. Draws one f32: below p means yes. */
#include "daemon/augment/step.h"

enum {
        FACTOR,
        PROBABILITY
};

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        (void)why;
        if (step_happens(&values[PROBABILITY], philox))
                fold_operate(fold, &(struct operation){ &operation_sharpness, (float)values[FACTOR].number });
        return 0;
}

/* Alpha stays as it is, as in Pillow. */
static int convert(const struct value *values, struct conversion *conversion, struct why *why) {
        (void)values;
        return mode_check(conversion, 1u << PIXELS_P | 1u << PIXELS_I16, "mode=RGB, L, RGBA or LA", why);
}

const struct step_type step_sharpness = {
        .kind = { .name = "sharpness",
                  .other_names = "RandomAdjustSharpness",
                  .doc = "With the probability `p`, changes the sharpness: 0 smooths the picture, 1 leaves it as it "
                         "is, 2 sharpens it (`factor`: 0 to 1000; torchvision's name `sharpness_factor` is taken as "
                         "well). The outermost pixels stay as they are.",
                  .like = "torchvision.transforms.v2.RandomAdjustSharpness",
                  .example = "sharpness(2)",
                  .arguments = ARGUMENTS([FACTOR] = { ARGUMENT_NUMBER, "factor", NULL, 0, 1000,
                                                      .other_name = "sharpness_factor" },
                                         [PROBABILITY] = { ARGUMENT_NUMBER, "p", "0.5", 0, 1 }) },
        .stage = STAGE_SHARPNESS,
        .plan = plan,
        .convert = convert,
};
