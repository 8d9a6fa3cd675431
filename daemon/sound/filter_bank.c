#include "daemon/sound/filter_bank.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "proto/base/cleanup.h"

/* Slaney's scale: linear up to 1000 Hz, then logarithmic. */
#define LINEAR_HZ  (200.0 / 3)
#define BREAK_HZ   1000.0
#define BREAK_MEL  (BREAK_HZ / LINEAR_HZ)
#define LOG_STEP() (log(6.4) / 27)

static double mel_of(double hz, bool is_slaney) {
        if (!is_slaney)
                return 2595 * log10(1 + hz / 700);
        return hz < BREAK_HZ ? hz / LINEAR_HZ : BREAK_MEL + log(hz / BREAK_HZ) / LOG_STEP();
}

static float hz_of(float mel, bool is_slaney) {
        if (!is_slaney)
                return 700.0f * ((float)pow(10, (double)(mel / 2595.0f)) - 1.0f);
        if (mel < (float)BREAK_MEL)
                return (float)LINEAR_HZ * mel;
        return 1000.0f * (float)exp((double)((float)LOG_STEP() * (mel - (float)BREAK_MEL)));
}

/* Number i of n from `first` to `last`, as torch.linspace() rounds them: from the nearer end, product and sum at once
 * (which a double does). */
static float filter_bank_between(float first, float last, uint32_t i, uint32_t n) {
        double step = n > 1 ? (last - first) / (float)(n - 1) : 0;

        return (float)(i < n / 2 || n == 1 ? first + step * i : last - step * (n - 1 - i));
}

/* The corners of triangle m are edges[m], [m + 1] and [m + 2]. */
static void find_edges(const struct filter_bank_terms *terms, float *edges) {
        float first = (float)mel_of(terms->f_min, terms->has_slaney_scale);
        float last = (float)mel_of(terms->f_max, terms->has_slaney_scale);
        uint32_t n = terms->n_mels + 2;

        for (uint32_t i = 0; i < n; i++)
                edges[i] = hz_of(filter_bank_between(first, last, i, n), terms->has_slaney_scale);
}

static float filter_bank_weigh(const struct filter_bank_terms *terms, const float edges[3], uint32_t bin) {
        float hz = filter_bank_between(0, (float)(terms->rate / 2), bin, terms->n_bins);
        float rising = (hz - edges[0]) / (edges[1] - edges[0]), falling = (edges[2] - hz) / (edges[2] - edges[1]);
        float weight = rising < falling ? rising : falling;

        if (!(weight > 0))
                return 0;
        return terms->has_slaney_norm ? weight * (2.0f / (edges[2] - edges[0])) : weight;
}

/* The bins that triangle m may have, and no more than a few beside them: looking at all of them for 4,096 triangles
 * would hold up whoever plans a pipeline. */
static void near_bins(const struct filter_bank_terms *terms, const float edges[3], uint32_t *ret_first,
                      uint32_t *ret_end) {
        double bins_a_hz = (terms->n_bins - 1.0) / (terms->rate / 2);
        double first = floor((double)edges[0] * bins_a_hz) - 2, end = ceil((double)edges[2] * bins_a_hz) + 3;

        *ret_first = 0;
        *ret_end = terms->n_bins;
        if (terms->rate < 2 || !isfinite(first) || !isfinite(end))
                return;
        if (first > 0)
                *ret_first = first < terms->n_bins ? (uint32_t)first : terms->n_bins;
        if (end < terms->n_bins)
                *ret_end = end > *ret_first ? (uint32_t)end : *ret_first;
}

/* Weights of the bins from `first` on; what is not zero is one piece. */
static void filter_bank_trim(struct filter *filter, const float *weights, uint32_t first, uint32_t end) {
        while (first < end && weights[first] == 0)
                first++;
        while (end > first && weights[end - 1] == 0)
                end--;
        *filter = (struct filter){ first, end - first, NULL };
}

int filter_bank_init(struct filter_bank *bank, const struct filter_bank_terms *terms, struct why *why) {
        _cleanup_(freep) float *edges = malloc((terms->n_mels + 2) * sizeof(*edges));
        _cleanup_(freep) float *row = malloc(terms->n_bins * sizeof(*row));
        struct filter_bank made = { .filters = calloc(terms->n_mels, sizeof(*made.filters)) };
        uint64_t n = 0;

        /* no bin is in more than two triangles */
        made.memory = malloc(2 * (uint64_t)terms->n_bins * sizeof(*made.memory));
        if (!edges || !row || !made.filters || !made.memory) {
                filter_bank_fini(&made);
                return why_errno(why, -ENOMEM, "the bands of a mel spectrogram");
        }
        find_edges(terms, edges);
        for (uint32_t m = 0; m < terms->n_mels; m++) {
                struct filter *filter = &made.filters[m];
                uint32_t first, end;

                near_bins(terms, edges + m, &first, &end);
                for (uint32_t bin = first; bin < end; bin++)
                        row[bin] = filter_bank_weigh(terms, edges + m, bin);
                filter_bank_trim(filter, row, first, end);
                filter->weights = made.memory + n;
                for (uint32_t k = 0; k < filter->n; k++)
                        made.memory[n++] = row[filter->first + k];
        }
        made.n_filters = terms->n_mels;
        *bank = made;
        return 0;
}

void filter_bank_fini(struct filter_bank *bank) {
        free(bank->filters);
        free(bank->memory);
        *bank = (struct filter_bank){ 0 };
}

float *cosines_new(uint32_t n_mfcc, uint32_t n_mels, bool is_ortho) {
        float *cosines = malloc((uint64_t)n_mfcc * n_mels * sizeof(*cosines)), angle = (float)(M_PI / n_mels);

        for (uint32_t k = 0; cosines && k < n_mfcc; k++)
                for (uint32_t m = 0; m < n_mels; m++) {
                        float cosine = (float)cos((double)(angle * ((float)m + 0.5f) * (float)k));

                        if (is_ortho && k == 0)
                                cosine *= (float)(1 / sqrt(2));
                        cosines[k * n_mels + m] = cosine * (is_ortho ? (float)sqrt(2.0 / n_mels) : 2.0f);
                }
        return cosines;
}
