#include "daemon/decode/samples.h"

#include <stddef.h>
#include <string.h>

void palette_set_grey(struct palette *palette) {
        palette_set_levels(palette, 8, false);
}

void palette_set_levels(struct palette *palette, unsigned bits, bool is_inverted) {
        unsigned max = (1u << bits) - 1;

        for (unsigned i = 0; i < 256; i++) {
                unsigned level = (i & max) * (255 / max);

                memset(palette->colors[i], (int)(is_inverted ? 255 - level : level), PIXEL_BYTES);
        }
}

void colors_to_grey(const uint8_t *rgb, uint32_t n, uint8_t *grey) {
        for (uint32_t i = 0; i < n; i++, rgb += PIXEL_BYTES, grey += PIXEL_BYTES)
                put_level((uint8_t)((rgb[0] * 19595u + rgb[1] * 38470u + rgb[2] * 7471u + 0x8000u) >> 16), grey);
}

void indices_to_rgb(const struct palette *palette, unsigned bits, const uint8_t *row, uint32_t x, uint32_t width,
                    uint8_t *rgb) {
        unsigned mask = (1u << bits) - 1, n_in_byte = 8 / bits;

        for (uint32_t i = 0; i < width; i++, rgb += PIXEL_BYTES) {
                uint32_t at = x + i;
                unsigned shift = bits * (n_in_byte - 1 - at % n_in_byte);

                memcpy(rgb, palette->colors[row[at / n_in_byte] >> shift & mask], PIXEL_BYTES);
        }
}

/* a * b / 255, rounded, for 0 <= a, b <= 255. */
static unsigned samples_multiply_255(unsigned a, unsigned b) {
        unsigned product = a * b + 128;

        return (product + (product >> 8)) >> 8;
}

void cmyk_ink_to_rgb(const uint8_t *cmyk, unsigned step, uint32_t n_pixels, uint8_t *rgb) {
        for (uint32_t i = 0; i < n_pixels; i++, cmyk += step, rgb += PIXEL_BYTES) {
                unsigned white = 255u - cmyk[3];

                for (unsigned c = 0; c < 3; c++)
                        rgb[c] = (uint8_t)(white - samples_multiply_255(cmyk[c], white));
        }
}
