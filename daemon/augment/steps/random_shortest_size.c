/* augment/steps/random_shortest_size.c: torchvision v2's RandomShortestSize: the short side becomes one of several sizes,
 * unless the long one would then exceed max_size. Draws one word, below the number of sizes. In float64, truncated. */
#include "daemon/augment/step.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

enum {
        MIN_SIZE,
        MAX_SIZE,
        INTERPOLATION
};

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        const struct value *sizes = &values[MIN_SIZE], *most = &values[MAX_SIZE];
        double wanted = sizes->list[dlp_philox_below(philox, sizes->n_list)];
        double width = fold_width(fold), height = fold_height(fold), r = wanted / fmin(height, width);

        if (most->n_list > 0)
                r = fmin(r, most->list[0] / fmax(height, width));
        if (width * r < 1 || height * r < 1)
                return why_set(why, -ERANGE,
                               "random_shortest_size: %" PRIu32 " x %" PRIu32
                               " pixels with at most %.0f on the long side leave no pixel on the short one; raise "
                               "max_size, or crop first",
                               fold_width(fold), fold_height(fold), most->list[0]);
        return fold_resize(fold, (uint64_t)(width * r), (uint64_t)(height * r),
                           (enum resize_filter)values[INTERPOLATION].choice, why);
}

static void output(const struct value *values, uint32_t *height, uint32_t *width) {
        (void)values;
        *height = *width = 0;
}

/* Without max_size, the long side of a picture may have any length. */
static void bound(const struct value *values, uint32_t *height, uint32_t *width) {
        *height = *width = values[MAX_SIZE].n_list > 0 ? (uint32_t)values[MAX_SIZE].list[0] : 0;
}

static int convert(const struct value *values, struct conversion *conversion, struct why *why) {
        return filter_check(&values[INTERPOLATION], conversion, why);
}

#define ARGUMENT_PIXELS(name, how_many, described, optional)                                                           \
        {                                                                                                              \
                ARGUMENT_LIST, name, NULL, 1, RECIPE_SIZE_MAX, .counts = how_many, .is_whole = true,                   \
                                                               .form = described, .is_optional = optional              \
        }

const struct step_type step_random_shortest_size = {
        .kind = { .name = "random_shortest_size",
                  .doc = "The short side becomes one of the numbers of `min_size` (480:512:544, at most 31 of them), "
                         "or less, if the long side would exceed `max_size` otherwise.",
                  .like = "torchvision.transforms.v2.RandomShortestSize",
                  .example = "random_shortest_size(480:512:544, max_size=1333)",
                  .arguments = ARGUMENTS([MIN_SIZE] = ARGUMENT_PIXELS("min_size", ~1u, "N or N:N", false),
                                         [MAX_SIZE] = ARGUMENT_PIXELS("max_size", 1u << 1, "N", true),
                                         [INTERPOLATION] = ARGUMENT_INTERPOLATION) },
        .stage = STAGE_RANDOM_SHORTEST_SIZE,
        .plan = plan,
        .output = output,
        .bound = bound,
        .convert = convert,
};
