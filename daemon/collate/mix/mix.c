#include "daemon/collate/mix/mix.h"

#include <math.h>

#include "proto/order/making/order_draws.h"
#include "proto/order/philox.h"

#define N_WORDS 9u

/* Further than the draws of samples: they are made with seeds that differ by views, positions and groups of fields. */
#define SEED_OF_BATCHES (1ull << 63)

#define HALF_PI 1.5707963267948966

/* In (0, 1): never 0, whose logarithm there is not. */
static double mix_open_share(uint32_t word) {
        return ((double)word + 0.5) * 0x1p-32;
}

static double mix_share(uint32_t word) {
        return (double)(word >> 8) * 0x1p-24;
}

/* Uniform below n, 1 or more. */
static uint32_t mix_below(uint32_t word, uint32_t n) {
        return (uint32_t)((uint64_t)word * n >> 32);
}

/* The square of the sine of x, 0 <= x <= pi / 4, of which the terms up to x^17 are enough. */
static double sine_squared(double x) {
        double square = x * x, sum = 1;

        for (int k = 16; k >= 2; k -= 2)
                sum = 1 - sum * square / (k * (k + 1));
        return square * (sum * sum);
}

/* With e = U^(1 / alpha), T^2 / (2 alpha) is q / e, where q = (1 - e) cos^2. */
double mix_beta(double alpha, const uint32_t words[3]) {
        double exponent = dlp_logarithm(mix_open_share(words[0])) / alpha, v = mix_open_share(words[1]);
        double e = exponent < -700 ? 0 : dlp_exponential(exponent);
        double cosine = v < 0.5 ? 1 - sine_squared(HALF_PI * v) : sine_squared(HALF_PI * (1 - v));
        double q = (1 - e) * cosine, root = sqrt(q / (q + e));

        return words[2] >> 31 ? (1 - root) / 2 : (1 + root) / 2;
}

/* timm's rand_bbox_minmax(). An interval that holds no whole number counts as its beginning. */
static uint32_t side_of(const double minmax[2], uint32_t whole, uint32_t word) {
        uint32_t low = (uint32_t)(whole * minmax[0]), high = (uint32_t)(whole * minmax[1]);

        return low + (high > low ? mix_below(word, high - low) : 0);
}

static struct mix_box box_of_sides(const double minmax[2], uint32_t height, uint32_t width, const uint32_t words[4]) {
        uint32_t h = side_of(minmax, height, words[0]), w = side_of(minmax, width, words[1]);
        uint32_t top = mix_below(words[2], height - h + 1), left = mix_below(words[3], width - w + 1);

        return (struct mix_box){ top, top + h, left, left + w };
}

/* What is within 0 to `whole` of the elements from `before` in front of `middle` to `after` beyond it. */
static void mix_clip(uint32_t middle, uint32_t before, uint32_t after, uint32_t whole, uint32_t *ret_begin,
                     uint32_t *ret_end) {
        *ret_begin = middle > before ? middle - before : 0;
        *ret_end = whole - middle > after ? middle + after : whole;
}

/* CutMix of torchvision, or rand_bbox() of timm, which keeps the last row and column of odd sides. */
static struct mix_box box_of_lam(enum mix_partner whose, double lam, uint32_t height, uint32_t width,
                                 const uint32_t words[4]) {
        double ratio = sqrt(1 - lam);
        uint32_t w = (uint32_t)(ratio * width), h = (uint32_t)(ratio * height), kept = whose == MIX_MIRRORED;
        struct mix_box box;

        mix_clip(mix_below(words[0], width), w / 2, (w + kept) / 2, width, &box.left, &box.right);
        mix_clip(mix_below(words[1], height), h / 2, (h + kept) / 2, height, &box.top, &box.bottom);
        return box;
}

static uint32_t mix_unit_of(const struct mix_terms *terms, uint32_t i, uint32_t n) {
        if (terms->mode == MIX_BATCH)
                return 0;
        return 1 + (terms->mode == MIX_PAIR && i >= n / 2 ? n - 1 - i : i);
}

void mix_draw(const struct mix_terms *terms, uint64_t seed, uint32_t epoch, uint64_t position, uint32_t i, uint32_t n,
              uint32_t height, uint32_t width, struct mix_draw *ret_draw) {
        struct mix_draw draw = { .lam = 1 };
        struct dlp_philox philox;
        uint32_t words[N_WORDS];
        bool has_minmax = terms->minmax[1] > 0;

        dlp_philox_init(&philox, dlp_philox_seed(dlp_philox_seed(seed, SEED_OF_BATCHES), mix_unit_of(terms, i, n)),
                        epoch, position, 1);
        for (unsigned k = 0; k < N_WORDS; k++)
                words[k] = dlp_philox_u32(&philox);
        *ret_draw = draw;
        if (!(mix_share(words[0]) < terms->p) || (terms->mode == MIX_PAIR && n % 2 == 1 && i == n / 2))
                return;
        draw.is_cut = mix_cuts(terms) > 0 && (!(terms->mixup > 0) || mix_share(words[1]) < terms->switch_p);
        draw.lam = mix_beta(draw.is_cut ? mix_cuts(terms) : terms->mixup, words + 2);
        if (terms->mode != MIX_BATCH) /* timm has those of elements and pairs as float32 */
                draw.lam = (double)(float)draw.lam;
        draw.is_cut = draw.is_cut && height > 0 && width > 0;
        if (draw.is_cut && draw.lam < 1) {
                draw.box = has_minmax
                                   ? box_of_sides(terms->minmax, height, width, words + 5)
                                   : box_of_lam((enum mix_partner)terms->partner, draw.lam, height, width, words + 5);
                if (!terms->keeps_lam || has_minmax)
                        draw.lam = 1 - (double)((uint64_t)(draw.box.bottom - draw.box.top) *
                                                (draw.box.right - draw.box.left)) /
                                               ((double)height * width);
                if (terms->mode != MIX_BATCH)
                        draw.lam = (double)(float)draw.lam;
        }
        *ret_draw = draw;
}
