/* augment/operations/grayscale.c: sets all three channels of each pixel to its grey. */
#include "daemon/augment/color.h"
#include "daemon/augment/operation.h"

static void run(const struct operation *operation, const struct canvas *canvas) {
        (void)operation;
        for (uint32_t y = 0; y < canvas->height; y++) {
                uint8_t *row = canvas_at(canvas, 0, y);

                for (uint32_t x = 0; x < canvas->width; x++, row += PIXEL_BYTES)
                        row[0] = row[1] = row[2] = (uint8_t)color_luma(row);
        }
}

const struct operation_type operation_grayscale = {
        .name = "grayscale",
        .left_kind = DLP_LEFT_GRAYSCALE,
        .moves_with_flip = true,
        .moves_with_crop = true,
        .run = run,
};
