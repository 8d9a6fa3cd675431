/* augment/canvas.h: pixels that are being changed. Private to this floor.
 *
 * The writable counterpart of the view in base/box.h. */
#pragma once

#include "daemon/base/box.h"

/* Pixel (x, y) is at pixels + y * stride + x * PIXEL_BYTES; bytes between the rows are not touched. */
struct canvas {
        uint8_t *pixels;
        size_t stride; /* bytes from one row to the next */
        uint32_t width, height;
};

static inline uint8_t *canvas_at(const struct canvas *canvas, uint32_t x, uint32_t y) {
        return canvas->pixels + y * canvas->stride + (size_t)x * PIXEL_BYTES;
}
