/* sound/sound_step.h: what a step for sound is. Private to this floor.
 *
 * A step is a file steps/NAME.c with one struct sound_step_type, which the build finds (proto/text/kinds.h). Names,
 * sequence, defaults and meaning of arguments are torchaudio's.
 *
 * A step changes numbers of the wave, or rows of features, or makes features of the wave: then it has a spectrum. What
 * a step draws is written down in its file; the draws depend on its arguments and on the sizes, never on the numbers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/sound/spectrum.h"
#include "proto/base/why.h"
#include "proto/order/philox.h"
#include "proto/text/kinds.h"
#include "proto/text/step_values.h"

#define SOUND_ARGUMENTS_MAX  17u
#define SOUND_N_CHANNELS_MAX 2u

/* What a spectrogram finds beyond the ends of a sound. */
enum sound_edge {
        SOUND_EDGE_REFLECT,
        SOUND_EDGE_CONSTANT,
        SOUND_EDGE_REPLICATE,
};

/* ---- arguments of several steps ---------------------------------------------------------------------------------- */

/* Of all steps with a spectrum, as torchaudio's Spectrogram has them. */
#define SOUND_ARGUMENTS_OF_FRAMES                                                                                      \
        { ARGUMENT_NUMBER, "n_fft", "400", 1, FFT_LENGTH_MAX, .is_whole = true },                                      \
                { ARGUMENT_NUMBER, "win_length", "none", 1, FFT_LENGTH_MAX, .is_whole = true, .word = "none" }, {      \
                ARGUMENT_NUMBER, "hop_length", "none", 1, 1000000, .is_whole = true, .word = "none"                    \
        }
#define SOUND_ARGUMENT_PAD                                                                                             \
        { ARGUMENT_NUMBER, "pad", "0", 0, 1000000, .is_whole = true }
/* In the sequence of enum spectrum_window, spectrum_norm and sound_edge. */
#define SOUND_ARGUMENTS_OF_POWERS                                                                                      \
        { ARGUMENT_CHOICE, "window_fn", "hann", CHOICES("hann", "hamming", "blackman") },                              \
                { ARGUMENT_NUMBER, "power", "2", 0.01, 100 },                                                          \
                { ARGUMENT_CHOICE, "normalized", "false", CHOICES("false", "window", "frame_length") },                \
                { ARGUMENT_FLAG, "center", "true" }, {                                                                 \
                ARGUMENT_CHOICE, "pad_mode", "reflect", CHOICES("reflect", "constant", "replicate")                    \
        }

/* MelSpectrogram's. */
#define SOUND_ARGUMENTS_OF_MELS(norm)                                                                                  \
        SOUND_ARGUMENTS_OF_FRAMES, { ARGUMENT_NUMBER, "f_min", "0", 0, 1000000 },                                      \
                { ARGUMENT_NUMBER, "f_max", "none", 0, 1000000, .word = "none" }, SOUND_ARGUMENT_PAD,                  \
                { ARGUMENT_NUMBER, "n_mels", "128", 1, 4096, .is_whole = true }, SOUND_ARGUMENTS_OF_POWERS,            \
                { ARGUMENT_CHOICE, norm, "none", CHOICES("none", "slaney") }, {                                        \
                ARGUMENT_CHOICE, "mel_scale", "htk", CHOICES("htk", "slaney")                                          \
        }

/* ---- what is worked on ------------------------------------------------------------------------------------------- */

enum sound_form {
        SOUND_WAVE,
        SOUND_POWERS,   /* a spectrogram of numbers that are not negative */
        SOUND_FEATURES, /* logarithms and the like */
};

#define SOUND_IN(form) (1u << (form))

/* What the steps before make, while a text is read. */
struct sound_state {
        uint32_t rate; /* 0: each sound has its own */
        uint32_t n_channels;
        enum sound_form form;
        uint32_t n_rows;
        bool is_turned;
};

/* Frames of n_channels numbers; `spare` has room for as many, if a step needs it. */
struct sound_wave {
        float *at, *spare;
        uint64_t n_frames;
        uint32_t n_channels;
};

/* Row r of channel c begins at `at + (c * n_rows + r) * stride`. */
struct sound_features {
        float *at;
        uint64_t stride, n_columns;
        uint32_t n_channels, n_rows;
};

static inline float *sound_row(const struct sound_features *features, uint32_t channel, uint32_t row) {
        return features->at + ((uint64_t)channel * features->n_rows + row) * features->stride;
}

/* ---- steps ------------------------------------------------------------------------------------------------------- */

struct sound_step;

struct sound_step_type {
        struct kind kind; /* comes first */
        unsigned forms;   /* what it works on: SOUND_IN() */

        /* Called once, when the text is read: checks arguments that depend on each other or on the state, gives those
         * their value that are none, makes plans, and says what the step makes of the state. -EINVAL, -ENOMEM. NULL:
         * none of it. */
        int (*settle)(struct sound_step *step, struct sound_state *state, struct why *why);

        /* What it does, one of them; both NULL: it has a spectrum, or says what happens to the result. */
        void (*wave)(const struct sound_step *step, struct dlp_philox *philox, struct sound_wave *wave);
        void (*features)(const struct sound_step *step, struct dlp_philox *philox, struct sound_features *features);

        bool needs_spare; /* of the wave */

        /* The columns that every sound has after it; NULL: as many as before. */
        uint64_t (*n_columns)(const struct sound_step *step);
};

struct sound_step {
        const struct sound_step_type *type;
        struct value values[SOUND_ARGUMENTS_MAX]; /* in the sequence of type->kind.arguments */
        /* Of a step that makes features: the spectrum, numbers of silence on each side, and what comes after them. */
        struct spectrum *spectrum;
        uint32_t n_silent;
        enum sound_edge edge;
        float *cosines; /* of MFCC; else NULL */
        uint32_t n_mfcc;
        bool takes_log; /* log_mels of MFCC */
};

/* The value of an argument, found by its name (asserted). */
struct value *sound_step_value(struct sound_step *step, const char *name);

/* settle() of a spectrogram; `has_bands`: of mel bands. */
int sound_settle_spectrum(struct sound_step *step, struct sound_state *state, bool has_bands, const char *mel_norm,
                          struct why *why);

/* settle() of what makes features of powers, and of features. */
int sound_settle_features(struct sound_step *step, struct sound_state *state, struct why *why);

/* A draw with this probability; takes one word in any case. */
bool sound_happens(struct dlp_philox *philox, double p);

/* Uniform in a range; takes two words. */
double sound_draw(struct dlp_philox *philox, const struct range *range);

/* torchaudio.functional.mask_along_axis(), and mask_along_axis_iid() if each channel has a mask of its own. Draws two
 * words for each mask: first how long all of them are, then where they begin. */
struct sound_mask {
        bool is_of_time; /* else of rows */
        bool is_own;     /* of each channel */
        uint32_t longest;
        double p; /* the part of the axis that may be masked */
        float value;
};

void sound_mask(struct sound_features *features, const struct sound_mask *mask, struct dlp_philox *philox);

/* Powers in decibels, as torchaudio.functional.amplitude_to_DB(): factor * log10(), not less than top_db below the
 * largest number of all; NAN: no limit. */
void sound_decibels(struct sound_features *features, float factor, double top_db);

/* The natural logarithm of each number plus `offset`. */
void sound_logarithms(struct sound_features *features, float offset);

/* All of them: each is the kind of a struct sound_step_type. */
extern const struct kind_family sound_kinds;
