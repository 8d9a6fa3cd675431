/* augment/steps/random_resize.c: torchvision v2's RandomResize: the short side becomes a size of min_size to
 * max_size - 1, as Resize(size) would make it. Draws one word, below the number of sizes. */
#include "daemon/augment/step.h"

#include <errno.h>

enum {
        MIN_SIZE,
        MAX_SIZE,
        INTERPOLATION
};

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        uint32_t least = (uint32_t)values[MIN_SIZE].list[0], end = (uint32_t)values[MAX_SIZE].list[0];
        uint64_t width, height;

        crop_resize_short(fold_width(fold), fold_height(fold), least + dlp_philox_below(philox, end - least), &width,
                          &height);
        return fold_resize(fold, width, height, (enum resize_filter)values[INTERPOLATION].choice, why);
}

static void output(const struct value *values, uint32_t *height, uint32_t *width) {
        (void)values;
        *height = *width = 0;
}

static int convert(const struct value *values, struct conversion *conversion, struct why *why) {
        if (values[MIN_SIZE].list[0] >= values[MAX_SIZE].list[0])
                return why_set(why, -EINVAL,
                               "min_size %.0f and max_size %.0f: sizes are drawn from min_size to max_size - 1, so "
                               "max_size has to be larger; resize(%.0f) has one size",
                               values[MIN_SIZE].list[0], values[MAX_SIZE].list[0], values[MIN_SIZE].list[0]);
        return filter_check(&values[INTERPOLATION], conversion, why);
}

#define ARGUMENT_PIXELS(name)                                                                                          \
        { ARGUMENT_LIST, name, NULL, 1, RECIPE_SIZE_MAX, .counts = 1u << 1, .is_whole = true, .form = "N" }

const struct step_type step_random_resize = {
        .kind = { .name = "random_resize",
                  .doc = "The short side becomes a number from `min_size` to `max_size` - 1, and the long one keeps "
                         "the aspect ratio.",
                  .like = "torchvision.transforms.v2.RandomResize",
                  .example = "random_resize(256, 480)",
                  .arguments =
                          ARGUMENTS([MIN_SIZE] = ARGUMENT_PIXELS("min_size"), [MAX_SIZE] = ARGUMENT_PIXELS("max_size"),
                                    [INTERPOLATION] = ARGUMENT_INTERPOLATION) },
        .stage = STAGE_RANDOM_RESIZE,
        .plan = plan,
        .output = output,
        .convert = convert,
};
