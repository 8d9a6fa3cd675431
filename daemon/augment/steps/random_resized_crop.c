/* augment/steps/random_resized_crop.c: torchvision's RandomResizedCrop. */
#include "daemon/augment/step.h"

enum {
        SIZE,
        SCALE,
        RATIO,
        INTERPOLATION
};

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        struct box box;
        int r;

        crop_random_resized(philox, fold_width(fold), fold_height(fold), values[SCALE].range, values[RATIO].range,
                            &box);
        r = fold_crop(fold, &box, why);
        if (r < 0)
                return r;
        return fold_resize(fold, values[SIZE].width, values[SIZE].height,
                           (enum resize_filter)values[INTERPOLATION].choice, why);
}

static void output(const struct value *values, uint32_t *height, uint32_t *width) {
        *height = values[SIZE].height;
        *width = values[SIZE].width;
}

static int convert(const struct value *values, struct conversion *conversion, struct why *why) {
        return filter_check(&values[INTERPOLATION], conversion, why);
}

const struct step_type step_random_resized_crop = {
        .kind = { .name = "random_resized_crop",
                  .doc = "Cuts out a rectangle at random and resamples it to `size`. `scale` is the range of the "
                         "share of the picture's area (0 to 100); `ratio` is the range of width divided by height "
                         "(0.001 to 1000). If ten attempts give no rectangle that fits, the nearest rectangle in the "
                         "centre is used.",
                  .like = "torchvision.transforms.v2.RandomResizedCrop",
                  .example = "random_resized_crop(224)",
                  .arguments = ARGUMENTS([SIZE] = { ARGUMENT_SIZE, "size", NULL },
                                         [SCALE] = { ARGUMENT_RANGE, "scale", "0.08:1", 0, 100 },
                                         [RATIO] = { ARGUMENT_RANGE, "ratio", "0.75:1.3333333333333333", 0.001, 1000 },
                                         [INTERPOLATION] = ARGUMENT_INTERPOLATION) },
        .stage = STAGE_RANDOM_RESIZED_CROP,
        .plan = plan,
        .output = output,
        .convert = convert,
};
