/* augment/steps/warps/random_affine.c: torchvision's RandomAffine. Draws six f32, whatever the arguments: for the
 * angle, the moves along x and y, the scale, the shears along x and y. Each number is from + (to - from) * u, in
 * float64, rounded to float32; the moves are then rounded to whole pixels, halves to the even one. */
#include <errno.h>
#include <math.h>

#include "daemon/augment/steps/warps/warps.h"

enum {
        DEGREES,
        TRANSLATE,
        SCALE,
        SHEAR,
        INTERPOLATION,
        FILL,
        CENTER
};

/* One number is the distance to both sides, along x; two are a range along x, four one along x and one along y. */
static struct range shear_range(const struct value *shear, bool is_y) {
        const double *list = shear->list;

        if (shear->n_list == 1)
                return is_y ? (struct range){ 0, 0 } : (struct range){ -list[0], list[0] };
        if (shear->n_list == 2)
                return is_y ? (struct range){ 0, 0 } : (struct range){ list[0], list[1] };
        return is_y ? (struct range){ list[2], list[3] } : (struct range){ list[0], list[1] };
}

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        struct warp_look look = warp_look_of(&values[INTERPOLATION], &values[FILL]);
        struct range x = shear_range(&values[SHEAR], false), y = shear_range(&values[SHEAR], true);
        double reach_x = values[TRANSLATE].list[0] * fold_width(fold),
               reach_y = values[TRANSLATE].list[1] * fold_height(fold);
        struct affine affine = { .center = warp_center_of(&values[CENTER]) };

        affine.angle = warp_draw(philox, values[DEGREES].range.from, values[DEGREES].range.to);
        affine.translate_x = rint(warp_draw(philox, -reach_x, reach_x));
        affine.translate_y = rint(warp_draw(philox, -reach_y, reach_y));
        affine.scale = warp_draw(philox, values[SCALE].range.from, values[SCALE].range.to);
        affine.shear_x = warp_draw(philox, x.from, x.to);
        affine.shear_y = warp_draw(philox, y.from, y.to);
        return fold_affine(fold, &affine, &look, why);
}

static int check_shear(const struct value *shear, struct why *why) {
        struct range x = shear_range(shear, false), y = shear_range(shear, true);

        if (x.from > x.to)
                return why_set(why, -EINVAL, "shear along x is from %g to %g; expected %s", x.from, x.to,
                               shear->n_list == 1 ? "a number that is not negative" : "a range that goes upwards");
        if (y.from > y.to)
                return why_set(why, -EINVAL, "shear along y is from %g to %g; expected a range that goes upwards",
                               y.from, y.to);
        return 0;
}

static int convert(const struct value *values, struct conversion *conversion, struct why *why) {
        int r = check_shear(&values[SHEAR], why);

        return r < 0 ? r : warp_check(&values[INTERPOLATION], &values[FILL], conversion, why);
}

const struct step_type step_random_affine = {
        .kind = { .name = "random_affine",
                  .doc = "Turns the picture clockwise, moves it by at most these shares of its width and height, "
                         "scales it (0.01 to 100), and shears it by degrees (-89 to 89): `shear` is one number (the "
                         "most to both sides, along x), a range along x, or two ranges, the second along y.",
                  .like = "torchvision.transforms.v2.RandomAffine",
                  .example = "random_affine(10, translate=0.1:0.1, scale=0.9:1.1)",
                  .arguments = ARGUMENTS([DEGREES] = { ARGUMENT_AROUND, "degrees", NULL, -360, 360 },
                                         [TRANSLATE] = { ARGUMENT_LIST, "translate", "0:0", 0, 1, .counts = 1u << 2,
                                                         .form = "X:Y" },
                                         [SCALE] = { ARGUMENT_RANGE, "scale", "1:1", 0.01, 100 },
                                         [SHEAR] = { ARGUMENT_LIST, "shear", "0", -89, 89,
                                                     .counts = 1u << 1 | 1u << 2 | 1u << 4,
                                                     .form = "N, FROM:TO or FROM:TO:FROM:TO" },
                                         [INTERPOLATION] = ARGUMENT_WARP_FILTER("nearest"), [FILL] = ARGUMENT_FILL,
                                         [CENTER] = ARGUMENT_CENTER) },
        .stage = STAGE_RANDOM_AFFINE,
        .plan = plan,
        .convert = convert,
};
