/* augment/conversion.h: from the pixels of the last stage to the output: its type, its numbers, its layout. Private to
 * this floor, except the format, which recipe.h passes on.
 *
 * A sample has 256 levels, so any conversion of its value is a table of 256 entries for each channel. The table is made
 * once, when the pipeline is read, in torch's arithmetic: float32(level) / 255, minus the mean, divided by the
 * deviation, and only then rounded to the wanted type. */
#pragma once

#include "daemon/augment/canvas.h"
#include "proto/base/why.h"
#include "proto/layout.h"

#include <stdbool.h>

/* The output format of a pixel and its picture. */
struct pixel_format {
        enum dlp_dtype dtype; /* uint8, float16, bfloat16 or float32 */
        uint32_t n_channels;  /* 3; or 1, the first of three equal ones */
        bool channels_first;  /* channel x height x width instead of height x width x channel */
};

struct conversion {
        struct pixel_format format;
        bool has_dtype, has_layout, is_normalized; /* set by a step */
        float mean[PIXEL_BYTES], deviation[PIXEL_BYTES];
        union {
                uint32_t wide[PIXEL_BYTES][256]; /* the bits of a float32 */
                uint16_t narrow[PIXEL_BYTES][256];
        };
};

/* Pixels without conversion: uint8, height x width x 3. */
void conversion_init(struct conversion *conversion);

/* Call it after all steps: sets what no step has set, and makes the table. */
void conversion_finish(struct conversion *conversion);

/* Does the conversion change nothing? Then the last stage may write the output itself. */
bool conversion_is_none(const struct conversion *conversion);

/* Writes a picture whose rows are `stride` bytes apart; with channels first, one plane after the other. `out` and
 * `stride` are aligned for the output type. */
void conversion_run(const struct conversion *conversion, const struct canvas *canvas, uint8_t *out, size_t stride);

/* Bytes of one pixel; of one row. */
size_t pixel_format_bytes(const struct pixel_format *format);
size_t pixel_format_row_bytes(const struct pixel_format *format, uint32_t width);
