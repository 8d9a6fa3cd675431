/* augment/steps/scale_jitter.c: torchvision v2's ScaleJitter: makes the picture as large as it fits into the target, times
 * a scale. Draws one f32 u: the scale is from + u * (to - from), in float32.
 *
 * torchvision divides the second number of the target by the height and the first by the width, although its
 * documentation calls them height and width; so does this, as its results are the reference. */
#include "daemon/augment/step.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

enum {
        TARGET_SIZE,
        SCALE_RANGE,
        INTERPOLATION
};

#define SCALE_MAX 100.0

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        const struct value *target = &values[TARGET_SIZE];
        const struct range *range = &values[SCALE_RANGE].range;
        float reach = (float)(range->to - range->from);
        float scale = (float)range->from + dlp_philox_f32(philox) * reach;
        double fits = fmin((double)target->width / fold_height(fold), (double)target->height / fold_width(fold));
        float r = (float)fits * scale;
        uint64_t width = (uint64_t)((float)fold_width(fold) * r), height = (uint64_t)((float)fold_height(fold) * r);

        if (width == 0 || height == 0)
                return why_set(why, -ERANGE,
                               "scale_jitter: %" PRIu32 " x %" PRIu32
                               " pixels times %g are less than one on a side; raise "
                               "scale_range, or crop first",
                               fold_width(fold), fold_height(fold), (double)r);
        return fold_resize(fold, width, height, (enum resize_filter)values[INTERPOLATION].choice, why);
}

static void output(const struct value *values, uint32_t *height, uint32_t *width) {
        (void)values;
        *height = *width = 0;
}

/* What is rounded in float32 is above by less than one pixel. */
static void bound(const struct value *values, uint32_t *height, uint32_t *width) {
        *height = (uint32_t)(values[TARGET_SIZE].width * values[SCALE_RANGE].range.to) + 1;
        *width = (uint32_t)(values[TARGET_SIZE].height * values[SCALE_RANGE].range.to) + 1;
}

static int convert(const struct value *values, struct conversion *conversion, struct why *why) {
        return filter_check(&values[INTERPOLATION], conversion, why);
}

const struct step_type step_scale_jitter = {
        .kind = { .name = "scale_jitter",
                  .doc = "Makes the picture as large as it fits into `target_size`, times a number of `scale_range` "
                         "(0 to 100). As there, the first number of a target HEIGHT:WIDTH limits the width, and the "
                         "second the height.",
                  .like = "torchvision.transforms.v2.ScaleJitter",
                  .example = "scale_jitter(1024, scale_range=0.1:2)",
                  .arguments = ARGUMENTS([TARGET_SIZE] = { ARGUMENT_SIZE, "target_size", NULL },
                                         [SCALE_RANGE] = { ARGUMENT_RANGE, "scale_range", "0.1:2", 0, SCALE_MAX },
                                         [INTERPOLATION] = ARGUMENT_INTERPOLATION) },
        .stage = STAGE_SCALE_JITTER,
        .plan = plan,
        .output = output,
        .bound = bound,
        .convert = convert,
};
