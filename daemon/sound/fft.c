#include "daemon/sound/fft.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* e^(-2 pi i k / n), of which the quarters are exact. */
static void put_root(float *at, uint64_t k, uint64_t n) {
        double angle = 2 * M_PI * (double)(k % n) / (double)n;
        uint64_t quarter = k % n * 4;

        at[0] = quarter == n || quarter == 3 * n ? 0 : (float)cos(angle);
        at[1] = quarter == 0 || quarter == 2 * n ? 0 : (float)-sin(angle);
}

/* Fours first: a butterfly of four does the work of two passes. */
static uint32_t next_factor(uint32_t n) {
        if (n % 4 == 0)
                return 4;
        for (uint32_t factor = 2; factor * factor <= n; factor++)
                if (n % factor == 0)
                        return factor;
        return n;
}

uint32_t fft_largest_prime(uint32_t n) {
        uint32_t largest = 1;

        for (uint32_t factor = 2; factor <= n; factor++)
                for (; n % factor == 0; n /= factor)
                        largest = factor;
        return largest;
}

static bool has_butterfly(uint32_t factor) {
        return factor <= 5;
}

static void plan_passes(struct fft *fft) {
        uint32_t left = fft->n_complex, stride = 1;

        while (left > 1) {
                struct fft_pass *pass = &fft->passes[fft->n_passes++];

                assert(fft->n_passes <= FFT_FACTORS_MAX);
                pass->factor = next_factor(left);
                pass->count = left / pass->factor;
                pass->stride = stride;
                left = pass->count;
                stride *= pass->factor;
        }
}

static uint64_t fft_n_floats(const struct fft *fft) {
        uint64_t n = fft->n / 4 + 1;

        for (uint32_t i = 0; i < fft->n_passes; i++) {
                n += (uint64_t)fft->passes[i].count * (fft->passes[i].factor - 1);
                n += has_butterfly(fft->passes[i].factor) ? 0 : fft->passes[i].factor;
        }
        return 2 * n;
}

static void fill_pass(struct fft_pass *pass, float **at) {
        uint64_t length = (uint64_t)pass->count * pass->factor;

        pass->twists = *at;
        for (uint64_t p = 0; p < pass->count; p++)
                for (uint64_t j = 1; j < pass->factor; j++, *at += 2)
                        put_root(*at, p * j, length);
        if (has_butterfly(pass->factor))
                return;
        pass->roots = *at;
        for (uint64_t j = 0; j < pass->factor; j++, *at += 2)
                put_root(*at, j, pass->factor);
}

int fft_init(struct fft *fft, uint32_t n, struct why *why) {
        struct fft planned = { .n = n, .n_complex = n % 2 == 0 ? n / 2 : n };
        float *at;

        assert(n >= 1 && n <= FFT_LENGTH_MAX);
        plan_passes(&planned);
        planned.memory = at = malloc(fft_n_floats(&planned) * sizeof(*at));
        if (!at)
                return why_errno(why, -ENOMEM, "the plan of a spectrogram");
        for (uint32_t i = 0; i < planned.n_passes; i++)
                fill_pass(&planned.passes[i], &at);
        planned.halves = at;
        for (uint32_t k = 0; k <= n / 4; k++, at += 2)
                put_root(at, k, n);
        *fft = planned;
        return 0;
}

void fft_fini(struct fft *fft) {
        free(fft->memory);
        *fft = (struct fft){ 0 };
}
