/* augment/operations/grayscale_pixels.c: sets all three channels of each pixel to its grey. */
#include "daemon/augment/operation.h"
#include "daemon/augment/operations/wide.h"
#include "daemon/augment/picture_color.h"

static ALWAYS_INLINE void grey_row_loop(uint8_t *row, uint32_t width) {
        for (size_t x = 0; x < width; x++)
                row[x * 3] = row[x * 3 + 1] = row[x * 3 + 2] = (uint8_t)color_luma(row + x * 3);
}

WIDE(grey_row, (uint8_t * row, uint32_t width), (row, width))

static void run(const struct operation *operation, const struct canvas *canvas) {
        (void)operation;
        for (uint32_t y = 0; y < canvas->height; y++)
                grey_row(canvas_at(canvas, 0, y), canvas->width);
}

const struct operation_type operation_grayscale = {
        .left_kind = DLP_LEFT_GRAYSCALE,
        .moves_with_flip = true,
        .moves_with_crop = true,
        .run = run,
};
