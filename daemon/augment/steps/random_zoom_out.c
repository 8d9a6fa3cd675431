/* augment/steps/random_zoom_out.c: torchvision v2's RandomZoomOut: puts the picture somewhere on a larger canvas.
 *
 * Draws four f32, whatever the arguments: below p means yes; how many times as large the canvas is, from + u * (to -
 * from); how much of the room is to the left; how much above. All is computed in float32 and truncated, as there. */
#include "daemon/augment/step.h"

#include <errno.h>
#include <inttypes.h>

enum {
        FILL,
        SIDE_RANGE,
        PROBABILITY
};

#define SIDE_MAX 16.0

static float draw_side(const struct range *range, struct dlp_philox *philox) {
        float reach = (float)(range->to - range->from);

        return (float)range->from + dlp_philox_f32(philox) * reach;
}

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        static const struct value CONSTANT = { .choice = BORDER_CONSTANT };
        bool happens = step_happens(&values[PROBABILITY], philox);
        float side = draw_side(&values[SIDE_RANGE].range, philox);
        float left = dlp_philox_f32(philox), top = dlp_philox_f32(philox);
        uint32_t width = (uint32_t)((float)fold_width(fold) * side) - fold_width(fold); /* of what is added */
        uint32_t height = (uint32_t)((float)fold_height(fold) * side) - fold_height(fold);
        struct padding padding = { .left = (uint32_t)((float)width * left), .top = (uint32_t)((float)height * top) };
        struct border border = border_of(&values[FILL], &CONSTANT);

        if (!happens)
                return 0;
        padding.right = width - padding.left;
        padding.bottom = height - padding.top;
        if (width > RECIPE_PADDING_MAX || height > RECIPE_PADDING_MAX)
                return why_set(why, -EFBIG,
                               "random_zoom_out: %" PRIu32 " x %" PRIu32 " pixels would get %" PRIu32
                               " more columns and %" PRIu32 " more rows; at most %u are allowed: resize before it",
                               fold_width(fold), fold_height(fold), width, height, RECIPE_PADDING_MAX);
        return fold_pad(fold, &padding, &border, why);
}

static bool changes(const struct value *values) {
        return values[PROBABILITY].number > 0 && values[SIDE_RANGE].range.to > 1;
}

static void output(const struct value *values, uint32_t *height, uint32_t *width) {
        if (changes(values))
                *height = *width = 0;
}

/* What is rounded in float32 is above by less than one pixel. */
static void bound(const struct value *values, uint32_t *height, uint32_t *width) {
        if (!changes(values) || *height == 0)
                return;
        *height = (uint32_t)(*height * values[SIDE_RANGE].range.to) + 1;
        *width = (uint32_t)(*width * values[SIDE_RANGE].range.to) + 1;
}

static int convert(const struct value *values, struct conversion *conversion, struct why *why) {
        return fill_check(&values[FILL], conversion, why);
}

const struct step_type step_random_zoom_out = {
        .kind = { .name = "random_zoom_out",
                  .doc = "Puts the picture somewhere on a canvas that is `side_range` times as wide and high (1 to "
                         "16).",
                  .like = "torchvision.transforms.v2.RandomZoomOut",
                  .example = "random_zoom_out(side_range=1:4, p=0.5)",
                  .arguments = ARGUMENTS([FILL] = ARGUMENT_FILL,
                                         [SIDE_RANGE] = { ARGUMENT_RANGE, "side_range", "1:4", 1, SIDE_MAX },
                                         [PROBABILITY] = { ARGUMENT_NUMBER, "p", "0.5", 0, 1 }) },
        .stage = STAGE_RANDOM_ZOOM_OUT,
        .plan = plan,
        .output = output,
        .bound = bound,
        .convert = convert,
};
