/* augment/operations/gaussian_noise.c: torchvision's gaussian_noise() of uint8: a number of a normal distribution,
 * truncated to a whole one, is added to each level. Without the flag a level that leaves 0 to 255 comes in again at the
 * other end, as in torch.
 *
 * One word of the stream for each channel of each pixel, one after the other; for a grey pixel, one. */
#include "daemon/augment/noise.h"
#include "daemon/augment/operation.h"

/* What a word adds depends on it monotonically. Its highest bits say which of some equal parts it is in, and most of
 * these add the same at both of their ends, and so everywhere; the others are computed word by word. */
#define PART_BITS 12u
#define N_PARTS   (1u << PART_BITS)
#define COMPUTE   INT16_MIN

struct noise {
        float mean, sigma;
        bool is_clipped;
        int16_t parts[N_PARTS]; /* COMPUTE: not everywhere the same */
        struct dlp_philox philox;
};

static int noise_of(const struct noise *noise, uint32_t word) {
        return (int)(noise->mean + noise_of_word(word) * noise->sigma);
}

static void noise_init(const struct operation *operation, struct noise *ret_noise) {
        int at_last = 0;

        ret_noise->mean = operation->others[0];
        ret_noise->sigma = operation->amount;
        ret_noise->is_clipped = operation->flag;
        noise_begin(operation->seed, &ret_noise->philox);
        /* A part begins where the one before it ends, nearly: what that adds is not more than what the part adds. */
        for (uint32_t i = 0; i < N_PARTS; i++) {
                uint32_t last = i << (32 - PART_BITS) | UINT32_MAX >> PART_BITS;
                int at_first = i == 0 ? noise_of(ret_noise, 0) : at_last;

                at_last = noise_of(ret_noise, last);
                ret_noise->parts[i] = at_first == at_last ? (int16_t)at_last : COMPUTE;
        }
}

static uint8_t with_noise(struct noise *noise, uint8_t level) {
        uint32_t word = dlp_philox_u32(&noise->philox);
        int known = noise->parts[word >> (32 - PART_BITS)];
        int sum = level + (known == COMPUTE ? noise_of(noise, word) : known);

        if (!noise->is_clipped)
                return (uint8_t)sum;
        return sum < 0 ? 0 : sum > 255 ? 255 : (uint8_t)sum;
}

static void run(const struct operation *operation, const struct canvas *canvas) {
        struct noise noise;

        noise_init(operation, &noise);
        for (uint32_t y = 0; y < canvas->height; y++) {
                uint8_t *pixel = canvas_at(canvas, 0, y);

                for (uint32_t x = 0; x < canvas->width; x++, pixel += PIXEL_BYTES) {
                        pixel[0] = with_noise(&noise, pixel[0]);
                        pixel[1] = operation->is_grey ? pixel[0] : with_noise(&noise, pixel[1]);
                        pixel[2] = operation->is_grey ? pixel[0] : with_noise(&noise, pixel[2]);
                }
        }
}

const struct operation_type operation_gaussian_noise = {
        .name = "gaussian_noise",
        .moves_with_flip = false, /* its numbers belong to places */
        .moves_with_crop = false,
        .run = run,
};
