/* augment/steps/pixels/gaussian_blur.c: torchvision's GaussianBlur, in two passes of one dimension each: columns first,
 * into float32, and then rows. Draws one f32: sigma.
 *
 * torchvision adds width x height products for a level. Both sums err by some 1e-5 of a level, so they round
 * differently where the exact sum is that near to a half; test_blur.c says how rarely that is. Beyond the edges the
 * picture is mirrored without its outermost pixel, and mirrored again if the kernel is larger still, where torchvision
 * refuses. */
#include "daemon/augment/operations/blur/blur.h"
#include "daemon/augment/operations/mirror.h"
#include "daemon/augment/step.h"

#include <string.h>

/* ---- memory -------------------------------------------------------------------------------------------------- */

/* A row of sums with what is mirrored on either side, and 2 * reach + 1 rows as they were: of the whole kernel, so that
 * its memory is known before its weights are. */
static size_t n_sums(const struct operation *operation, uint32_t width) {
        return (width + 2 * (size_t)(operation->box.width / 2)) * PIXEL_BYTES;
}

static uint64_t extra_bytes(const struct operation *operation, uint32_t width, uint32_t height) {
        (void)height;
        return n_sums(operation, width) * sizeof(float) + (uint64_t)operation->box.height * width * PIXEL_BYTES;
}

/* ---- rows ---------------------------------------------------------------------------------------------------- */

struct blur {
        struct blur_weights x, y;
        const struct canvas *canvas;
        float *sums; /* of the row's first pixel */
        uint8_t *kept;
        uint32_t n_kept; /* rows that were taken from the canvas, since the first one */
};

static uint8_t *gaussian_blur_kept_row(const struct blur *blur, uint32_t y) {
        return blur->kept + (size_t)(y % (2 * blur->y.reach + 1)) * blur->canvas->width * PIXEL_BYTES;
}

/* Keeps the rows up to y + reach before they are overwritten. */
static void keep_rows(struct blur *blur, uint32_t y) {
        for (; blur->n_kept < blur->canvas->height && blur->n_kept <= y + blur->y.reach; blur->n_kept++)
                memcpy(gaussian_blur_kept_row(blur, blur->n_kept), canvas_at(blur->canvas, 0, blur->n_kept),
                       (size_t)blur->canvas->width * PIXEL_BYTES);
}

/* Fills the sums beyond the row's two ends. */
static void gaussian_blur_mirror_sums(const struct blur *blur) {
        uint32_t width = blur->canvas->width;

        for (int64_t k = 1; k <= blur->x.reach; k++) {
                memcpy(blur->sums - k * PIXEL_BYTES, blur->sums + (size_t)mirrored(-k, width) * PIXEL_BYTES,
                       PIXEL_BYTES * sizeof(float));
                memcpy(blur->sums + (width - 1 + k) * PIXEL_BYTES,
                       blur->sums + (size_t)mirrored(width - 1 + k, width) * PIXEL_BYTES, PIXEL_BYTES * sizeof(float));
        }
}

static void blur_row(struct blur *blur, const struct blur_loops *loops, uint32_t y) {
        size_t n = (size_t)blur->canvas->width * PIXEL_BYTES;
        const uint8_t *rows[BLUR_KERNEL_MAX];

        keep_rows(blur, y);
        for (uint32_t i = 0; i <= 2 * blur->y.reach; i++)
                rows[i] = gaussian_blur_kept_row(blur, mirrored((int64_t)y + i - blur->y.reach, blur->canvas->height));
        loops->down(blur->y.of, blur->y.reach, rows, n, blur->sums);
        gaussian_blur_mirror_sums(blur);
        loops->across(blur->x.of, blur->x.reach, blur->sums, PIXEL_BYTES, n, canvas_at(blur->canvas, 0, y));
}

static void run(const struct operation *operation, const struct canvas *canvas) {
        size_t n_sum_bytes = n_sums(operation, canvas->width) * sizeof(float);
        struct blur blur = { .canvas = canvas };

        blur_weigh(operation->box.width, operation->amount, &blur.x);
        blur_weigh(operation->box.height, operation->amount, &blur.y);
        blur.sums = (float *)operation->rows + (size_t)blur.x.reach * PIXEL_BYTES;
        blur.kept = operation->rows + n_sum_bytes;
        for (uint32_t y = 0; y < canvas->height && canvas_goes_on(canvas, y); y++)
                blur_row(&blur, blur_loops_best(), y);
}

static const struct operation_type change = {
        .moves_with_flip = true,
        .moves_with_crop = false, /* a pixel's result depends on its neighbours */
        .extra_bytes = extra_bytes,
        .run = run,
};

/* ---- the step ------------------------------------------------------------------------------------------------ */

enum {
        KERNEL_SIZE,
        SIGMA
};

float number_between(const struct value *value, struct dlp_philox *philox) {
        double from = value->list[0], to = value->list[value->n_list - 1];

        return (float)(from + (to - from) * (double)dlp_philox_f32(philox));
}

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        const struct value *size = &values[KERNEL_SIZE];
        struct operation operation = { .type = &change };

        (void)why;
        operation.box.width = (uint32_t)size->list[0];
        operation.box.height = (uint32_t)size->list[size->n_list - 1];
        operation.amount = number_between(&values[SIGMA], philox);
        fold_operate(fold, &operation);
        return 0;
}

const struct step_type step_gaussian_blur = {
        .kind = { .name = "gaussian_blur",
                  .doc = "Blurs the picture; `kernel_size` is one odd number or WIDTH:HEIGHT (1 to 255), `sigma` one "
                         "number or the range from which it is drawn (0.001 to 1000). Of 60,000 levels one, or fewer, "
                         "is rounded to the neighbour of torchvision's, whose sums of float32 have another sequence. "
                         "Pictures that are smaller than half the kernel are mirrored several times; torchvision "
                         "refuses them.",
                  .like = "torchvision.transforms.v2.GaussianBlur",
                  .example = "gaussian_blur(23, sigma=0.1:2)",
                  .arguments = ARGUMENTS([KERNEL_SIZE] = { ARGUMENT_LIST, "kernel_size", NULL, 1, BLUR_KERNEL_MAX,
                                                           .counts = 1u << 1 | 1u << 2, .is_odd = true,
                                                           .form = "N or WIDTH:HEIGHT" },
                                         [SIGMA] = { ARGUMENT_LIST, "sigma", "0.1:2", 0.001, 1000,
                                                     .counts = 1u << 1 | 1u << 2, .is_range = true,
                                                     .form = "N or FROM:TO" }) },
        .stage = STAGE_GAUSSIAN_BLUR,
        .plan = plan,
        .convert = levels_check,
};
