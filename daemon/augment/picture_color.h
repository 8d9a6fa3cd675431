/* augment/picture_color.h: arithmetic of colours that several operations share, bit-identical to Pillow. Private to this
 * floor. */
#pragma once

#include <stdint.h>

/* Pillow's mode "L": ITU-R 601-2 luma in 16 binary digits, rounded. */
static inline uint32_t color_luma(const uint8_t *pixel) {
        return (pixel[0] * 19595u + pixel[1] * 38470u + pixel[2] * 7471u + 0x8000u) >> 16;
}

/* Pillow's Image.blend() of two samples: `from` if amount is 0, `to` if it is 1, and extrapolated beyond. In float32,
 * truncated to whole numbers, not rounded. */
static inline uint8_t color_blend(int from, int to, float amount) {
        float mixed = (float)from + amount * (float)(to - from);

        mixed = mixed > 0 ? mixed : 0;
        mixed = mixed < 255 ? mixed : 255;
        return (uint8_t)(int)mixed;
}
