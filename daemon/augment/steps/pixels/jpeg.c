/* augment/steps/pixels/jpeg.c: torchvision's JPEG and Albumentations' ImageCompression. Draws two words: an f32, below p
 * means yes; and the quality, below(to - from + 1) + from. */
#include "daemon/augment/step.h"

enum {
        QUALITY,
        PROBABILITY
};

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        const struct value *quality = &values[QUALITY];
        bool happens = step_happens(&values[PROBABILITY], philox);
        uint32_t from = (uint32_t)quality->list[0], to = (uint32_t)quality->list[quality->n_list - 1];
        uint32_t drawn = from + dlp_philox_below(philox, to - from + 1);

        (void)why;
        if (happens)
                fold_operate(fold, &(struct operation){ .type = &operation_jpeg, .amount = (float)drawn });
        return 0;
}

const struct step_type step_jpeg = {
        .kind = { .name = "jpeg",
                  .other_names = "ImageCompression",
                  .doc = "Leaves of the picture what a JPEG file of this `quality` (N or FROM:TO, 1 to 100) does, as "
                         "ImageCompression of Albumentations, with the bits of libjpeg-turbo, OpenCV and Pillow.",
                  .like = "torchvision.transforms.v2.JPEG",
                  .example = "jpeg(50:90)",
                  .arguments = ARGUMENTS([QUALITY] = { ARGUMENT_LIST, "quality", NULL, 1, 100,
                                                       .counts = 1u << 1 | 1u << 2, .is_whole = true, .is_range = true,
                                                       .form = "N or FROM:TO", .other_name = "quality_range" },
                                         [PROBABILITY] = { ARGUMENT_NUMBER, "p", "1", 0, 1 }) },
        .stage = STAGE_JPEG,
        .plan = plan,
        .convert = levels_check,
};
