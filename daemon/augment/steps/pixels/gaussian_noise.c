/* augment/steps/pixels/gaussian_noise.c: torchvision's GaussianNoise, as it is for uint8. Draws two words: the seed of
 * its noise. */
#include "daemon/augment/noise.h"
#include "daemon/augment/step.h"

enum {
        MEAN,
        SIGMA,
        CLIP
};

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        (void)why;
        fold_operate(fold, &(struct operation){ .type = &operation_gaussian_noise,
                                                .amount = (float)(values[SIGMA].number * 255),
                                                .others = { (float)(values[MEAN].number * 255) },
                                                .flag = values[CLIP].choice == 1,
                                                .seed = noise_seed(philox) });
        return 0;
}

const struct step_type step_gaussian_noise = {
        .kind = { .name = "gaussian_noise",
                  .doc = "Adds numbers of a normal distribution with this `mean` (-1 to 1) and deviation `sigma` (0 "
                         "to 10), times 255 and truncated, as torchvision does with uint8. Sums beyond 0 to 255 are "
                         "clipped; with `clip=false` 256 is added or subtracted instead, as in torch.",
                  .like = "torchvision.transforms.v2.GaussianNoise",
                  .example = "gaussian_noise(0, sigma=0.1)",
                  .arguments = ARGUMENTS([MEAN] = { ARGUMENT_NUMBER, "mean", "0", -1, 1 },
                                         [SIGMA] = { ARGUMENT_NUMBER, "sigma", "0.1", 0, 10 },
                                         [CLIP] = { ARGUMENT_FLAG, "clip", "true" }) },
        .stage = STAGE_GAUSSIAN_NOISE,
        .plan = plan,
        .convert = levels_check,
};
