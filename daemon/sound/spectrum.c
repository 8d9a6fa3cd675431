#include "daemon/sound/spectrum.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"

static void spectrum_freep(struct spectrum **spectrum) {
        spectrum_free(*spectrum);
}

void spectrum_free(struct spectrum *spectrum) {
        if (!spectrum)
                return;
        fft_fini(&spectrum->fft);
        filter_bank_fini(&spectrum->bank);
        free(spectrum->window);
        free(spectrum);
}

/* ---- the window -------------------------------------------------------------------------------------------------- */

/* Periodic: as if a window of n + 1 had lost its last number. */
static float spectrum_window_at(enum spectrum_window window, uint32_t i, uint32_t n) {
        double angle = 2 * M_PI * i / n;

        switch (window) {
        case WINDOW_HAMMING:
                return (float)(0.54 - 0.46 * cos(angle));
        case WINDOW_BLACKMAN:
                return (float)(0.42 - 0.5 * cos(angle) + 0.08 * cos(2 * angle));
        default:
                return (float)(0.5 - 0.5 * cos(angle));
        }
}

/* What the spectrum is divided by is divided out of the window. */
static float norm_of(const struct spectrum_terms *terms) {
        double energy = 0;

        if (terms->norm == SPECTRUM_NORM_FRAME_LENGTH)
                return (float)(1 / sqrt(terms->n_fft));
        if (terms->norm == SPECTRUM_NORM_NONE)
                return 1;
        for (uint32_t i = 0; i < terms->win_length; i++)
                energy += pow(spectrum_window_at(terms->window, i, terms->win_length), 2);
        return (float)(1 / sqrt(energy));
}

static void make_window(const struct spectrum_terms *terms, struct spectrum *spectrum) {
        float norm = norm_of(terms), *window = spectrum->window;

        spectrum->window_length = terms->win_length;
        spectrum->window_begin = (terms->n_fft - terms->win_length) / 2;
        memset(window, 0, terms->n_fft * sizeof(*window));
        if (terms->win_length == 1) { /* torch's windows of one number, all of them */
                window[spectrum->window_begin] = norm;
                return;
        }
        for (uint32_t i = 0; i < terms->win_length; i++)
                window[spectrum->window_begin + i] = spectrum_window_at(terms->window, i, terms->win_length) * norm;
}

int spectrum_new(const struct spectrum_terms *terms, const struct filter_bank_terms *bank,
                 struct spectrum **ret_spectrum, struct why *why) {
        _cleanup_(spectrum_freep) struct spectrum *spectrum = calloc(1, sizeof(*spectrum));
        int r;

        if (!spectrum)
                return why_errno(why, -ENOMEM, "the plan of a spectrogram");
        r = fft_init(&spectrum->fft, terms->n_fft, why);
        if (r == 0 && bank)
                r = filter_bank_init(&spectrum->bank, bank, why);
        if (r < 0)
                return r;
        spectrum->window = malloc(terms->n_fft * sizeof(*spectrum->window));
        if (!spectrum->window)
                return why_errno(why, -ENOMEM, "the plan of a spectrogram");
        spectrum->hop_length = terms->hop_length;
        spectrum->centers = terms->centers;
        spectrum->power = (float)terms->power;
        make_window(terms, spectrum);
        *ret_spectrum = TAKE_PTR(spectrum);
        return 0;
}

/* ---- sizes ------------------------------------------------------------------------------------------------------- */

uint32_t spectrum_n_rows(const struct spectrum *spectrum) {
        return spectrum->bank.n_filters > 0 ? spectrum->bank.n_filters : spectrum->fft.n / 2 + 1;
}

uint32_t spectrum_margin(const struct spectrum *spectrum) {
        return spectrum->centers ? spectrum->fft.n / 2 : 0;
}

uint64_t spectrum_n_columns(const struct spectrum *spectrum, uint64_t n) {
        n += 2 * (uint64_t)spectrum_margin(spectrum);
        return n < spectrum->fft.n ? 0 : 1 + (n - spectrum->fft.n) / spectrum->hop_length;
}

/* Two buffers of complex numbers, and one of a frame, which then has its powers (sound/code.h). */
size_t spectrum_scratch_bytes(const struct spectrum *spectrum) {
        size_t n = 4 * (size_t)spectrum->fft.n_complex + spectrum->fft.n + 1;

        return n * LANES * sizeof(float);
}

/* ---- all columns ------------------------------------------------------------------------------------------------- */

#define NUMBERS_A_LOOK (1u << 16) /* that are transformed */

/* The last lanes repeat the last frame, and are not written. */
void spectrum_run(const struct spectrum *spectrum, const struct sound_code *code, const float *sound,
                  uint64_t n_columns, float *scratch, float *out, uint64_t stride, struct wanting *wanting) {
        size_t n_numbers = (size_t)LANES * spectrum->fft.n, n_done = 0;

        for (uint64_t t = 0; t < n_columns && wanting_goes_on(wanting, &n_done, n_numbers, NUMBERS_A_LOOK);
             t += LANES) {
                uint32_t n_lanes = n_columns - t < LANES ? (uint32_t)(n_columns - t) : LANES;
                const float *frames[LANES];

                for (uint32_t lane = 0; lane < LANES; lane++)
                        frames[lane] = sound + (t + (lane < n_lanes ? lane : n_lanes - 1)) * spectrum->hop_length;
                code->columns(spectrum, frames, n_lanes, scratch, out + t, stride);
        }
}
