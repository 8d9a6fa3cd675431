/* augment/steps/warps/random_perspective.c: torchvision's RandomPerspective. Draws one f32: below p means yes. Then
 * eight words, whether it happens or not: x and y of where the corners go, top left, top right, bottom right, bottom
 * left; each is as far from its own corner as its bound allows, below(bound), along both sides. */
#include "daemon/augment/steps/warps/warps.h"

enum {
        DISTORTION_SCALE,
        PROBABILITY,
        INTERPOLATION,
        FILL
};

/* How many places along one side a corner may have. */
static uint32_t places(double scale, uint32_t length) {
        return (uint32_t)(scale * (length / 2)) + 1;
}

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        struct warp_look look = warp_look_of(&values[INTERPOLATION], &values[FILL]);
        uint32_t width = fold_width(fold), height = fold_height(fold);
        uint32_t n_x = places(values[DISTORTION_SCALE].number, width),
                 n_y = places(values[DISTORTION_SCALE].number, height);
        bool happens = step_happens(&values[PROBABILITY], philox);
        struct corner corners[4];

        for (unsigned i = 0; i < 4; i++) {
                corners[i].x = (i == 1 || i == 2 ? width - n_x : 0) + dlp_philox_below(philox, n_x);
                corners[i].y = (i >= 2 ? height - n_y : 0) + dlp_philox_below(philox, n_y);
        }
        return happens ? fold_perspective(fold, corners, &look, why) : 0;
}

static int convert(const struct value *values, struct conversion *conversion, struct why *why) {
        return warp_check(&values[INTERPOLATION], &values[FILL], conversion, why);
}

const struct step_type step_random_perspective = {
        .kind = { .name = "random_perspective",
                  .doc = "With the probability `p`, moves each corner inwards by at most `distortion_scale` (0 to 1) "
                         "of half the width and half the height. A picture of one row or one column stays as it is.",
                  .like = "torchvision.transforms.v2.RandomPerspective",
                  .example = "random_perspective(0.5)",
                  .arguments = ARGUMENTS([DISTORTION_SCALE] = { ARGUMENT_NUMBER, "distortion_scale", "0.5", 0, 1 },
                                         [PROBABILITY] = { ARGUMENT_NUMBER, "p", "0.5", 0, 1 },
                                         [INTERPOLATION] = ARGUMENT_WARP_FILTER("bilinear"), [FILL] = ARGUMENT_FILL) },
        .stage = STAGE_RANDOM_PERSPECTIVE,
        .plan = plan,
        .convert = convert,
};
