/* augment/steps/pixels/motion_blur.c: Albumentations' MotionBlur: each pixel becomes the mean of the pixels on a short
 * line through it.
 *
 * Draws six words: an f32, below p means yes; the size of the kernel, from + 2 * below(...) among the odd numbers of
 * its range; and four f32 for the angle, the direction, and the shift to the right and down, from -1 to 1, which are 0
 * if shifts are not allowed.
 *
 * The line's points are computed as there, in float64. The mean is exact, and rounded half to even; OpenCV adds
 * float32, so that where the exact mean is half way between two levels, it takes one of them by chance. Beyond the
 * edges the picture is mirrored without its outermost pixel. */
#include "daemon/augment/operations/mirror.h"
#include "daemon/augment/operations/wide.h"
#include "daemon/augment/step.h"

#include <math.h>
#include <string.h>

#define MOTION_KERNEL_MAX 255u /* sums of as many levels fit into 16 bits */

/* others: the angle in degrees, the direction from -1 to 1, and the shift to the right and down, each of them from -1
 * to 1, as a share of a quarter of the kernel. */
enum {
        LINE_ANGLE,
        LINE_DIRECTION,
        LINE_SHIFT_X,
        LINE_SHIFT_Y
};

struct point {
        uint32_t x, y; /* of the kernel's corner */
};

static uint32_t clipped(double place, uint32_t size) {
        place = rint(place);
        return place < 0 ? 0 : place > size - 1 ? size - 1 : (uint32_t)place;
}

/* Returns how many points it has written, at most `size`: none twice. */
static uint32_t draw_line(const struct operation *operation, uint32_t size, struct point *ret_points) {
        const float *others = operation->others;
        double angle = others[LINE_ANGLE] * (3.14159265358979323846 / 180), direction = others[LINE_DIRECTION];
        double half = size / 2, from = -half, to = half, step;
        double x = half + others[LINE_SHIFT_X] * half / 2, y = half + others[LINE_SHIFT_Y] * half / 2;
        uint32_t n = 0;

        if (direction < 0)
                to = half * (1 + direction);
        else
                from = -half * (1 - direction);
        step = (to - from) / (size - 1);
        for (uint32_t i = 0; i < size; i++) {
                double along = i + 1 == size ? to : from + i * step;
                struct point point = { clipped(x + cos(angle) * along, size), clipped(y + sin(angle) * along, size) };
                bool is_new = true;

                for (uint32_t k = 0; k < n && is_new; k++)
                        is_new = ret_points[k].x != point.x || ret_points[k].y != point.y;
                if (is_new)
                        ret_points[n++] = point;
        }
        return n;
}

/* ---- rows ---------------------------------------------------------------------------------------------------- */

/* Sums of a row, and as many rows as they were as the kernel has, each with what is mirrored on either side. */
static size_t padded_bytes(uint32_t size, uint32_t width) {
        return ((size_t)width + size - 1) * PIXEL_BYTES;
}

static uint64_t extra_bytes(const struct operation *operation, uint32_t width, uint32_t height) {
        uint32_t size = operation->box.width;

        (void)height;
        return (uint64_t)width * PIXEL_BYTES * sizeof(uint16_t) + (uint64_t)size * padded_bytes(size, width);
}

static void keep_row(const struct canvas *canvas, uint32_t y, uint32_t half, uint8_t *padded) {
        memcpy(padded + half * PIXEL_BYTES, canvas_at(canvas, 0, y), (size_t)canvas->width * PIXEL_BYTES);
        for (uint32_t i = 1; i <= half; i++) {
                memcpy(padded + (half - i) * PIXEL_BYTES, canvas_at(canvas, mirrored(-(int64_t)i, canvas->width), y),
                       PIXEL_BYTES);
                memcpy(padded + (size_t)(half + canvas->width - 1 + i) * PIXEL_BYTES,
                       canvas_at(canvas, mirrored((int64_t)canvas->width - 1 + i, canvas->width), y), PIXEL_BYTES);
        }
}

static ALWAYS_INLINE void add_loop(const uint8_t *row, size_t n, uint16_t *restrict sums) {
        for (size_t i = 0; i < n; i++)
                sums[i] = (uint16_t)(sums[i] + row[i]);
}

WIDE(add, (const uint8_t *row, size_t n, uint16_t *restrict sums), (row, n, sums))

/* A float32 quotient of a sum and a number below 256 is nearer to a half than the exact one only if that is a half. */
static ALWAYS_INLINE void divide_loop(const uint16_t *sums, size_t n, uint32_t n_points, uint8_t *restrict out) {
        for (size_t i = 0; i < n; i++)
                out[i] = (uint8_t)(int)rintf((float)sums[i] / (float)n_points);
}

WIDE(divide, (const uint16_t *sums, size_t n, uint32_t n_points, uint8_t *restrict out), (sums, n, n_points, out))

static void run(const struct operation *operation, const struct canvas *canvas) {
        uint32_t size = operation->box.width, half = size / 2, n_kept = 0;
        size_t n = (size_t)canvas->width * PIXEL_BYTES, n_padded = padded_bytes(size, canvas->width);
        uint16_t *sums = (uint16_t *)operation->rows;
        uint8_t *kept = operation->rows + n * sizeof(uint16_t);
        struct point points[MOTION_KERNEL_MAX];
        uint32_t n_points = draw_line(operation, size, points);

        for (uint32_t y = 0; y < canvas->height && canvas_goes_on(canvas, y); y++) {
                for (; n_kept < canvas->height && n_kept <= y + half; n_kept++)
                        keep_row(canvas, n_kept, half, kept + n_kept % size * n_padded);
                memset(sums, 0, n * sizeof(*sums));
                for (uint32_t i = 0; i < n_points; i++) {
                        uint32_t at = mirrored((int64_t)y + points[i].y - half, canvas->height);

                        add(kept + at % size * n_padded + (size_t)points[i].x * PIXEL_BYTES, n, sums);
                }
                divide(sums, n, n_points, canvas_at(canvas, 0, y));
        }
}

static const struct operation_type change = {
        .moves_with_flip = false, /* a line has a direction */
        .moves_with_crop = false,
        .extra_bytes = extra_bytes,
        .run = run,
};

/* ---- the step ------------------------------------------------------------------------------------------------ */

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
        struct operation operation = { .type = &change };
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
