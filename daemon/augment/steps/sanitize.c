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
                  .doc = "Drops the boxes that are narrower or lower than `min_size` (0 to 16384 pixels), have a "
                         "smaller area than `min_area` (0 to 268435456), or do not lie within the picture, as the "
                         "steps before it have left them. Of each other array in its part the same rows are dropped, "
                         "but not of points that are n by 2; a sample where one of them has another number of rows "
                         "than there are boxes is damaged, and so is one with more than 8192 boxes. If a sample has "
                         "no boxes because the field is absent, all rows stay. The picture is not changed.",
                  .like = "torchvision.transforms.v2.SanitizeBoundingBoxes",
                  .example = "sanitize(min_size=1, min_area=1)",
                  .arguments = ARGUMENTS([MIN_SIZE] = { ARGUMENT_NUMBER, "min_size", "1", 0, RECIPE_SIZE_MAX },
                                         [MIN_AREA] = { ARGUMENT_NUMBER, "min_area", "1", 0,
                                                        (double)RECIPE_SIZE_MAX *RECIPE_SIZE_MAX }) },
        .plan = plan,
        .drops_boxes = true,
        .can_be_left = step_leaves_none, /* there is nothing to do to the picture */
};
