/* augment/steps/pixels/erasing.c: torchvision's RandomErasing.
 *
 * Draws one f32: below p means yes. Then two words, the seed of random values. Then it makes up to ten attempts to draw
 * a rectangle: two f64, for its area and the logarithm of its height divided by its width, in torchvision's arithmetic;
 * if it is lower and narrower than the picture, two words give its top and its left, and else, after the tenth, nothing
 * is erased.
 *
 * Before the pixels become floats the value is levels, and random values are levels of equal probability. Afterwards it
 * is written to the result, in the result's numbers, and random values are those of a normal distribution. That is what
 * torchvision does with a tensor of floats; what it makes of random values in uint8 has no use. */
#include "daemon/augment/noise.h"
#include "daemon/augment/step.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

#define N_ATTEMPTS 10u /* torchvision's */

enum {
        PROBABILITY,
        SCALE,
        RATIO,
        VALUE
};

/* False if no rectangle fits. It may be empty. */
static bool draw_box(const struct value *values, uint32_t width, uint32_t height, struct dlp_philox *philox,
                     struct box *ret_box) {
        const struct range *scale = &values[SCALE].range, *ratio = &values[RATIO].range;
        double area = (double)((uint64_t)width * height);
        struct range log_ratio = { log(ratio->from), log(ratio->to) };

        for (unsigned attempt = 0; attempt < N_ATTEMPTS; attempt++) {
                double target = area * (scale->from + (scale->to - scale->from) * dlp_philox_f64(philox));
                double shape = exp(log_ratio.from + (log_ratio.to - log_ratio.from) * dlp_philox_f64(philox));
                double box_height = rint(sqrt(target * shape)), box_width = rint(sqrt(target / shape));

                if (box_height >= height || box_width >= width)
                        continue;
                ret_box->height = (uint32_t)box_height;
                ret_box->width = (uint32_t)box_width;
                ret_box->y = dlp_philox_below(philox, height - ret_box->height + 1);
                ret_box->x = dlp_philox_below(philox, width - ret_box->width + 1);
                return true;
        }
        return false;
}

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        const struct value *value = &values[VALUE];
        struct operation operation = { .type = &operation_erase, .flag = value->n_list == 0 };
        bool happens = step_happens(&values[PROBABILITY], philox);

        (void)why;
        operation.seed = noise_seed(philox);
        if (!draw_box(values, fold_width(fold), fold_height(fold), philox, &operation.box) || !happens)
                return 0;
        if (fold->is_formed) {
                fold_erase(fold, &operation.box, value->list, value->n_list, operation.seed);
                return 0;
        }
        for (uint32_t i = 0; i < PIXEL_BYTES && value->n_list > 0; i++)
                operation.color[i] = (uint8_t)value->list[value->n_list == 1 ? 0 : i];
        fold_operate(fold, &operation);
        return 0;
}

/* Levels, before the pixels become floats. */
static int check_levels(const struct value *value, const struct conversion *conversion, struct why *why) {
        int r = mode_check(conversion, ~(1u << PIXELS_RGB | 1u << PIXELS_L),
                           "mode=RGB or L, or to(float32) before this step", why);

        for (uint32_t i = 0; i < value->n_list && r == 0; i++)
                if (value->list[i] < 0 || value->list[i] > 255 || rint(value->list[i]) != value->list[i])
                        r = why_set(why, -EINVAL,
                                    "value: %g is not a level; expected whole numbers from 0 to 255, or to(float32) or "
                                    "normalize before this step, whose numbers it then writes",
                                    value->list[i]);
        return r;
}

static int convert(const struct value *values, struct conversion *conversion, struct why *why) {
        const struct value *value = &values[VALUE];
        uint32_t n_channels = conversion->format.n_channels;

        if (value->n_list > 1 && value->n_list != n_channels)
                return why_set(why, -EINVAL, "value: %" PRIu32 " numbers for %" PRIu32 " channels; expected 1%s",
                               value->n_list, n_channels, n_channels == 1 ? "" : ", or one for each");
        if (!conversion_makes_floats(conversion))
                return check_levels(value, conversion, why);
        conversion->has_erasing = true;
        return 0;
}

const struct step_type step_erasing = {
        .kind = { .name = "erasing",
                  .other_names = "RandomErasing",
                  .doc = "With the probability `p`, a rectangle gets the `value`, which is one number, one for each "
                         "channel, or `random`. `scale` is the range of its share of the picture's area (0 to 1), "
                         "`ratio` that of its height divided by its width (0.001 to 1000). Nothing is erased if ten "
                         "attempts give no rectangle that is smaller than the picture. Masks and boxes stay as they "
                         "are, as with torchvision.\n\n"
                         "This step may also follow `to`, `normalize` and `layout`. Where they have made floats, the "
                         "value is in these numbers (-100000 to 100000), and random values are those of a normal "
                         "distribution, one for each pixel and channel: so `normalize(...) erasing(0.25)` writes "
                         "zeros, which is the mean colour, as torchvision's and timm's recipes do. Without floats the "
                         "value is a level, 0 to 255, and random ones are all equally probable. Nothing of such a "
                         "pipeline is left to a device.",
                  .like = "torchvision.transforms.v2.RandomErasing",
                  .example = "erasing(0.25)",
                  .arguments = ARGUMENTS([PROBABILITY] = { ARGUMENT_NUMBER, "p", "0.5", 0, 1 },
                                         [SCALE] = { ARGUMENT_RANGE, "scale", "0.02:0.33", 0, 1 },
                                         [RATIO] = { ARGUMENT_RANGE, "ratio", "0.3:3.3", 0.001, 1000 },
                                         [VALUE] = { ARGUMENT_LIST, "value", "0", -100000, 100000,
                                                     .counts = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4,
                                                     .form = "N or one for each channel", .word = "random" }) },
        .stage = STAGE_ERASING,
        .plan = plan,
        .convert = convert,
        .may_follow_form = true,
};
