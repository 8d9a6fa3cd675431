/* augment/operations/gaussian_noise.c: torchvision's gaussian_noise() of uint8: a number of a normal distribution,
 * truncated to a whole one, is added to each level. Without the flag a level that leaves 0 to 255 comes in again at the
 * other end, as in torch.
 *
 * One word of the stream for each channel of each pixel, one after the other; for a grey pixel, one. */
#include "daemon/augment/noise.h"
#include "daemon/augment/operation.h"

static uint8_t with_noise(const struct operation *operation, uint8_t level, struct dlp_philox *philox) {
        float noise = operation->others[0] + noise_normal(philox) * operation->amount;
        int sum = level + (int)noise;

        if (!operation->flag)
                return (uint8_t)sum;
        return sum < 0 ? 0 : sum > 255 ? 255 : (uint8_t)sum;
}

static void run(const struct operation *operation, const struct canvas *canvas) {
        struct dlp_philox philox;

        noise_begin(operation->seed, &philox);
        for (uint32_t y = 0; y < canvas->height; y++) {
                uint8_t *pixel = canvas_at(canvas, 0, y);

                for (uint32_t x = 0; x < canvas->width; x++, pixel += PIXEL_BYTES) {
                        pixel[0] = with_noise(operation, pixel[0], &philox);
                        pixel[1] = operation->is_grey ? pixel[0] : with_noise(operation, pixel[1], &philox);
                        pixel[2] = operation->is_grey ? pixel[0] : with_noise(operation, pixel[2], &philox);
                }
        }
}

const struct operation_type operation_gaussian_noise = {
        .name = "gaussian_noise",
        .moves_with_flip = false, /* its numbers belong to places */
        .moves_with_crop = false,
        .run = run,
};
