/* augment/steps/vflip.c: torchvision's RandomVerticalFlip. Draws one f32: below p means yes. */
#include "daemon/augment/step.h"

enum {
        PROBABILITY
};

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        if (dlp_philox_f32(philox) < (float)values[PROBABILITY].number) /* drawn for 0 and 1, too, as in torchvision */
                return fold_vflip(fold, why);
        return 0;
}

const struct step_type step_vflip = {
        .kind = { .name = "vflip",
                  .other_names = "RandomVerticalFlip VerticalFlip",
                  .doc = "Mirrors top to bottom.",
                  .like = "torchvision.transforms.v2.RandomVerticalFlip",
                  .example = "vflip(0.5)",
                  .arguments = ARGUMENTS([PROBABILITY] = { ARGUMENT_NUMBER, "p", "0.5", 0, 1 }) },
        .stage = STAGE_VFLIP,
        .plan = plan,
        .can_be_left = step_leaves_none,
};
