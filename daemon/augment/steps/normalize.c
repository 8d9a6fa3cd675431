/* augment/steps/normalize.c: torchvision's Normalize: (level / 255 - mean) / std, for each channel. */
#include "daemon/augment/step.h"

#include <errno.h>

enum {
        MEAN,
        STD
};

#define FORM   "N or a number for each channel"
#define COUNTS (1u << 1 | 1u << 2 | 1u << 3 | 1u << 4)

static bool normalize_fits(const struct value *numbers, uint32_t n_channels) {
        return numbers->n_list == 1 || numbers->n_list == n_channels;
}

static int convert(const struct value *values, struct conversion *conversion, struct why *why) {
        const struct value *mean = &values[MEAN], *deviation = &values[STD];
        uint32_t n_channels = conversion->format.n_channels;
        int r;

        if (conversion->is_normalized)
                return why_set(why, -EINVAL, "numbers are normalized twice; expected one \"normalize\"");
        if (conversion->has_erasing)
                return why_set(why, -EINVAL, "it would change what was erased; expected normalize before erasing");
        if (conversion->has_dtype && conversion->format.dtype == DLP_DTYPE_UINT8)
                return why_set(why, -EINVAL, "normalized numbers cannot be uint8; expected to(float32), or no \"to\"");
        if (!normalize_fits(mean, n_channels) || !normalize_fits(deviation, n_channels))
                return why_set(why, -EINVAL,
                               "%u means and %u deviations for %u channel%s; expected one, or one for each",
                               mean->n_list, deviation->n_list, n_channels, n_channels == 1 ? "" : "s");
        r = mode_check(conversion, 1u << PIXELS_P, "a mode whose numbers are levels", why);
        if (r < 0)
                return r;

        conversion->is_normalized = true;
        for (uint32_t i = 0; i < CHANNELS_MAX; i++) {
                conversion->mean[i] = (float)mean->list[mean->n_list == 1 ? 0 : i];
                conversion->deviation[i] = (float)deviation->list[deviation->n_list == 1 ? 0 : i];
        }
        return 0;
}

const struct step_type step_normalize = {
        .kind = { .name = "normalize",
                  .doc = "Makes (x / 255 - mean) / std of each level x, in float32; the result is rounded once, at "
                         "the end, if `to` asks for 16 bits. Without `to` the numbers are float32. `mean` (-1000000 "
                         "to 1000000) and `std` (0.000001 to 1000000) are one number, or one for each channel, as "
                         "`red:green:blue`.",
                  .like = "torchvision.transforms.v2.Normalize",
                  .example = "normalize(mean=0.485:0.456:0.406, std=0.229:0.224:0.225)",
                  .arguments = ARGUMENTS([MEAN] = { ARGUMENT_LIST, "mean", NULL, -1e6, 1e6, .counts = COUNTS,
                                                    .form = FORM },
                                         [STD] = { ARGUMENT_LIST, "std", NULL, 1e-6, 1e6, .counts = COUNTS,
                                                   .form = FORM }) },
        .convert = convert,
};
