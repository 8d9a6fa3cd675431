/* augment/steps/pixels/posterize.c: torchvision's RandomPosterize. Draws one f32: below p means yes. */
#include "daemon/augment/step.h"

enum {
        BITS,
        PROBABILITY
};

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        (void)why;
        if (step_happens(&values[PROBABILITY], philox))
                fold_operate(fold, &(struct operation){ &operation_posterize, (float)values[BITS].list[0] });
        return 0;
}

const struct step_type step_posterize = {
        .kind = { .name = "posterize",
                  .other_names = "RandomPosterize",
                  .doc = "With the probability `p`, keeps the highest `bits` (0 to 8) of each level. With 0 the "
                         "picture becomes black, as in Pillow 9.4; newer releases refuse it.",
                  .like = "torchvision.transforms.v2.RandomPosterize",
                  .example = "posterize(4)",
                  .arguments = ARGUMENTS([BITS] = { ARGUMENT_LIST, "bits", NULL, 0, 8, .counts = 1u << 1,
                                                    .is_whole = true, .form = "N" },
                                         [PROBABILITY] = { ARGUMENT_NUMBER, "p", "0.5", 0, 1 }) },
        .stage = STAGE_POSTERIZE,
        .plan = plan,
        .convert = levels_check,
};
