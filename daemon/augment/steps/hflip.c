/* augment/steps/hflip.c: torchvision's RandomHorizontalFlip. Draws one f32: below p means yes. */
#include "daemon/augment/step.h"

enum {
        PROBABILITY
};

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        if (dlp_philox_f32(philox) < (float)values[PROBABILITY].number) /* drawn for 0 and 1, too, as in torchvision */
                return fold_flip(fold, why);
        return 0;
}

const struct step_type step_hflip = {
        .kind = { .name = "hflip",
                  .other_names = "RandomHorizontalFlip HorizontalFlip",
                  .doc = "Mirrors left to right with the probability `p`, 0 to 1.",
                  .like = "torchvision.transforms.v2.RandomHorizontalFlip",
                  .example = "hflip(0.5)",
                  .arguments = ARGUMENTS([PROBABILITY] = { ARGUMENT_NUMBER, "p", "0.5", 0, 1 }) },
        .plan = plan,
        .can_be_left = step_leaves_none,
};
