/* augment/steps/resize.c: torchvision's Resize: one number is the short side, two are height and width. */
#include "daemon/augment/step.h"

enum {
        SIZE,
        INTERPOLATION
};

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        uint64_t width = values[SIZE].width, height = values[SIZE].height;

        (void)philox; /* draws nothing */
        if (width == 0)
                crop_resize_short(fold_width(fold), fold_height(fold), values[SIZE].height, &width, &height);
        return fold_resize(fold, width, height, (enum resize_filter)values[INTERPOLATION].choice, why);
}

/* Limits a length so that later sums and products do not overflow; the plan refuses such lengths in any case. */
static uint32_t limited(uint64_t length) {
        return length < 1u << 28 ? (uint32_t)length : 1u << 28;
}

static void output(const struct value *values, uint32_t *height, uint32_t *width) {
        uint64_t new_width = values[SIZE].width, new_height = values[SIZE].height;

        if (new_width == 0) {
                if (*width == 0)
                        return; /* depends on the picture, and still does */
                crop_resize_short(*width, *height, values[SIZE].height, &new_width, &new_height);
        }
        *width = limited(new_width);
        *height = limited(new_height);
}

const struct step_type step_resize = {
        .name = "resize",
        .example = "resize(256)",
        .arguments = {
                [SIZE] = { ARGUMENT_SIZE_SHORT, "size", NULL },
                [INTERPOLATION] = ARGUMENT_INTERPOLATION,
        },
        .plan = plan,
        .output = output,
};
