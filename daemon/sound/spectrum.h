/* sound/spectrum.h: a sound -> its spectrogram, or mel spectrogram, as torchaudio.transforms makes them.
 *
 * Column t is the spectrum of the n_fft numbers around hop * t (from hop * t on without `centers`), times a window. The
 * powers of its n_fft / 2 + 1 bins, or bands of them (filter_bank.h), are a column of the result, whose rows are bins
 * or bands: [row][column], as torchaudio's.
 *
 * The arithmetic is float32 as there, but the transform is another one (fft.h): results differ by some units of the
 * last place of the largest number of a column. A spectrum does not change once it is made: any number of threads may
 * use it, each with scratch of its own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/wanting.h"
#include "daemon/sound/code.h"
#include "daemon/sound/fft.h"
#include "daemon/sound/filter_bank.h"
#include "proto/base/why.h"

enum spectrum_window {
        WINDOW_HANN,
        WINDOW_HAMMING,
        WINDOW_BLACKMAN,
};

enum spectrum_norm {
        SPECTRUM_NORM_NONE,
        SPECTRUM_NORM_WINDOW,       /* divided by the root of the window's energy */
        SPECTRUM_NORM_FRAME_LENGTH, /* divided by the root of n_fft */
};

struct spectrum_terms {
        uint32_t n_fft, win_length, hop_length; /* 1 <= win_length <= n_fft */
        enum spectrum_window window;            /* periodic */
        enum spectrum_norm norm;
        double power;
        bool centers; /* the sound has spectrum_margin() numbers more on each side */
};

struct spectrum {
        struct fft fft;
        uint32_t hop_length;
        bool centers;
        float power;
        float *window; /* n_fft numbers; zero except for window_length of them from window_begin on */
        uint32_t window_begin, window_length;
        struct filter_bank bank; /* none: bins are delivered */
};

/* `bank`: NULL: bins are delivered. -ENOMEM. */
int spectrum_new(const struct spectrum_terms *terms, const struct filter_bank_terms *bank,
                 struct spectrum **ret_spectrum, struct why *why);

/* Takes NULL. */
void spectrum_free(struct spectrum *spectrum);

/* Rows of the result. */
uint32_t spectrum_n_rows(const struct spectrum *spectrum);

/* Numbers that are needed on each side of a sound. */
uint32_t spectrum_margin(const struct spectrum *spectrum);

/* Columns that a sound of n numbers, without its margins, has; 0: it is shorter than a frame. */
uint64_t spectrum_n_columns(const struct spectrum *spectrum, uint64_t n);

/* Memory that spectrum_run() needs. */
size_t spectrum_scratch_bytes(const struct spectrum *spectrum);

/* Writes n_columns, at most those that the sound has; `sound` begins with its margin. Row k begins at out + k * stride.
 * A hop of one makes a transform of each number: some columns are left as they are once nobody wants them (NULL: they
 * are wanted). */
void spectrum_run(const struct spectrum *spectrum, const struct sound_code *code, const float *sound,
                  uint64_t n_columns, float *scratch, float *out, uint64_t stride, struct wanting *wanting);
