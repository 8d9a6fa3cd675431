/* augment/steps/pixels/motion_blur.c: Albumentations' MotionBlur.
 *
 * Draws six words: an f32, below p means yes; the size of the kernel, from + 2 * below(...) among the odd numbers of
 * its range; and four f32 for the angle, the direction, and the shift to the right and down, from -1 to 1, which are 0
 * if shifts are not allowed. */
#include "daemon/augment/operations/motion_blur_pixels.h"
#include "daemon/augment/step.h"

enum {
        BLUR_LIMIT,
        ALLOW_SHIFTED,
        ANGLE,
        DIRECTION,
        PROBABILITY
};

/* One number is the largest size. Even numbers stand for the next odd one. */
static uint32_t draw_size(const struct value *limit, struct dlp_philox *philox) {
        uint32_t from = limit->n_list == 1 ? 3 : (uint32_t)limit->list[0],
                 to = (uint32_t)limit->list[limit->n_list - 1];

        from |= 1;
        to |= 1;
        return from + 2 * dlp_philox_below(philox, (to - from) / 2 + 1);
}

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        struct operation operation = { .type = &operation_motion_blur };
        bool happens = step_happens(&values[PROBABILITY], philox);

        (void)why;
        operation.box.width = operation.box.height = draw_size(&values[BLUR_LIMIT], philox);
        operation.others[0] = number_between(&values[ANGLE], philox);
        operation.others[1] = number_between(&values[DIRECTION], philox);
        for (int i = 2; i < 4; i++) {
                float shift = dlp_philox_f32(philox) * 2 - 1;

                operation.others[i] = values[ALLOW_SHIFTED].choice == 1 ? shift : 0;
        }
        if (happens)
                fold_operate(fold, &operation);
        return 0;
}

const struct step_type step_motion_blur = {
        .kind = { .name = "motion_blur",
                  .doc = "Each pixel becomes the mean of those on a line of at most `blur_limit` pixels (3 to 255). A "
                         "mean half way between two levels is rounded to the even one; OpenCV takes one of the two by "
                         "chance, so one level in 200 differs by 1.",
                  .like = "albumentations.MotionBlur",
                  .example = "motion_blur(7)",
                  .arguments = ARGUMENTS([BLUR_LIMIT] = { ARGUMENT_LIST, "blur_limit", "3:7", 3, MOTION_KERNEL_MAX,
                                                          .counts = 1u << 1 | 1u << 2, .is_whole = true,
                                                          .is_range = true, .form = "TO or FROM:TO" },
                                         [ALLOW_SHIFTED] = { ARGUMENT_FLAG, "allow_shifted", "true" },
                                         [ANGLE] = { ARGUMENT_LIST, "angle_range", "0:360", 0, 360,
                                                     .counts = 1u << 1 | 1u << 2, .is_range = true,
                                                     .form = "N or FROM:TO" },
                                         [DIRECTION] = { ARGUMENT_LIST, "direction_range", "-1:1", -1, 1,
                                                         .counts = 1u << 1 | 1u << 2, .is_range = true,
                                                         .form = "N or FROM:TO" },
                                         [PROBABILITY] = { ARGUMENT_NUMBER, "p", "0.5", 0, 1 }) },
        .stage = STAGE_MOTION_BLUR,
        .plan = plan,
        .convert = levels_check,
};
