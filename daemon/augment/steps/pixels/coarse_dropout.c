/* augment/steps/pixels/coarse_dropout.c: Albumentations' CoarseDropout.
 *
 * Draws three words: an f32, below p means yes; and the seed of the stream from which the holes are drawn, as
 * operations/erase.c says. Heights and widths are shares of the picture's sides, or pixels, if the longest height is 1
 * or more. */
#include "daemon/augment/noise.h"
#include "daemon/augment/step.h"

#include <errno.h>

#define N_HOLES_MAX 1000

enum {
        N_HOLES,
        HEIGHT,
        WIDTH,
        FILL,
        PROBABILITY
};

static double last_of(const struct value *value) {
        return value->list[value->n_list - 1];
}

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        const struct value *fill = &values[FILL];
        bool happens = step_happens(&values[PROBABILITY], philox);
        struct operation operation = {
                .type = &operation_holes,
                .others = { (float)values[HEIGHT].list[0], (float)last_of(&values[HEIGHT]),
                            (float)values[WIDTH].list[0], (float)last_of(&values[WIDTH]) },
                .box = { .x = (uint32_t)values[N_HOLES].list[0], .y = (uint32_t)last_of(&values[N_HOLES]) },
                .flag = fill->n_list == 0,
                .seed = noise_seed(philox),
        };

        (void)why;
        for (uint32_t i = 0; i < PIXEL_BYTES && fill->n_list > 0; i++)
                operation.color[i] = (uint8_t)fill->list[fill->n_list == 1 ? 0 : i];
        if (happens)
                fold_operate(fold, &operation);
        return 0;
}

static int convert(const struct value *values, struct conversion *conversion, struct why *why) {
        double height = last_of(&values[HEIGHT]), width = last_of(&values[WIDTH]);

        if ((height >= 1) != (width >= 1))
                return why_set(
                        why, -EINVAL,
                        "hole_height goes up to %g and hole_width to %g; expected shares below 1 in both, or pixels "
                        "in both",
                        height, width);
        if (levels_check(values, conversion, why) < 0)
                return -EINVAL;
        return fill_check(&values[FILL], conversion, why);
}

const struct step_type step_coarse_dropout = {
        .kind = { .name = "coarse_dropout",
                  .doc = "Gives `num_holes` rectangles the colour `fill` or, with `fill=random`, random levels. "
                         "Heights and widths are shares of the picture's sides, or pixels, if the ranges end at 1 or "
                         "above (0 to 16384). Masks and boxes stay as they are.",
                  .like = "albumentations.CoarseDropout",
                  .example = "coarse_dropout(1:8)",
                  .arguments = ARGUMENTS([N_HOLES] = { ARGUMENT_LIST, "num_holes", "1:2", 1, N_HOLES_MAX,
                                                       .counts = 1u << 1 | 1u << 2, .is_whole = true, .is_range = true,
                                                       .form = "N or FROM:TO", .other_name = "num_holes_range" },
                                         [HEIGHT] = { ARGUMENT_LIST, "hole_height", "0.1:0.2", 0, RECIPE_SIZE_MAX,
                                                      .counts = 1u << 1 | 1u << 2, .is_range = true,
                                                      .form = "N or FROM:TO", .other_name = "hole_height_range" },
                                         [WIDTH] = { ARGUMENT_LIST, "hole_width", "0.1:0.2", 0, RECIPE_SIZE_MAX,
                                                     .counts = 1u << 1 | 1u << 2, .is_range = true,
                                                     .form = "N or FROM:TO", .other_name = "hole_width_range" },
                                         [FILL] = { ARGUMENT_LIST, "fill", "0", 0, 255, .counts = 1u << 1 | 1u << 3,
                                                    .is_whole = true, .form = "N or R:G:B", .word = "random" },
                                         [PROBABILITY] = { ARGUMENT_NUMBER, "p", "0.5", 0, 1 }) },
        .stage = STAGE_COARSE_DROPOUT,
        .plan = plan,
        .convert = convert,
};
