/* augment/steps/warps/elastic.c: torchvision's ElasticTransform. Draws four words, two seeds: of the numbers along x, and
 * of those along y. */
#include <errno.h>

#include "daemon/augment/noise.h"
#include "daemon/augment/steps/warps/warps.h"

enum {
        ALPHA,
        SIGMA,
        INTERPOLATION,
        FILL
};

#define SIGMA_MAX 31 /* whose kernel has 249 weights */

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        struct warp_look look = warp_look_of(&values[INTERPOLATION], &values[FILL]);
        const struct value *alpha = &values[ALPHA], *sigma = &values[SIGMA];
        struct displacement displacement = {
                .alpha = { (float)alpha->list[0], (float)alpha->list[alpha->n_list - 1] },
                .sigma = { (float)sigma->list[0], (float)sigma->list[sigma->n_list - 1] },
        };

        displacement.seeds[ALONG_X] = noise_seed(philox);
        displacement.seeds[ALONG_Y] = noise_seed(philox);
        return fold_displace(fold, &displacement, &look, why);
}

static int convert(const struct value *values, struct conversion *conversion, struct why *why) {
        int r = mode_check(conversion, ~(1u << PIXELS_RGB | 1u << PIXELS_L), "mode=RGB or L", why);

        return r < 0 ? r : fill_check(&values[FILL], conversion, why);
}

const struct step_type step_elastic = {
        .kind = { .name = "elastic",
                  .other_names = "ElasticTransform",
                  .doc = "Moves each pixel by a random number of up to `alpha` / 2 pixels along either axis, after "
                         "these numbers were blurred with `sigma`. Both are one number, or one along x and one along "
                         "y; alpha is 0 to 10000, sigma 0.1 to 31. `interpolation` is nearest or bilinear. Of colours "
                         "and grey (`mode=RGB` or `L`). All is float32, as in torch, whose sums have another "
                         "sequence: with the same numbers one level in 10,000 is another one. Boxes and points go "
                         "where torchvision sends them: against the displacement of the pixel in which they are.",
                  .like = "torchvision.transforms.v2.ElasticTransform",
                  .example = "elastic(50, sigma=5)",
                  .arguments = ARGUMENTS([ALPHA] = { ARGUMENT_LIST, "alpha", "50", 0, 10000,
                                                     .counts = 1u << 1 | 1u << 2, .form = "N or X:Y" },
                                         [SIGMA] = { ARGUMENT_LIST, "sigma", "5", 0.1, SIGMA_MAX,
                                                     .counts = 1u << 1 | 1u << 2, .form = "N or X:Y" },
                                         [INTERPOLATION] = { ARGUMENT_CHOICE, "interpolation", "bilinear",
                                                             .choices = WARP_FILTER_NAMES, .n_choices = WARP_BICUBIC },
                                         [FILL] = ARGUMENT_FILL) },
        .stage = STAGE_ELASTIC,
        .plan = plan,
        .convert = convert,
};
