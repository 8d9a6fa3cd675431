/* augment/steps/step_layout.c: the layout of a batch's numbers: pixel after pixel, or channel after channel. */
#include "daemon/augment/step.h"

#include <errno.h>

enum {
        ORDER
};

/* The last one has the bytes of the first: a client for torch describes them as torch's memory format of that name,
 * [n, channels, height, width] with strides. */
enum {
        NHWC,
        NCHW,
        CHANNELS_LAST,
        N_ORDERS
};

static const char *const ORDER_NAMES[] = { [NHWC] = "nhwc", [NCHW] = "nchw", [CHANNELS_LAST] = "channels_last" };

static int convert(const struct value *values, struct conversion *conversion, struct why *why) {
        if (conversion->has_layout)
                return why_set(why, -EINVAL, "the layout is given twice; expected one \"layout\"");
        conversion->has_layout = true;
        conversion->format.channels_first = values[ORDER].choice == NCHW;
        return 0;
}

const struct step_type step_layout = {
        .kind = { .name = "layout",
                  .doc = "Puts the channels where they are wanted: `nhwc` (height x width x channel, the default) or "
                         "`nchw` (channel x height x width, as ToTensor's), without gaps. `channels_last` has the "
                         "bytes of nhwc; the Python client gives them to torch as its memory format of that name: [n, "
                         "channels, height, width] with strides, without a copy.",
                  .example = "layout(nchw)",
                  .arguments = ARGUMENTS([ORDER] = { ARGUMENT_CHOICE, "order", NULL, .choices = ORDER_NAMES,
                                                     .n_choices = N_ORDERS }) },
        .convert = convert,
};
