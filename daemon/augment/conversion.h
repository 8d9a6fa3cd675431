/* augment/conversion.h: from the pixels of the last stage to the output: its type, its numbers, its layout. Private to
 * this floor, except the format, which recipe.h passes on.
 *
 * A sample of 8 bits has 256 levels, so any conversion of its value is a table of 256 entries for each channel. It is
 * made once, when the pipeline is read, in torch's arithmetic: float32(level) / 255, or * float32(1 / 255), minus the
 * mean, divided by the deviation, and only then rounded to the wanted type. Samples of 16 bits have 65535 in place of
 * 255, and are computed one by one. */
#pragma once

#include "daemon/augment/canvas.h"
#include "proto/base/why.h"
#include "proto/layout.h"

#include <stdbool.h>

/* What the channels of a picture are, with Pillow's names: decode(mode=...). Between the stages of a recipe a pixel has
 * PIXEL_BYTES in each of them: grey and indices are there three times, 16 bits are two bytes and a zero, and alpha is a
 * second picture beside the first, three times as well. */
enum pixel_mode {
        PIXELS_RGB,
        PIXELS_L,    /* grey */
        PIXELS_RGBA, /* with alpha */
        PIXELS_LA,
        PIXELS_P,   /* indices of a palette, or other numbers: never mixed */
        PIXELS_I16, /* grey of 16 bits: never mixed */
        PIXELS_F,   /* numbers as they are stored, as float32; no step is for them */
        N_PIXEL_MODES
};
extern const char *const PIXEL_MODE_NAMES[N_PIXEL_MODES];

#define CHANNELS_MAX 4u

/* The output format of a pixel and its picture. */
struct pixel_format {
        enum dlp_dtype dtype; /* uint8, float16, bfloat16 or float32; uint16 for PIXELS_I16 */
        enum pixel_mode mode;
        bool is_bands;       /* numbers as they are stored, any number of channels: they are never a canvas */
        uint32_t n_channels; /* the first one of a pixel, or all; and alpha, if the mode has it */
        bool channels_first; /* channel x height x width instead of height x width x channel */
};

/* Does a picture of this mode have alpha? */
bool pixel_format_has_alpha(const struct pixel_format *format);

struct conversion {
        struct pixel_format format;
        bool has_dtype, has_layout, is_normalized; /* set by a step */
        bool multiplies;                           /* levels by 1 / 255, instead of dividing by 255 */
        bool has_erasing;                          /* after floats were made: struct erasure */
        float mean[CHANNELS_MAX], deviation[CHANNELS_MAX];
        union { /* levels of uint8 stay as they are */
                uint8_t plain[CHANNELS_MAX][256];
                uint32_t wide[CHANNELS_MAX][256]; /* the bits of a float32 */
                uint16_t narrow[CHANNELS_MAX][256];
        };
};

/* Pixels without conversion: uint8, height x width x 3. */
void conversion_init(struct conversion *conversion);

/* Sets the mode, before all steps. */
void conversion_set_mode(struct conversion *conversion, enum pixel_mode mode);

/* After that: this many numbers of each pixel as they are stored, in the mode's type. False: it is for L, I;16 and F.
 */
bool conversion_set_bands(struct conversion *conversion, uint32_t n_bands);

/* Have the steps that were read so far made floats of the levels? */
bool conversion_makes_floats(const struct conversion *conversion);

/* Call it after all steps: sets what no step has set, and makes the table. */
void conversion_finish(struct conversion *conversion);

/* Its table for pictures of 8 bits: for each channel 256 elements of the output's type. */
void conversion_table(const struct conversion *conversion, const void **ret_table, size_t *ret_n_bytes);

/* Does the conversion change nothing? Then the last stage may write the output itself. */
bool conversion_is_none(const struct conversion *conversion);

/* Writes a picture whose rows are `stride` bytes apart; with channels first, planes are plane_stride bytes apart, and
 * if that is 0, one follows the other. `out` and both strides are aligned for the output type. `alpha` has the size of
 * the canvas; NULL if the mode has none. */
void conversion_run(const struct conversion *conversion, const struct canvas *canvas, const struct canvas *alpha,
                    uint8_t *out, size_t stride, size_t plane_stride);

/* A rectangle of the result that gets other numbers, after the conversion to floats. */
struct erasure {
        struct box box; /* within the picture */
        float values[CHANNELS_MAX];
        bool is_noise; /* numbers of a normal distribution instead: one for each channel, pixel by pixel */
        uint64_t seed; /* of these: noise.h */
};

/* Writes it into what conversion_run() has written, with the same arguments, for a result of `height` rows. */
void conversion_erase(const struct conversion *conversion, const struct erasure *erasure, uint32_t height, uint8_t *out,
                      size_t stride, size_t plane_stride);

/* Bytes of one pixel; of one row. */
size_t pixel_format_bytes(const struct pixel_format *format);
size_t pixel_format_row_bytes(const struct pixel_format *format, uint32_t width);
