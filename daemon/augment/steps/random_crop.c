/* augment/steps/random_crop.c: torchvision's RandomCrop. Draws two words, below the number of possible positions: first
 * for the top edge, then for the left one; also if there is only one position. */
#include "daemon/augment/step.h"

#include <errno.h>
#include <inttypes.h>

enum {
        SIZE,
        PADDING,
        PAD_IF_NEEDED,
        FILL,
        PADDING_MODE
};

/* First adds the padding that was asked for. Then, if the picture is still too small, pads both sides: first the width,
 * then the height. */
static int random_crop_pad(const struct value *values, struct fold *fold, struct why *why) {
        struct border border = border_of(&values[FILL], &values[PADDING_MODE]);
        struct padding padding = padding_of(&values[PADDING]);
        uint32_t width = values[SIZE].width, height = values[SIZE].height;
        int r = fold_pad(fold, &padding, &border, why);

        if (r == 0 && values[PAD_IF_NEEDED].choice && fold_width(fold) < width) {
                padding = (struct padding){ .left = width - fold_width(fold) };
                padding.right = padding.left;
                r = fold_pad(fold, &padding, &border, why);
        }
        if (r == 0 && values[PAD_IF_NEEDED].choice && fold_height(fold) < height) {
                padding = (struct padding){ .top = height - fold_height(fold) };
                padding.bottom = padding.top;
                r = fold_pad(fold, &padding, &border, why);
        }
        return r;
}

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        struct box box = { .width = values[SIZE].width, .height = values[SIZE].height };
        int r = random_crop_pad(values, fold, why);

        if (r < 0)
                return r;
        if (fold_width(fold) < box.width || fold_height(fold) < box.height)
                return why_set(why, -ERANGE,
                               "random_crop: a crop of %" PRIu32 " x %" PRIu32 " pixels does not fit into %" PRIu32
                               " x %" PRIu32 "; pad_if_needed=true would pad it, a resize before it enlarge it",
                               box.width, box.height, fold_width(fold), fold_height(fold));
        box.y = dlp_philox_below(philox, fold_height(fold) - box.height + 1);
        box.x = dlp_philox_below(philox, fold_width(fold) - box.width + 1);
        return fold_crop(fold, &box, why);
}

static void output(const struct value *values, uint32_t *height, uint32_t *width) {
        *height = values[SIZE].height;
        *width = values[SIZE].width;
}

static int convert(const struct value *values, struct conversion *conversion, struct why *why) {
        return fill_check(&values[FILL], conversion, why);
}

const struct step_type step_random_crop = {
        .kind = { .name = "random_crop",
                  .doc = "Pads as `pad` does, then cuts out a rectangle of `size` at random. A picture that is too "
                         "small makes the sample a damaged one; with `pad_if_needed=true` it is padded on both sides "
                         "by what it lacks.",
                  .like = "torchvision.transforms.v2.RandomCrop",
                  .example = "random_crop(32, padding=4)",
                  .arguments = ARGUMENTS([SIZE] = { ARGUMENT_SIZE, "size", NULL }, [PADDING] = ARGUMENT_PADDING("0"),
                                         [PAD_IF_NEEDED] = { ARGUMENT_FLAG, "pad_if_needed", "false" },
                                         [FILL] = ARGUMENT_FILL, [PADDING_MODE] = ARGUMENT_PADDING_MODE) },
        .plan = plan,
        .output = output,
        .convert = convert,
};
