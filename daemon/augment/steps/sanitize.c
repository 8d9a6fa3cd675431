/* augment/steps/sanitize.c: torchvision's SanitizeBoundingBoxes, for boxes that move with the picture: drops those that the
 * steps before it have left too small or that lie outside. Draws nothing, and does nothing to pixels. */
#include "daemon/augment/step.h"

enum {
        MIN_SIZE,
        MIN_AREA
};

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        (void)philox;
        (void)why;
        motions_sanitize(fold->motions, (float)values[MIN_SIZE].number, (float)values[MIN_AREA].number,
                         fold_width(fold), fold_height(fold));
        return 0;
}

const struct step_type step_sanitize = {
        .kind = { .name = "sanitize",
                  .other_names = "SanitizeBoundingBoxes",
                  .doc = "Drops boxes that are too small or lie outside.",
                  .like = "torchvision.transforms.v2.SanitizeBoundingBoxes",
                  .example = "sanitize(min_size=1, min_area=1)",
                  .arguments = ARGUMENTS([MIN_SIZE] = { ARGUMENT_NUMBER, "min_size", "1", 0, RECIPE_SIZE_MAX },
                                         [MIN_AREA] = { ARGUMENT_NUMBER, "min_area", "1", 0,
                                                        (double)RECIPE_SIZE_MAX *RECIPE_SIZE_MAX }) },
        .plan = plan,
        .drops_boxes = true,
        .can_be_left = step_leaves_none, /* there is nothing to do to the picture */
};
