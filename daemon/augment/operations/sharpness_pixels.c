/* augment/operations/sharpness_pixels.c: Pillow's ImageEnhance.Sharpness: a blend from the picture that its filter SMOOTH
 * makes.
 *
 * SMOOTH is a mean of 3 x 3 samples in which the middle one counts five times. Pillow leaves the outermost pixels as
 * they are, and so all pixels of a picture that is narrower or lower than 3. It adds thirteenths in float32 and rounds
 * to the nearest. A sum of whole thirteenths is never nearer to a half than 1/26, and float32 errs by far less, so
 * whole numbers give the same. */
#include "daemon/augment/operation.h"
#include "daemon/augment/operations/wide.h"
#include "daemon/augment/picture_color.h"

#include <string.h>

#define SIDE 3u /* of the filter */

static ALWAYS_INLINE uint16_t sharpness_pixels_sum_of_three(const uint8_t *row, size_t i) {
        return (uint16_t)(row[i - PIXEL_BYTES] + row[i] + row[i + PIXEL_BYTES]);
}

/* Thirteenths / 13, rounded: (2 * thirteenths + 13) / 26, by a multiplication that is exact up to 18,000. */
static ALWAYS_INLINE uint16_t sharpness_pixels_rounded(uint16_t thirteenths) {
        uint16_t numerator = (uint16_t)(2 * thirteenths + 13);

        return (uint16_t)((uint16_t)(((uint32_t)numerator * 10083u) >> 16) >> 2);
}

/* Writes a row without its two outermost pixels. `out` is none of the others, which are as they were before. */
static ALWAYS_INLINE void sharpen_row_loop(const uint8_t *restrict above, const uint8_t *restrict row,
                                           const uint8_t *restrict below, uint32_t width, float amount,
                                           uint8_t *restrict out) {
        size_t end = (size_t)(width - 1) * PIXEL_BYTES;

        for (size_t i = PIXEL_BYTES; i < end; i++) {
                uint16_t thirteenths = (uint16_t)(sharpness_pixels_sum_of_three(above, i) +
                                                  sharpness_pixels_sum_of_three(row, i) +
                                                  sharpness_pixels_sum_of_three(below, i) + 4 * row[i]);

                out[i] = color_blend(sharpness_pixels_rounded(thirteenths), row[i], amount);
        }
}

WIDE(sharpen_row,
     (const uint8_t *above, const uint8_t *row, const uint8_t *below, uint32_t width, float amount, uint8_t *out),
     (above, row, below, width, amount, out))

/* Rows are changed from top to bottom, so the row itself and the one above it are kept as they were. */
static void run(const struct operation *operation, const struct canvas *canvas) {
        size_t n_bytes = (size_t)canvas->width * PIXEL_BYTES;
        uint8_t *kept[2] = { operation->rows, operation->rows + n_bytes };

        if (canvas->width < SIDE || canvas->height < SIDE)
                return;
        memcpy(kept[0], canvas_at(canvas, 0, 0), n_bytes);
        for (uint32_t y = 1; y + 1 < canvas->height; y++) {
                uint8_t *above = kept[(y - 1) % 2], *row = kept[y % 2];

                memcpy(row, canvas_at(canvas, 0, y), n_bytes);
                sharpen_row(above, row, canvas_at(canvas, 0, y + 1), canvas->width, operation->amount,
                            canvas_at(canvas, 0, y));
        }
}

const struct operation_type operation_sharpness = {
        .moves_with_flip = true,
        .moves_with_crop = false, /* a pixel's result depends on its neighbours */
        .n_rows = 2,
        .run = run,
};
