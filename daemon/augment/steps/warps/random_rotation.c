/* augment/steps/warps/random_rotation.c: torchvision's RandomRotation. Draws one f32 u: the angle is from + (to - from)
 * * u, in float64, rounded to float32. And what the other steps of this folder have in common with it. */
#include <errno.h>
#include <math.h>

#include "daemon/augment/steps/warps/warps.h"

enum {
        DEGREES,
        INTERPOLATION,
        EXPAND,
        CENTER,
        FILL
};

struct warp_look warp_look_of(const struct value *filter, const struct value *fill) {
        struct warp_look look = { .filter = (enum warp_filter)filter->choice };

        for (uint32_t i = 0; i < PIXEL_BYTES; i++)
                look.fill[i] = (uint8_t)fill->list[fill->n_list == 1 ? 0 : i];
        return look;
}

struct warp_center warp_center_of(const struct value *value) {
        if (value->n_list == 0)
                return (struct warp_center){ 0 };
        return (struct warp_center){ .is_given = true, .x = value->list[0], .y = value->list[1] };
}

double warp_draw(struct dlp_philox *philox, double from, double to) {
        return (double)(float)(from + (to - from) * (double)dlp_philox_f32(philox));
}

int warp_check(const struct value *filter, const struct value *fill, const struct conversion *conversion,
               struct why *why) {
        int r = fill_check(fill, conversion, why);

        if (r == 0 && conversion->format.mode == PIXELS_I16 && filter->choice != WARP_NEAREST)
                r = why_set(why, -EINVAL,
                            "numbers of 16 bits are not mixed; expected interpolation=nearest with mode=I;16, or "
                            "another mode");
        return r;
}

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        double angle = warp_draw(philox, values[DEGREES].range.from, values[DEGREES].range.to);
        struct warp_look look = warp_look_of(&values[INTERPOLATION], &values[FILL]);
        struct warp_center center = warp_center_of(&values[CENTER]);

        return fold_rotate(fold, angle, values[EXPAND].choice, &center, &look, why);
}

/* The canvas follows from the angle. */
static void output(const struct value *values, uint32_t *height, uint32_t *width) {
        if (values[EXPAND].choice)
                *height = *width = 0;
}

/* The diagonal, and what rounding adds on both sides. */
static void bound(const struct value *values, uint32_t *height, uint32_t *width) {
        if (values[EXPAND].choice && *width > 0)
                *height = *width = (uint32_t)ceil(sqrt((double)*height * *height + (double)*width * *width)) + 2;
}

static int convert(const struct value *values, struct conversion *conversion, struct why *why) {
        return warp_check(&values[INTERPOLATION], &values[FILL], conversion, why);
}

const struct step_type step_random_rotation = {
        .kind = { .name = "random_rotation",
                  .doc = "Turns the picture anticlockwise by an angle of at most `degrees`, to both sides, or of a "
                         "range `from:to`, -360 to 360. `expand=true` makes the canvas so large that nothing is lost; "
                         "results then vary in size. `center` is in pixels from the top left corner; without it, it "
                         "is the middle. `interpolation` is nearest, bilinear or bicubic. `fill` (one number, or "
                         "three of a colour, 0 to 255) is where the picture has no pixels.",
                  .like = "torchvision.transforms.v2.RandomRotation",
                  .example = "random_rotation(15)",
                  .arguments = ARGUMENTS([DEGREES] = { ARGUMENT_AROUND, "degrees", NULL, -360, 360 },
                                         [INTERPOLATION] = ARGUMENT_WARP_FILTER("nearest"),
                                         [EXPAND] = { ARGUMENT_FLAG, "expand", "false" }, [CENTER] = ARGUMENT_CENTER,
                                         [FILL] = ARGUMENT_FILL) },
        .stage = STAGE_RANDOM_ROTATION,
        .plan = plan,
        .output = output,
        .bound = bound,
        .convert = convert,
};
