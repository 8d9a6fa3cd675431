/* augment/steps/to.c: the type of the output's numbers. Float values are torchvision's ToTensor, level / 255, or those of
 * its v2.ToDtype(scale=True), level * (1 / 255), of which half differ in the last bit. */
#include "daemon/augment/step.h"

#include <errno.h>

enum {
        DTYPE,
        SCALE
};

static const char *const DTYPE_NAMES[] = { "uint8", "float16", "bfloat16", "float32" };
static const char *const SCALE_NAMES[] = { "divide", "multiply" };
static const enum dlp_dtype DTYPES[] = { DLP_DTYPE_UINT8, DLP_DTYPE_FLOAT16, DLP_DTYPE_BFLOAT16, DLP_DTYPE_FLOAT32 };

static int convert(const struct value *values, struct conversion *conversion, struct why *why) {
        enum dlp_dtype dtype = DTYPES[values[DTYPE].choice];

        if (conversion->has_dtype)
                return why_set(why, -EINVAL, "the type of the numbers is given twice; expected one \"to\"");
        if (dtype == DLP_DTYPE_UINT8 && conversion->is_normalized)
                return why_set(why, -EINVAL,
                               "normalized numbers cannot be uint8; expected float16, bfloat16 or float32");
        if (dtype == DLP_DTYPE_UINT8 && conversion->format.mode == PIXELS_I16)
                return why_set(why, -EINVAL,
                               "16 bits do not fit into uint8; expected float32, or mode=L, or no \"to\" for uint16");
        if (dtype != DLP_DTYPE_UINT8 &&
            mode_check(conversion, 1u << PIXELS_P, "no \"to\", because indices are not levels", why) < 0)
                return -EINVAL;
        conversion->has_dtype = true;
        conversion->format.dtype = dtype;
        conversion->multiplies = values[SCALE].choice == 1;
        return 0;
}

const struct step_type step_to = {
        .kind = { .name = "to",
                  .other_names = "ToDtype ConvertImageDtype",
                  .doc = "Sets the type of the delivered numbers: `uint8`, or `float32`, `float16` or `bfloat16`, for "
                         "which values are divided by 255 as ToTensor does (with mode=I;16 by 65535). That is "
                         "`scale=divide`, the default. With `scale=multiply` they are multiplied by 1/255 in float32, "
                         "as torchvision's v2.ToDtype(scale=True) and v2.ConvertImageDtype do: 126 of the 256 levels "
                         "differ in the last bit.",
                  .like = "torchvision.transforms.v2.ToDtype",
                  .example = "to(float32)",
                  .arguments = ARGUMENTS([DTYPE] = { ARGUMENT_CHOICE, "dtype", NULL, .choices = DTYPE_NAMES,
                                                     .n_choices = 4 },
                                         [SCALE] = { ARGUMENT_CHOICE, "scale", NULL, .choices = SCALE_NAMES,
                                                     .n_choices = 2, .is_optional = true }) },
        .convert = convert,
};
