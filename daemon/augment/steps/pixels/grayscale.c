/* augment/steps/pixels/grayscale.c: torchvision's Grayscale. Draws nothing.
 *
 * Stages always have three channels. A single channel is delivered as the first of three equal ones, and all later
 * steps keep them equal: the result is the same as torchvision's for a picture of one channel. */
#include "daemon/augment/step.h"

#include <errno.h>

enum {
        N_OUTPUT_CHANNELS
};

static const char *const N_CHANNELS_NAMES[] = { "1", "3" };

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        (void)philox;
        (void)why;
        fold_operate(fold, &(struct operation){ &operation_grayscale, 0 });
        fold->is_grey = values[N_OUTPUT_CHANNELS].choice == 0;
        return 0;
}

int mode_check(const struct conversion *conversion, unsigned modes, const char *expected, struct why *why) {
        enum pixel_mode mode = conversion->format.mode;

        if (modes & 1u << mode)
                return why_set(why, -EINVAL, "is not for pictures that are decoded with mode=%s; expected %s",
                               PIXEL_MODE_NAMES[mode], expected);
        return 0;
}

static int convert(const struct value *values, struct conversion *conversion, struct why *why) {
        int r = mode_check(conversion, ~(1u << PIXELS_RGB | 1u << PIXELS_L), "mode=RGB, or mode=L without this step",
                           why);

        if (r == 0)
                conversion->format.n_channels = values[N_OUTPUT_CHANNELS].choice == 0 ? 1 : PIXEL_BYTES;
        return r;
}

/* With one channel, a third of the bytes cross the link: that is done here. */
static bool can_be_left(const struct value *values, uint32_t *ret_n_operations) {
        *ret_n_operations = 1;
        return values[N_OUTPUT_CHANNELS].choice != 0;
}

const struct step_type step_grayscale = {
        .kind = { .name = "grayscale",
                  .doc = "Converts to grey, and delivers 1 channel or 3 equal ones.",
                  .like = "torchvision.transforms.v2.Grayscale",
                  .example = "grayscale(3)",
                  .arguments = ARGUMENTS([N_OUTPUT_CHANNELS] = { ARGUMENT_CHOICE, "num_output_channels", "1",
                                                                 .choices = N_CHANNELS_NAMES, .n_choices = 2 }) },
        .stage = STAGE_GRAYSCALE,
        .plan = plan,
        .convert = convert,
        .can_be_left = can_be_left,
};
