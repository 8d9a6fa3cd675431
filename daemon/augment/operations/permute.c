/* augment/operations/permute.c: the three channels of each pixel in another sequence. */
#include "daemon/augment/operation.h"

static void run(const struct operation *operation, const struct canvas *canvas) {
        const uint8_t *from = operation->color;

        for (uint32_t y = 0; y < canvas->height; y++) {
                uint8_t *pixel = canvas_at(canvas, 0, y);

                for (uint32_t x = 0; x < canvas->width; x++, pixel += PIXEL_BYTES) {
                        uint8_t first = pixel[from[0]], second = pixel[from[1]], third = pixel[from[2]];

                        pixel[0] = first;
                        pixel[1] = second;
                        pixel[2] = third;
                }
        }
}

const struct operation_type operation_permute = {
        .moves_with_flip = true,
        .moves_with_crop = true,
        .run = run,
};
