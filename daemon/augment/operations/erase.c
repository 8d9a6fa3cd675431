/* augment/operations/erase.c: rectangles get a colour, or random levels.
 *
 * Random levels are the bytes of the stream's words, the lowest first, pixel by pixel and channel by channel; a grey
 * pixel takes one. */
#include "daemon/augment/noise.h"
#include "daemon/augment/operation.h"

#include <string.h>

static void erase_fill(uint8_t *pixel, uint32_t n_pixels, const uint8_t *color) {
        for (uint32_t x = 0; x < n_pixels; x++, pixel += PIXEL_BYTES)
                memcpy(pixel, color, PIXEL_BYTES);
}

static void fill_with_noise(uint8_t *pixel, uint32_t n_pixels, bool is_grey, struct noise_bytes *bytes) {
        for (uint32_t x = 0; x < n_pixels; x++, pixel += PIXEL_BYTES) {
                pixel[0] = noise_byte(bytes);
                pixel[1] = is_grey ? pixel[0] : noise_byte(bytes);
                pixel[2] = is_grey ? pixel[0] : noise_byte(bytes);
        }
}

static void erase_erase(const struct operation *operation, const struct box *box, struct dlp_philox *philox,
                        const struct canvas *canvas) {
        struct noise_bytes bytes;

        noise_bytes_begin(philox, (uint64_t)box->width * box->height * (operation->is_grey ? 1 : PIXEL_BYTES), &bytes);
        for (uint32_t y = box->y; y < box->y + box->height; y++) {
                uint8_t *pixel = canvas_at(canvas, box->x, y);

                if (operation->flag)
                        fill_with_noise(pixel, box->width, operation->is_grey, &bytes);
                else
                        erase_fill(pixel, box->width, operation->color);
        }
}

static void run(const struct operation *operation, const struct canvas *canvas) {
        struct dlp_philox philox;

        noise_begin(operation->seed, &philox);
        erase_erase(operation, &operation->box, &philox, canvas);
}

const struct operation_type operation_erase = {
        .moves_with_flip = false, /* the rectangle stays where it is */
        .moves_with_crop = false,
        .run = run,
};

/* ---- holes: as many rectangles as are drawn ------------------------------------------------------------------ */

/* A length between two: of pixels, or, if the longest is below 1, of shares of the side. */
static uint32_t draw_length(float from, float to, uint32_t side, bool is_pixels, struct dlp_philox *philox) {
        uint32_t shortest = (uint32_t)from, longest = (uint32_t)to;

        if (!is_pixels)
                return (uint32_t)((float)side * (from + (to - from) * dlp_philox_f32(philox)));
        longest = longest < side ? longest : side;
        shortest = shortest < longest ? shortest : longest;
        return shortest + dlp_philox_below(philox, longest - shortest + 1);
}

/* The stream gives the number of holes, and for each hole its height, its width, its top and its left, and then its
 * random levels. others: the heights from and to, the widths from and to; box: x and y, the number from and to. */
static void run_holes(const struct operation *operation, const struct canvas *canvas) {
        const float *others = operation->others;
        bool is_pixels = others[1] >= 1;
        struct dlp_philox philox;
        uint32_t n;

        noise_begin(operation->seed, &philox);
        n = operation->box.x + dlp_philox_below(&philox, operation->box.y - operation->box.x + 1);
        for (uint32_t i = 0; i < n; i++) {
                struct box hole;

                hole.height = draw_length(others[0], others[1], canvas->height, is_pixels, &philox);
                hole.width = draw_length(others[2], others[3], canvas->width, is_pixels, &philox);
                hole.y = dlp_philox_below(&philox, canvas->height - hole.height + 1);
                hole.x = dlp_philox_below(&philox, canvas->width - hole.width + 1);
                erase_erase(operation, &hole, &philox, canvas);
        }
}

const struct operation_type operation_holes = {
        .moves_with_flip = false,
        .moves_with_crop = false,
        .run = run_holes,
};
