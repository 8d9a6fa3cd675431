/* augment/steps/pixels/color_jitter.c: torchvision's ColorJitter.
 *
 * Draws seven words, whatever the arguments. The first three give the order of the four adjustments, shuffled from
 * brightness, contrast, saturation, hue: for i = 0, 1, 2 the one at index i is swapped with the one at index i +
 * below(4 - i). The next four are f32 u, one for each adjustment in the sequence of the arguments: its factor is from +
 * (to - from) * u, in float64, rounded to float32. An adjustment whose range allows only "no change" is left out, as in
 * torchvision. */
#include "daemon/augment/step.h"

enum {
        BRIGHTNESS,
        CONTRAST,
        SATURATION,
        HUE,
        N_ADJUSTMENTS
};

static const struct operation_type *const ADJUSTMENTS[N_ADJUSTMENTS] = {
        [BRIGHTNESS] = &operation_brightness,
        [CONTRAST] = &operation_contrast,
        [SATURATION] = &operation_saturation,
        [HUE] = &operation_hue,
};

static void draw_sequence(struct dlp_philox *philox, uint32_t *ret_sequence) {
        for (uint32_t i = 0; i < N_ADJUSTMENTS; i++)
                ret_sequence[i] = i;
        for (uint32_t i = 0; i + 1 < N_ADJUSTMENTS; i++) {
                uint32_t other = i + dlp_philox_below(philox, N_ADJUSTMENTS - i), kept = ret_sequence[i];

                ret_sequence[i] = ret_sequence[other];
                ret_sequence[other] = kept;
        }
}

static float draw_factor(struct dlp_philox *philox, const struct range *range) {
        return (float)(range->from + (range->to - range->from) * (double)dlp_philox_f32(philox));
}

static bool leaves_as_is(const struct range *range, uint32_t adjustment) {
        double neutral = adjustment == HUE ? 0 : 1;

        return range->from == neutral && range->to == neutral;
}

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        uint32_t sequence[N_ADJUSTMENTS];
        float factors[N_ADJUSTMENTS];

        (void)why;
        draw_sequence(philox, sequence);
        for (uint32_t i = 0; i < N_ADJUSTMENTS; i++)
                factors[i] = draw_factor(philox, &values[i].range);
        for (uint32_t i = 0; i < N_ADJUSTMENTS; i++) {
                uint32_t which = sequence[i];

                if (!leaves_as_is(&values[which].range, which))
                        fold_operate(fold, &(struct operation){ ADJUSTMENTS[which], factors[which] });
        }
        return 0;
}

static bool can_be_left(const struct value *values, uint32_t *ret_n_operations) {
        *ret_n_operations = 0;
        for (uint32_t i = 0; i < N_ADJUSTMENTS; i++)
                *ret_n_operations += !leaves_as_is(&values[i].range, i);
        return true;
}

/* Pillow makes HSV of colours only, and alpha is lost on the way. */
static int convert(const struct value *values, struct conversion *conversion, struct why *why) {
        unsigned modes = 1u << PIXELS_P | 1u << PIXELS_I16;

        if (!leaves_as_is(&values[HUE].range, HUE))
                return mode_check(conversion, modes | 1u << PIXELS_RGBA | 1u << PIXELS_LA, "mode=RGB, or no hue", why);
        return mode_check(conversion, modes, "mode=RGB, L, RGBA or LA", why);
}

const struct step_type step_color_jitter = {
        .kind = { .name = "color_jitter",
                  .doc = "Changes the four properties by random factors, in a random sequence. An argument is either "
                         "the largest distance from 1 (`hue`: from 0), or a range `from:to`, 0 to 1000 (`hue`: -0.5 "
                         "to 0.5). The pixels are those of torchvision on Pillow's pictures.",
                  .like = "torchvision.transforms.v2.ColorJitter",
                  .example = "color_jitter(0.4, 0.4, 0.4)",
                  .arguments = ARGUMENTS([BRIGHTNESS] = { ARGUMENT_AROUND, "brightness", "0", 0, 1000, .center = 1 },
                                         [CONTRAST] = { ARGUMENT_AROUND, "contrast", "0", 0, 1000, .center = 1 },
                                         [SATURATION] = { ARGUMENT_AROUND, "saturation", "0", 0, 1000, .center = 1 },
                                         [HUE] = { ARGUMENT_AROUND, "hue", "0", -0.5, 0.5, .center = 0 }) },
        .stage = STAGE_COLOR_JITTER,
        .plan = plan,
        .convert = convert,
        .can_be_left = can_be_left,
};
