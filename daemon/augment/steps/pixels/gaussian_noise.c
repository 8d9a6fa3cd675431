/* augment/steps/pixels/gaussian_noise.c: torchvision's GaussianNoise, as it is for uint8: a number of a normal
 * distribution, truncated to a whole one, is added to each level. Without the flag a level that leaves 0 to 255 comes
 * in again at the other end, as in torch.
 *
 * Draws two words: the seed of its noise. Of that stream it takes one word for each channel of each pixel, one after
 * the other; for a grey pixel, one. */
#include "daemon/augment/noise.h"
#include "daemon/augment/operations/wide.h"
#include "daemon/augment/step.h"

#include <stdbool.h>

/* What a word adds depends on it monotonically. Its highest bits say in which of some equal parts it is. Most parts add
 * the same everywhere, and nearly all others one more from some word on. Both are one number: it has what is added in
 * its 12 highest bits, and its other bits overflow into them if such a word's are added. */
#define PART_BITS 12u
#define N_PARTS   (1u << PART_BITS)
#define LOW_BITS  (32 - PART_BITS)
#define LOW_MASK  ((1u << LOW_BITS) - 1)
#define UNKNOWN   (-(1 << (PART_BITS - 1))) /* more than two in this part: each word is computed by itself */

/* 16 KB that each thread keeps for the next picture: the arguments of a step are always the same. */
struct noise {
        bool is_made, is_clipped;
        float mean, sigma;
        uint32_t parts[N_PARTS];
};

/* As it is needed: clipped to what can change a level, or modulo 256. */
static int noise_of(const struct noise *noise, uint32_t word) {
        int added = (int)(noise->mean + noise_of_word(word) * noise->sigma);

        if (!noise->is_clipped)
                return added;
        return added < -255 ? -255 : added > 255 ? 255 : added;
}

/* The first word of a part, from `low` on, that adds more than `added`; its last one does. */
static uint32_t first_above(const struct noise *noise, uint32_t low, int added) {
        uint32_t high = low | LOW_MASK;

        while (low < high) {
                uint32_t middle = low + (high - low) / 2;

                if (noise_of(noise, middle) > added)
                        high = middle;
                else
                        low = middle + 1;
        }
        return low;
}

static uint32_t gaussian_noise_part_of(const struct noise *noise, uint32_t first, int at_first, int at_last) {
        uint32_t added = (uint32_t)(noise->is_clipped ? at_first : at_first & 255) << LOW_BITS;

        if (at_first == at_last)
                return added;
        if (at_last > at_first + 1)
                return (uint32_t)UNKNOWN << LOW_BITS;
        return added + (LOW_MASK + 1 - (first_above(noise, first, at_first) & LOW_MASK));
}

static const struct noise *noise_for(const struct operation *operation) {
        static _Thread_local struct noise noise;

        if (noise.is_made && noise.mean == operation->others[0] && noise.sigma == operation->amount &&
            noise.is_clipped == operation->flag)
                return &noise;
        noise.is_made = true;
        noise.mean = operation->others[0];
        noise.sigma = operation->amount;
        noise.is_clipped = operation->flag;
        for (uint32_t i = 0; i < N_PARTS; i++) {
                uint32_t first = i << LOW_BITS;

                noise.parts[i] = gaussian_noise_part_of(&noise, first, noise_of(&noise, first),
                                                        noise_of(&noise, first | LOW_MASK));
        }
        return &noise;
}

/* ---- rows ------------------------------------------------------------------------------------------------------ */

#define AT_ONCE 1024u

#define LOOKED_UP 64u

static ALWAYS_INLINE void look_up_loop(const uint32_t *parts, const uint32_t *words, int16_t *restrict added,
                                       int *ret_n_unknown) {
        int n_unknown = 0;

        for (size_t i = 0; i < LOOKED_UP; i++) {
                int32_t known = (int32_t)(parts[words[i] >> LOW_BITS] + (words[i] & LOW_MASK)) >> LOW_BITS;

                n_unknown += known == UNKNOWN;
                added[i] = (int16_t)known;
        }
        *ret_n_unknown = n_unknown;
}

WIDE(look_up, (const uint32_t *parts, const uint32_t *words, int16_t *added, int *ret_n_unknown),
     (parts, words, added, ret_n_unknown))

/* What LOOKED_UP words add. */
static void gaussian_noise_find(const struct noise *noise, const uint32_t *words, int16_t *added) {
        int n_unknown;

        look_up(noise->parts, words, added, &n_unknown);
        for (uint32_t i = 0; n_unknown > 0; i++)
                if (added[i] == UNKNOWN) {
                        added[i] = (int16_t)noise_of(noise, words[i]);
                        n_unknown--;
                }
}

static ALWAYS_INLINE void add_clipped_loop(const int16_t *restrict added, size_t n, uint8_t *restrict levels) {
        for (size_t i = 0; i < n; i++) {
                int sum = levels[i] + added[i];

                sum = sum < 0 ? 0 : sum;
                levels[i] = (uint8_t)(sum > 255 ? 255 : sum);
        }
}

WIDE(add_clipped, (const int16_t *added, size_t n, uint8_t *levels), (added, n, levels))

static ALWAYS_INLINE void add_loop(const int16_t *restrict added, size_t n, uint8_t *restrict levels) {
        for (size_t i = 0; i < n; i++)
                levels[i] = (uint8_t)(levels[i] + added[i]);
}

WIDE(add, (const int16_t *added, size_t n, uint8_t *levels), (added, n, levels))

/* Noise that is ready to be added. */
struct stream {
        const struct noise *noise;
        struct dlp_philox philox;
        uint32_t n_left; /* the last ones of `added` */
        int16_t added[AT_ONCE];
};

static void gaussian_noise_refill(struct stream *stream) {
        uint32_t words[AT_ONCE];

        noise_words(&stream->philox, words, AT_ONCE);
        for (uint32_t i = 0; i < AT_ONCE; i += LOOKED_UP)
                gaussian_noise_find(stream->noise, words + i, stream->added + i);
        stream->n_left = AT_ONCE;
}

static void gaussian_noise_change(struct stream *stream, size_t n, uint8_t *levels) {
        while (n > 0) {
                const int16_t *added;
                size_t n_now;

                if (stream->n_left == 0)
                        gaussian_noise_refill(stream);
                n_now = n < stream->n_left ? n : stream->n_left;
                added = stream->added + AT_ONCE - stream->n_left;
                if (stream->noise->is_clipped)
                        add_clipped(added, n_now, levels);
                else
                        add(added, n_now, levels);
                stream->n_left -= (uint32_t)n_now;
                levels += n_now;
                n -= n_now;
        }
}

static void change_grey(struct stream *stream, size_t n, uint8_t *pixel) {
        for (size_t i = 0; i < n; i++, pixel += PIXEL_BYTES) {
                gaussian_noise_change(stream, 1, pixel);
                pixel[1] = pixel[2] = pixel[0];
        }
}

static void run(const struct operation *operation, const struct canvas *canvas) {
        struct stream stream = { .noise = noise_for(operation), .n_left = 0 };

        noise_begin(operation->seed, &stream.philox);
        for (uint32_t y = 0; y < canvas->height && canvas_goes_on(canvas, y); y++) {
                if (operation->is_grey)
                        change_grey(&stream, canvas->width, canvas_at(canvas, 0, y));
                else
                        gaussian_noise_change(&stream, (size_t)canvas->width * PIXEL_BYTES, canvas_at(canvas, 0, y));
        }
}

static const struct operation_type change = {
        .moves_with_flip = false, /* its numbers belong to places */
        .moves_with_crop = false,
        .run = run,
};

/* ---- the step ------------------------------------------------------------------------------------------------ */

enum {
        MEAN,
        SIGMA,
        CLIP
};

static int plan(const struct value *values, struct dlp_philox *philox, struct fold *fold, struct why *why) {
        (void)why;
        fold_operate(fold, &(struct operation){ .type = &change,
                                                .amount = (float)(values[SIGMA].number * 255),
                                                .others = { (float)(values[MEAN].number * 255) },
                                                .flag = values[CLIP].choice == 1,
                                                .seed = noise_seed(philox) });
        return 0;
}

const struct step_type step_gaussian_noise = {
        .kind = { .name = "gaussian_noise",
                  .doc = "Adds numbers of a normal distribution with this `mean` (-1 to 1) and deviation `sigma` (0 "
                         "to 10), times 255 and truncated, as torchvision does with uint8. Sums beyond 0 to 255 are "
                         "clipped; with `clip=false` 256 is added or subtracted instead, as in torch.",
                  .like = "torchvision.transforms.v2.GaussianNoise",
                  .example = "gaussian_noise(0, sigma=0.1)",
                  .arguments = ARGUMENTS([MEAN] = { ARGUMENT_NUMBER, "mean", "0", -1, 1 },
                                         [SIGMA] = { ARGUMENT_NUMBER, "sigma", "0.1", 0, 10 },
                                         [CLIP] = { ARGUMENT_FLAG, "clip", "true" }) },
        .stage = STAGE_GAUSSIAN_NOISE,
        .plan = plan,
        .convert = levels_check,
};
