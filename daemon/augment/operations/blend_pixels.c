/* augment/operations/blend_pixels.c: brightness, contrast and saturation. Pillow's ImageEnhance blends them from black, from
 * the mean grey, and from the picture's own grey. */
#include "daemon/augment/operation.h"
#include "daemon/augment/operations/wide.h"
#include "daemon/augment/picture_color.h"

/* Eight blends in vector registers take less time than eight looks into a table of the 256 results. */
static ALWAYS_INLINE void blend_row_loop(uint8_t *row, size_t n, int level, float amount) {
        for (size_t i = 0; i < n; i++)
                row[i] = color_blend(level, row[i], amount);
}

WIDE(blend_row, (uint8_t * row, size_t n, int level, float amount), (row, n, level, amount))

/* Blends all samples from one level. */
static void blend_from_level(const struct canvas *canvas, int level, float amount) {
        for (uint32_t y = 0; y < canvas->height; y++)
                blend_row(canvas_at(canvas, 0, y), (size_t)canvas->width * PIXEL_BYTES, level, amount);
}

static void run_brightness(const struct operation *operation, const struct canvas *canvas) {
        blend_from_level(canvas, 0, operation->amount);
}

/* ---- contrast ------------------------------------------------------------------------------------------------ */

static ALWAYS_INLINE void add_luma_loop(const uint8_t *row, uint32_t width, uint64_t *sum) {
        uint32_t sum_of_row = 0; /* 2^24 pixels fit; no row is longer */

        for (uint32_t x = 0; x < width; x++)
                sum_of_row += color_luma(row + (size_t)x * PIXEL_BYTES);
        *sum += sum_of_row;
}

WIDE(add_luma, (const uint8_t *row, uint32_t width, uint64_t *sum), (row, width, sum))

/* The mean of the picture as it is now, after the earlier steps of the pipeline. */
static int mean_luma(const struct canvas *canvas) {
        uint64_t sum = 0;

        for (uint32_t y = 0; y < canvas->height; y++)
                add_luma(canvas_at(canvas, 0, y), canvas->width, &sum);
        return (int)((double)sum / (double)((uint64_t)canvas->width * canvas->height) + 0.5);
}

static void run_contrast(const struct operation *operation, const struct canvas *canvas) {
        blend_from_level(canvas, mean_luma(canvas), operation->amount);
}

/* ---- saturation ---------------------------------------------------------------------------------------------- */

#define AT_ONCE 128u /* pixels: their greys stay in the first cache */

/* Greys first, then one loop that treats all bytes in the same way: this form vectorises. */
static ALWAYS_INLINE void saturate_loop(uint8_t *pixels, uint32_t n, float amount) {
        uint8_t grey[AT_ONCE * PIXEL_BYTES];

        for (uint32_t x = 0; x < n; x++)
                grey[x * 3] = grey[x * 3 + 1] = grey[x * 3 + 2] = (uint8_t)color_luma(pixels + x * 3);
        for (uint32_t i = 0; i < n * PIXEL_BYTES; i++)
                pixels[i] = color_blend(grey[i], pixels[i], amount);
}

WIDE(saturate, (uint8_t * pixels, uint32_t n, float amount), (pixels, n, amount))

static void run_saturation(const struct operation *operation, const struct canvas *canvas) {
        for (uint32_t y = 0; y < canvas->height; y++)
                for (uint32_t x = 0; x < canvas->width; x += AT_ONCE) {
                        uint32_t n = canvas->width - x < AT_ONCE ? canvas->width - x : AT_ONCE;

                        saturate(canvas_at(canvas, x, y), n, operation->amount);
                }
}

const struct operation_type operation_brightness = {
        .left_kind = DLP_LEFT_BRIGHTNESS,
        .moves_with_flip = true,
        .moves_with_crop = true,
        .run = run_brightness,
};

const struct operation_type operation_contrast = {
        .left_kind = DLP_LEFT_CONTRAST,
        .moves_with_flip = true,
        .moves_with_crop = false, /* the mean is that of the whole picture */
        .run = run_contrast,
};

const struct operation_type operation_saturation = {
        .left_kind = DLP_LEFT_SATURATION,
        .moves_with_flip = true,
        .moves_with_crop = true,
        .run = run_saturation,
};
