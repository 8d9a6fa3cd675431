/* augment/steps/crops/ten_crop.c: torchvision's TenCrop: views 0 to 4 of the sample are those of five_crop, views 5 to
 * 9 the same of the mirrored picture. Draws nothing. */
#include "daemon/augment/steps/crops/corners.h"

enum {
        SIZE,
        VERTICAL_FLIP
};

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        int r = 0;

        (void)philox;
        if (fold->view >= N_CORNERS)
                r = values[VERTICAL_FLIP].choice ? fold_vflip(fold, why) : fold_flip(fold, why);
        return r < 0 ? r : corners_crop(fold, "ten_crop", &values[SIZE], fold->view % N_CORNERS, why);
}

const struct step_type step_ten_crop = {
        .kind = { .name = "ten_crop",
                  .doc = "Makes ten views, those of `five_crop` and the same of the mirrored picture.",
                  .like = "torchvision.transforms.v2.TenCrop",
                  .example = "ten_crop(224)",
                  .arguments = ARGUMENTS([SIZE] = { ARGUMENT_SIZE, "size", NULL }, [VERTICAL_FLIP] = { ARGUMENT_FLAG,
                                                                                                       "vertical_flip",
                                                                                                       "false" }) },
        .plan = plan,
        .output = corners_output,
        .n_views = 2 * N_CORNERS,
};
