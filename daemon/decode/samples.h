/* decode/samples.h: converts samples as files store them to pixels, in the same way as Pillow. Private to this floor. */
#pragma once

#include "daemon/base/box.h"

#include <stdbool.h>
#include <stdint.h>

/* A colour for each value that a sample of up to 8 bits may have. Grey is a palette, too. */
struct palette {
        uint8_t colors[256][PIXEL_BYTES];
};

/* Every value is its own grey. Pillow uses these for values that a file's palette does not have. */
void palette_set_grey(struct palette *palette);

/* The grey of a sample of 1, 2, 4 or 8 bits: 0 is black and the largest value is white, or the other way round. */
void palette_set_levels(struct palette *palette, unsigned bits, bool is_inverted);

/* A pixel of DECODE_GREY, DECODE_NUMBERS or DECODE_ALPHA. */
static inline void put_level(uint8_t level, uint8_t *pixel) {
        pixel[0] = pixel[1] = pixel[2] = level;
}

/* A 16-bit sample of DECODE_WIDE. */
static inline void put_wide(uint16_t value, uint8_t *pixel) {
        pixel[0] = (uint8_t)value;
        pixel[1] = (uint8_t)(value >> 8);
        pixel[2] = 0;
}

/* n pixels of DECODE_COLORS -> DECODE_GREY: Pillow's L, of which equal colours are the level. */
void colors_to_grey(const uint8_t *rgb, uint32_t n, uint8_t *grey);

/* The pixels x ... x + width - 1 of a row of samples of 1, 2, 4 or 8 bits, the first one in a byte's high bits. */
void indices_to_rgb(const struct palette *palette, unsigned bits, const uint8_t *row, uint32_t x, uint32_t width,
                    uint8_t *rgb);

/* A 16-bit sample as 8 bits, as Pillow converts it: values above 255 become 255. */
static inline uint8_t clip_grey_16(uint16_t value) {
        return value > 255 ? 255 : (uint8_t)value;
}

/* CMYK where 255 means full ink: `n_pixels` of them, `step` bytes apart. */
void cmyk_ink_to_rgb(const uint8_t *cmyk, unsigned step, uint32_t n_pixels, uint8_t *rgb);
