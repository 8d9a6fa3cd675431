/* augment/steps/pixels/gaussian_blur.c: torchvision's GaussianBlur. Draws one f32: sigma. */
#include "daemon/augment/operations/blur/blur.h"
#include "daemon/augment/step.h"

enum {
        KERNEL_SIZE,
        SIGMA
};

float number_between(const struct value *value, struct dlp_philox *philox) {
        double from = value->list[0], to = value->list[value->n_list - 1];

        return (float)(from + (to - from) * (double)dlp_philox_f32(philox));
}

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        const struct value *size = &values[KERNEL_SIZE];
        struct operation operation = { .type = &operation_gaussian_blur };

        (void)why;
        operation.box.width = (uint32_t)size->list[0];
        operation.box.height = (uint32_t)size->list[size->n_list - 1];
        operation.amount = number_between(&values[SIGMA], philox);
        fold_operate(fold, &operation);
        return 0;
}

const struct step_type step_gaussian_blur = {
        .kind = { .name = "gaussian_blur",
                  .doc = "Blurs the picture; `kernel_size` is one odd number or WIDTH:HEIGHT (1 to 255), `sigma` one "
                         "number or the range from which it is drawn (0.001 to 1000). Of 60,000 levels one, or fewer, "
                         "is rounded to the neighbour of torchvision's, whose sums of float32 have another sequence. "
                         "Pictures that are smaller than half the kernel are mirrored several times; torchvision "
                         "refuses them.",
                  .like = "torchvision.transforms.v2.GaussianBlur",
                  .example = "gaussian_blur(23, sigma=0.1:2)",
                  .arguments = ARGUMENTS([KERNEL_SIZE] = { ARGUMENT_LIST, "kernel_size", NULL, 1, BLUR_KERNEL_MAX,
                                                           .counts = 1u << 1 | 1u << 2, .is_odd = true,
                                                           .form = "N or WIDTH:HEIGHT" },
                                         [SIGMA] = { ARGUMENT_LIST, "sigma", "0.1:2", 0.001, 1000,
                                                     .counts = 1u << 1 | 1u << 2, .is_range = true,
                                                     .form = "N or FROM:TO" }) },
        .stage = STAGE_GAUSSIAN_BLUR,
        .plan = plan,
        .convert = levels_check,
};
