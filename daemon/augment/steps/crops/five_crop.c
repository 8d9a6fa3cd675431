/* augment/steps/crops/five_crop.c: torchvision's FiveCrop: view 0 to 3 of the sample is a corner of the picture (top
 * left, top right, bottom left, bottom right), view 4 its center. Draws nothing. */
#include "daemon/augment/steps/crops/corners.h"

enum {
        SIZE
};

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        (void)philox;
        return corners_crop(fold, "five_crop", &values[SIZE], fold->view, why);
}

const struct step_type step_five_crop = {
        .kind = { .name = "five_crop",
                  .doc = "Makes five views of the sample of the four corners of the picture and its center "
                         "(`views(5)`, which need not be written): for a picture `image`, top left is `image`, top "
                         "right `image_2`, bottom left `image_3`, bottom right `image_4` and the center `image_5`; a "
                         "list of five in Python. The steps before and after it draw the same for all five, as "
                         "torchvision v2 has it. Boxes, masks and points go along, which torchvision refuses. Cannot "
                         "be in a group.",
                  .like = "torchvision.transforms.v2.FiveCrop",
                  .example = "five_crop(224)",
                  .arguments = ARGUMENTS([SIZE] = { ARGUMENT_SIZE, "size", NULL }) },
        .plan = plan,
        .output = corners_output,
        .n_views = N_CORNERS,
};
