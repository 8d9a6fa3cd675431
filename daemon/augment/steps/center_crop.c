/* augment/steps/center_crop.c: torchvision's CenterCrop: a picture that is too small gets a black border first. */
#include "daemon/augment/step.h"

enum {
        SIZE
};

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        static const struct border black = { .mode = BORDER_CONSTANT };
        struct box box = { .width = values[SIZE].width, .height = values[SIZE].height };
        struct padding padding = {};
        int r;

        (void)philox; /* draws nothing */
        crop_center_padding(fold_width(fold), box.width, &padding.left, &padding.right);
        crop_center_padding(fold_height(fold), box.height, &padding.top, &padding.bottom);
        r = fold_pad(fold, &padding, &black, why);
        if (r < 0)
                return r;
        box.x = crop_center_offset(fold_width(fold), box.width);
        box.y = crop_center_offset(fold_height(fold), box.height);
        return fold_crop(fold, &box, why);
}

static void output(const struct value *values, uint32_t *height, uint32_t *width) {
        *height = values[SIZE].height;
        *width = values[SIZE].width;
}

const struct step_type step_center_crop = {
        .kind = { .name = "center_crop",
                  .doc = "Cuts out the middle. A picture that is too small is padded with black first.",
                  .like = "torchvision.transforms.v2.CenterCrop",
                  .example = "center_crop(224)",
                  .arguments = ARGUMENTS([SIZE] = { ARGUMENT_SIZE, "size", NULL }) },
        .plan = plan,
        .output = output,
};
