#include "daemon/augment/operations/aug_mix/tensors.h"

#include <math.h>
#include <string.h>

#include "daemon/augment/operations/pixel_tables.h"
#include "daemon/augment/operations/wide.h"

static ALWAYS_INLINE uint8_t tensors_level_of(float number) {
        number = number > 0 ? number : 0;
        number = number < 255 ? number : 255;
        return (uint8_t)(int)number;
}

/* a * b + c with one rounding, where product and sum are exact in float64: whole numbers of nine bits times a float. */
static ALWAYS_INLINE float fused(float a, float b, float c) {
        return (float)((double)a * (double)b + (double)c);
}

/* ---- tables ---------------------------------------------------------------------------------------------------- */

void tensor_autocontrast(const struct canvas *canvas) {
        struct level_range range;
        struct pixel_tables tables;

        level_range_take(canvas, &range);
        for (unsigned channel = 0; channel < PIXEL_BYTES; channel++) {
                float lowest = range.lowest[channel], highest = range.highest[channel];
                float scale = (highest - lowest) * (float)(1.0 / 255.0);

                if (highest <= lowest) { /* a flat channel */
                        lowest = 0;
                        scale = 1;
                }
                for (int i = 0; i < N_LEVELS; i++)
                        tables.of[channel][i] = tensors_level_of(((float)i - lowest) / scale);
        }
        tables_look_up(&tables, canvas);
}

/* ---- greys ----------------------------------------------------------------------------------------------------- */

static ALWAYS_INLINE float grey_of(const uint8_t *pixel) {
        float grey = fused(pixel[1], 0.587f, (float)pixel[0] * 0.2989f);

        return (float)(int)fused(pixel[2], 0.114f, grey);
}

static ALWAYS_INLINE void add_greys_loop(const uint8_t *row, uint32_t width, uint64_t *sum) {
        uint32_t sum_of_row = 0; /* 2^24 pixels fit; no row is longer */

        for (uint32_t x = 0; x < width; x++)
                sum_of_row += (uint32_t)(int)grey_of(row + (size_t)x * PIXEL_BYTES);
        *sum += sum_of_row;
}

WIDE(add_greys, (const uint8_t *row, uint32_t width, uint64_t *sum), (row, width, sum))

static uint64_t add_levels(const uint8_t *row, uint32_t width) {
        uint64_t sum = 0;

        for (uint32_t x = 0; x < width; x++)
                sum += row[(size_t)x * PIXEL_BYTES];
        return sum;
}

void tensor_contrast(const struct canvas *canvas, double factor, bool is_grey) {
        float mean, rest = (float)(1.0 - factor);
        struct pixel_tables tables;
        uint64_t sum = 0;

        for (uint32_t y = 0; y < canvas->height; y++)
                if (is_grey)
                        sum += add_levels(canvas_at(canvas, 0, y), canvas->width);
                else
                        add_greys(canvas_at(canvas, 0, y), canvas->width, &sum);
        mean = (float)sum / (float)((uint64_t)canvas->width * canvas->height);
        for (int i = 0; i < N_LEVELS; i++)
                tables.of[0][i] = tensors_level_of(fmaf(mean, rest, (float)i * (float)factor));
        for (unsigned channel = 1; channel < PIXEL_BYTES; channel++)
                memcpy(tables.of[channel], tables.of[0], N_LEVELS);
        tables_look_up(&tables, canvas);
}

#define AT_ONCE 128u /* pixels: their greys stay in the first cache */

/* Greys first, then one loop that treats all bytes in the same way: this form vectorises. */
static ALWAYS_INLINE void saturate_loop(uint8_t *pixels, uint32_t n, float factor, float rest) {
        float greys[AT_ONCE * PIXEL_BYTES];

        for (uint32_t x = 0; x < n; x++)
                greys[x * 3] = greys[x * 3 + 1] = greys[x * 3 + 2] = grey_of(pixels + x * 3);
        for (uint32_t i = 0; i < n * PIXEL_BYTES; i++)
                pixels[i] = tensors_level_of(fused(greys[i], rest, (float)pixels[i] * factor));
}

WIDE(saturate, (uint8_t * pixels, uint32_t n, float factor, float rest), (pixels, n, factor, rest))

void tensor_saturation(const struct canvas *canvas, double factor) {
        float rest = (float)(1.0 - factor);

        for (uint32_t y = 0; y < canvas->height; y++)
                for (uint32_t x = 0; x < canvas->width; x += AT_ONCE) {
                        uint32_t n = canvas->width - x < AT_ONCE ? canvas->width - x : AT_ONCE;

                        saturate(canvas_at(canvas, x, y), n, (float)factor, rest);
                }
}

/* ---- sharpness --------------------------------------------------------------------------------------------------- */

#define SIDE 3u /* of the filter, in which the middle counts five times */

static ALWAYS_INLINE int tensors_sum_of_three(const uint8_t *row, size_t i) {
        return row[i - PIXEL_BYTES] + row[i] + row[i + PIXEL_BYTES];
}

/* Thirteenths / 13, rounded: no whole number of them is half way, and float32 errs by far less than the nearest to
 * that. */
static ALWAYS_INLINE int tensors_rounded(int thirteenths) {
        return (2 * thirteenths + 13) * 10083 >> 18;
}

static ALWAYS_INLINE void sharpen_row_loop(const uint8_t *restrict above, const uint8_t *restrict row,
                                           const uint8_t *restrict below, uint32_t width, float rest,
                                           uint8_t *restrict out) {
        size_t end = (size_t)(width - 1) * PIXEL_BYTES;

        for (size_t i = PIXEL_BYTES; i < end; i++) {
                int smooth = tensors_rounded(tensors_sum_of_three(above, i) + tensors_sum_of_three(row, i) +
                                             tensors_sum_of_three(below, i) + 4 * row[i]);

                out[i] = tensors_level_of(fused((float)(smooth - row[i]), rest, (float)row[i]));
        }
}

WIDE(sharpen_row,
     (const uint8_t *above, const uint8_t *row, const uint8_t *below, uint32_t width, float rest, uint8_t *out),
     (above, row, below, width, rest, out))

void tensor_sharpness(const struct canvas *canvas, double factor, const struct canvas *out) {
        float rest = (float)(1.0 - factor);

        for (uint32_t y = 0; y < canvas->height; y++) {
                memcpy(canvas_at(out, 0, y), canvas_at(canvas, 0, y), (size_t)canvas->width * PIXEL_BYTES);
                if (y > 0 && y + 1 < canvas->height && canvas->width >= SIDE)
                        sharpen_row(canvas_at(canvas, 0, y - 1), canvas_at(canvas, 0, y), canvas_at(canvas, 0, y + 1),
                                    canvas->width, rest, canvas_at(out, 0, y));
        }
}
