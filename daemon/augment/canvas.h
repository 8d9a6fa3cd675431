/* augment/canvas.h: pixels that are being changed. Private to this floor.
 *
 * The writable counterpart of the view in base/box.h. */
#pragma once

#include "daemon/base/box.h"
#include "daemon/base/wanting.h"

#define PIXELS_A_LOOK (1u << 20) /* between two looks whether the sample is still wanted */

/* Pixel (x, y) is at pixels + y * stride + x * PIXEL_BYTES; bytes between the rows are not touched. */
struct canvas {
        uint8_t *pixels;
        size_t stride; /* bytes from one row to the next */
        uint32_t width, height;
        struct wanting *wanting; /* NULL: the picture is wanted */
};

/* Asked by loops over the rows of a canvas that may take seconds. False: leave the other rows as they are. */
static inline bool canvas_goes_on(const struct canvas *canvas, uint32_t y) {
        uint64_t at = (uint64_t)y * canvas->width;

        if (!canvas->wanting || at / PIXELS_A_LOOK == (at + canvas->width) / PIXELS_A_LOOK)
                return !canvas->wanting || !canvas->wanting->is_over;
        return wanting_lasts(canvas->wanting);
}

static inline uint8_t *canvas_at(const struct canvas *canvas, uint32_t x, uint32_t y) {
        return canvas->pixels + y * canvas->stride + (size_t)x * PIXEL_BYTES;
}
