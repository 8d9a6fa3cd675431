/* augment/steps/pixels/random_grayscale.c: torchvision's RandomGrayscale. Draws one f32: below p means yes. */
#include "daemon/augment/step.h"

enum {
        PROBABILITY
};

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        (void)why;
        if (dlp_philox_f32(philox) < (float)values[PROBABILITY].number)
                fold_operate(fold, &(struct operation){ &operation_grayscale, 0 });
        return 0;
}

static int convert(const struct value *values, struct conversion *conversion, struct why *why) {
        (void)values;
        return mode_check(conversion, ~(1u << PIXELS_RGB | 1u << PIXELS_L), "mode=RGB", why);
}

const struct step_type step_random_grayscale = {
        .kind = { .name = "random_grayscale",
                  .doc = "Converts the picture to grey, with 3 equal channels, with the probability `p`.",
                  .like = "torchvision.transforms.v2.RandomGrayscale",
                  .example = "random_grayscale(0.1)",
                  .arguments = ARGUMENTS([PROBABILITY] = { ARGUMENT_NUMBER, "p", "0.1", 0, 1 }) },
        .stage = STAGE_RANDOM_GRAYSCALE,
        .plan = plan,
        .convert = convert,
        .can_be_left = step_leaves_one,
};
