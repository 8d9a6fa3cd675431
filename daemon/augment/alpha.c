#include "daemon/augment/alpha.h"

/* a * b / 255, rounded, as Pillow's MULDIV255. */
static uint8_t alpha_multiply_255(unsigned a, unsigned b) {
        unsigned product = a * b + 128;

        return (uint8_t)(((product >> 8) + product) >> 8);
}

void alpha_multiply(const struct canvas *colors, const struct canvas *alpha) {
        for (uint32_t y = 0; y < colors->height; y++) {
                uint8_t *pixel = canvas_at(colors, 0, y);
                const uint8_t *by = canvas_at(alpha, 0, y);

                for (uint32_t x = 0; x < colors->width; x++, pixel += PIXEL_BYTES, by += PIXEL_BYTES)
                        for (unsigned c = 0; c < PIXEL_BYTES; c++)
                                pixel[c] = alpha_multiply_255(pixel[c], *by);
        }
}

/* What is transparent stays as it is. */
void alpha_divide(const struct canvas *colors, const struct canvas *alpha) {
        for (uint32_t y = 0; y < colors->height; y++) {
                uint8_t *pixel = canvas_at(colors, 0, y);
                const uint8_t *by = canvas_at(alpha, 0, y);

                for (uint32_t x = 0; x < colors->width; x++, pixel += PIXEL_BYTES, by += PIXEL_BYTES)
                        for (unsigned c = 0; c < PIXEL_BYTES && *by != 0; c++) {
                                unsigned value = 255u * pixel[c] / *by;

                                pixel[c] = (uint8_t)(value > 255 ? 255 : value);
                        }
        }
}
