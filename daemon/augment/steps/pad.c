/* augment/steps/pad.c: torchvision's Pad. Draws nothing. random_crop shares the handling of its arguments. */
#include "daemon/augment/step.h"

#include <errno.h>

enum {
        PADDING,
        FILL,
        PADDING_MODE
};

struct padding padding_of(const struct value *value) {
        const double *list = value->list;

        switch (value->n_list) {
        case 4:
                return (struct padding){ (uint32_t)list[0], (uint32_t)list[1], (uint32_t)list[2], (uint32_t)list[3] };
        case 2:
                return (struct padding){ (uint32_t)list[0], (uint32_t)list[1], (uint32_t)list[0], (uint32_t)list[1] };
        default:
                return (struct padding){ (uint32_t)list[0], (uint32_t)list[0], (uint32_t)list[0], (uint32_t)list[0] };
        }
}

struct border border_of(const struct value *fill, const struct value *mode) {
        struct border border = { .mode = (enum border_mode)mode->choice };

        for (uint32_t i = 0; i < PIXEL_BYTES && border.mode == BORDER_CONSTANT; i++)
                border.fill[i] = (uint8_t)fill->list[fill->n_list == 1 ? 0 : i];
        return border;
}

int fill_check(const struct value *fill, const struct conversion *conversion, struct why *why) {
        enum pixel_mode mode = conversion->format.mode;

        if (fill->n_list > 1 && mode != PIXELS_RGB && mode != PIXELS_L)
                return why_set(why, -EINVAL,
                               "fill is a colour, but the picture is decoded with mode=%s; expected one "
                               "number",
                               PIXEL_MODE_NAMES[mode]);
        if (fill->n_list > 1 && conversion->format.n_channels == 1)
                return why_set(why, -EINVAL, "fill is a colour, but %s leaves one channel; expected one number",
                               mode == PIXELS_L ? "mode=L" : "grayscale(1)");
        return 0;
}

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        struct padding padding = padding_of(&values[PADDING]);
        struct border border = border_of(&values[FILL], &values[PADDING_MODE]);

        (void)philox;
        return fold_pad(fold, &padding, &border, why);
}

static void output(const struct value *values, uint32_t *height, uint32_t *width) {
        struct padding padding = padding_of(&values[PADDING]);

        if (*width == 0)
                return; /* depends on the picture, and still does */
        *width += padding.left + padding.right;
        *height += padding.top + padding.bottom; /* the same of a bound */
}

static int convert(const struct value *values, struct conversion *conversion, struct why *why) {
        return fill_check(&values[FILL], conversion, why);
}

const struct step_type step_pad = {
        .kind = { .name = "pad",
                  .doc = "Makes the picture larger. `padding` is a number of pixels for all sides, two for left and "
                         "right and for top and bottom, or four, `left:top:right:bottom`, 0 to 16384 each. "
                         "`padding_mode` is `constant`, the colour `fill` (a number, or `red:green:blue`, 0 to 255); "
                         "`edge`, the outermost pixel again; `reflect`, the picture mirrored at its outermost pixel; "
                         "or `symmetric`, mirrored with that pixel repeated. If the padding is wider than the "
                         "picture, the picture is mirrored repeatedly. Some releases of NumPy, and torchvision with "
                         "them, repeat another part of it in this case.",
                  .like = "torchvision.transforms.v2.Pad",
                  .example = "pad(4)",
                  .arguments = ARGUMENTS([PADDING] = ARGUMENT_PADDING(NULL), [FILL] = ARGUMENT_FILL,
                                         [PADDING_MODE] = ARGUMENT_PADDING_MODE) },
        .stage = STAGE_PAD,
        .plan = plan,
        .output = output,
        .bound = output,
        .convert = convert,
};
