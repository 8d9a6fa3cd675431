/* augment/steps/normalize.c: torchvision's Normalize: (level / 255 - mean) / std, for each channel. */
#include "daemon/augment/step.h"

#include <errno.h>

enum {
        MEAN,
        STD
};

#define FORM "N or R:G:B"

static int convert(const struct value *values, struct conversion *conversion, struct why *why) {
        const struct value *mean = &values[MEAN], *deviation = &values[STD];

        if (conversion->is_normalized)
                return why_set(why, -EINVAL, "numbers are normalized twice; expected one \"normalize\"");
        if (conversion->has_dtype && conversion->format.dtype == DLP_DTYPE_UINT8)
                return why_set(why, -EINVAL, "normalized numbers cannot be uint8; expected to(float32), or no \"to\"");
        if (conversion->format.n_channels == 1 && (mean->n_list > 1 || deviation->n_list > 1))
                return why_set(why, -EINVAL, "three means or deviations, but grayscale(1) leaves one channel");

        conversion->is_normalized = true;
        for (uint32_t i = 0; i < PIXEL_BYTES; i++) {
                conversion->mean[i] = (float)mean->list[mean->n_list == 1 ? 0 : i];
                conversion->deviation[i] = (float)deviation->list[deviation->n_list == 1 ? 0 : i];
        }
        return 0;
}

const struct step_type step_normalize = {
        .name = "normalize",
        .example = "normalize(mean=0.485:0.456:0.406, std=0.229:0.224:0.225)",
        .arguments = {
                [MEAN] = { ARGUMENT_LIST, "mean", NULL, -1e6, 1e6, .counts = 1u << 1 | 1u << 3, .form = FORM },
                [STD] = { ARGUMENT_LIST, "std", NULL, 1e-6, 1e6, .counts = 1u << 1 | 1u << 3, .form = FORM },
        },
        .convert = convert,
};
