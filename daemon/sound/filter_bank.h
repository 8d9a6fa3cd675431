/* sound/filter_bank.h: the triangles that make mel bands of a spectrum, and the cosines that make MFCC of these.
 *
 * As torchaudio.functional.melscale_fbanks() and create_dct() compute them, with float32 at the same places: a
 * triangle is narrow beside its frequency, so that roundings of the frequency are seen in its weights. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/why.h"

/* A band: `n` bins of the spectrum from `first` on, each with a weight. */
struct filter {
        uint32_t first, n; /* n may be 0: a band that lies between two bins */
        const float *weights;
};

struct filter_bank {
        uint32_t n_filters; /* 0: there is none */
        struct filter *filters;
        float *memory; /* of all weights */
};

struct filter_bank_terms {
        uint32_t n_bins; /* of the spectrum */
        uint32_t n_mels;
        uint32_t rate;
        double f_min, f_max; /* Hz */
        bool has_slaney_scale, has_slaney_norm;
};

/* -ENOMEM. */
int filter_bank_init(struct filter_bank *bank, const struct filter_bank_terms *terms, struct why *why);

/* Takes one that is all zeroes. */
void filter_bank_fini(struct filter_bank *bank);

/* n_mfcc rows of n_mels weights; the caller frees them. NULL: no memory. */
float *cosines_new(uint32_t n_mfcc, uint32_t n_mels, bool is_ortho);
