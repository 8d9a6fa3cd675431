/* augment/steps/resize.c: torchvision's Resize: one number is the short side, two are height and width. `max` is the most
 * that the long side may then have. */
#include "daemon/augment/step.h"

#include <errno.h>
#include <inttypes.h>

enum {
        SIZE,
        INTERPOLATION,
        MAX
};

int filter_check(const struct value *filter, const struct conversion *conversion, struct why *why) {
        if (conversion->format.mode == PIXELS_I16 && filter->choice != RESIZE_NEAREST)
                return why_set(why, -EINVAL,
                               "numbers of 16 bits are not mixed; expected interpolation=nearest with "
                               "mode=I;16, or another mode");
        return 0;
}

/* The size of a picture of width x height after the step. A side is 0 if a narrow strip is scaled to nothing. */
static void new_size(const struct value *values, uint32_t width, uint32_t height, uint64_t *ret_width,
                     uint64_t *ret_height) {
        *ret_width = values[SIZE].width;
        *ret_height = values[SIZE].height;
        if (*ret_width > 0)
                return;
        crop_resize_short(width, height, values[SIZE].height, ret_width, ret_height);
        if (values[MAX].n_list > 0)
                crop_limit_long((uint32_t)values[MAX].list[0], ret_width, ret_height);
}

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        uint64_t width, height;

        (void)philox; /* draws nothing */
        new_size(values, fold_width(fold), fold_height(fold), &width, &height);
        if (width == 0 || height == 0)
                return why_set(why, -ERANGE,
                               "resize: %" PRIu32 " x %" PRIu32 " pixels with at most %.0f on the long side leave no "
                               "pixel on the short one; raise max, or crop first",
                               fold_width(fold), fold_height(fold), values[MAX].list[0]);
        return fold_resize(fold, width, height, (enum resize_filter)values[INTERPOLATION].choice, why);
}

/* Limits a length so that later sums and products do not overflow; the plan refuses such lengths in any case. */
static uint32_t resize_limited(uint64_t length) {
        return length < 1u << 28 ? (uint32_t)length : 1u << 28;
}

static void output(const struct value *values, uint32_t *height, uint32_t *width) {
        uint64_t new_width, new_height;

        if (values[SIZE].width == 0 && *width == 0)
                return; /* depends on the picture, and still does */
        new_size(values, *width, *height, &new_width, &new_height);
        *width = resize_limited(new_width);
        *height = resize_limited(new_height);
}

/* Without max, the long side of a picture may have any length. */
static void bound(const struct value *values, uint32_t *height, uint32_t *width) {
        bool is_fixed = values[SIZE].width > 0, has_max = values[MAX].n_list > 0;

        *height = is_fixed ? values[SIZE].height : has_max ? (uint32_t)values[MAX].list[0] : 0;
        *width = is_fixed ? values[SIZE].width : *height;
}

static int convert(const struct value *values, struct conversion *conversion, struct why *why) {
        int r = filter_check(&values[INTERPOLATION], conversion, why);

        if (r < 0 || values[MAX].n_list == 0)
                return r;
        if (values[SIZE].width > 0)
                return why_set(why, -EINVAL,
                               "max needs one number as the size, the short side; expected resize(%u, max=%.0f)",
                               values[SIZE].height, values[MAX].list[0]);
        if (values[MAX].list[0] <= values[SIZE].height)
                return why_set(why, -EINVAL, "max is %.0f; expected more than the short side, which is %u",
                               values[MAX].list[0], values[SIZE].height);
        return 0;
}

const struct step_type step_resize = {
        .kind = { .name = "resize",
                  .doc = "Makes the short side as long as one number says, and keeps the aspect ratio; `height:width` is "
                         "the size of the result. `max` is the most that the long side may have, and makes the short "
                         "side shorter if need be (torchvision's `max_size`). `short` is another name for `size`: "
                         "`resize(short=800, max=1333)`.",
                  .like = "torchvision.transforms.v2.Resize",
                  .example = "resize(256)",
                  .arguments = ARGUMENTS([SIZE] = { ARGUMENT_SIZE_SHORT, "size", .other_name = "short" },
                                         [INTERPOLATION] = ARGUMENT_INTERPOLATION,
                                         [MAX] = { ARGUMENT_LIST, "max", .minimum = 1, .maximum = RECIPE_SIZE_MAX,
                                                   .counts = 1u << 1, .is_whole = true, .form = "N",
                                                   .other_name = "max_size", .is_optional = true }) },
        .stage = STAGE_RESIZE,
        .plan = plan,
        .output = output,
        .bound = bound,
        .convert = convert,
};
