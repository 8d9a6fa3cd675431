/* augment/canvas.h: pixels that are being worked on. Private to this floor.
 *
 * The twin of base/box.h's view, which only looks. */
#pragma once

#include "daemon/base/box.h"

/* Pixel (x, y) is at pixels + y * stride + x * PIXEL_BYTES; what lies between the rows is not touched. */
struct canvas {
        uint8_t *pixels;
        size_t stride; /* bytes from one row to the next */
        uint32_t width, height;
};

static inline uint8_t *canvas_at(const struct canvas *canvas, uint32_t x, uint32_t y) {
        return canvas->pixels + y * canvas->stride + (size_t)x * PIXEL_BYTES;
}
