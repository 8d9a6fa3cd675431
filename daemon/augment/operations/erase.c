/* augment/operations/erase.c: a rectangle gets a colour, or random levels.
 *
 * Random levels are the bytes of the stream's words, the lowest first, pixel by pixel and channel by channel; a grey
 * pixel takes one. */
#include "daemon/augment/noise.h"
#include "daemon/augment/operation.h"

#include <string.h>

static void fill(uint8_t *pixel, uint32_t n_pixels, const uint8_t *color) {
        for (uint32_t x = 0; x < n_pixels; x++, pixel += PIXEL_BYTES)
                memcpy(pixel, color, PIXEL_BYTES);
}

struct bytes {
        struct dlp_philox philox;
        uint32_t word;
        unsigned n_left;
};

static uint8_t next_byte(struct bytes *bytes) {
        uint8_t byte;

        if (bytes->n_left == 0) {
                bytes->word = dlp_philox_u32(&bytes->philox);
                bytes->n_left = 4;
        }
        byte = (uint8_t)bytes->word;
        bytes->word >>= 8;
        bytes->n_left--;
        return byte;
}

static void fill_with_noise(uint8_t *pixel, uint32_t n_pixels, bool is_grey, struct bytes *bytes) {
        for (uint32_t x = 0; x < n_pixels; x++, pixel += PIXEL_BYTES) {
                pixel[0] = next_byte(bytes);
                pixel[1] = is_grey ? pixel[0] : next_byte(bytes);
                pixel[2] = is_grey ? pixel[0] : next_byte(bytes);
        }
}

static void run(const struct operation *operation, const struct canvas *canvas) {
        const struct box *box = &operation->box;
        struct bytes bytes = { .n_left = 0 };

        noise_begin(operation->seed, &bytes.philox);
        for (uint32_t y = box->y; y < box->y + box->height; y++) {
                uint8_t *pixel = canvas_at(canvas, box->x, y);

                if (operation->flag)
                        fill_with_noise(pixel, box->width, operation->is_grey, &bytes);
                else
                        fill(pixel, box->width, operation->color);
        }
}

const struct operation_type operation_erase = {
        .name = "erase",
        .moves_with_flip = false, /* the rectangle stays where it is */
        .moves_with_crop = false,
        .run = run,
};
