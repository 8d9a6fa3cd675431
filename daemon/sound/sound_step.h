/* sound/sound_step.h: what a step for sound is. Private to this floor.
 *
 * A step is a file steps/NAME.c with a struct sound_step_type, and a row of the table in recipe.c. It declares its
 * arguments; sound_arguments.c reads, checks and prints them in the same way for all steps. Names, sequence, defaults
 * and meaning of arguments are torchaudio's.
 *
 * A step changes numbers of the wave, or rows of features, or makes features of the wave: then it has a spectrum. What
 * a step draws is written down in its file; the draws depend on its arguments and on the sizes, never on the numbers.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "daemon/sound/spectrum.h"
#include "proto/base/step_text.h"
#include "proto/base/why.h"
#include "proto/order/philox.h"

#define SOUND_ARGUMENTS_MAX  17u
#define SOUND_NONE_TEXT      "none"
#define SOUND_N_CHANNELS_MAX 2u

/* ---- arguments --------------------------------------------------------------------------------------------------- */

enum sound_argument_kind {
        SOUND_ARGUMENT_END, /* after the last argument */
        SOUND_ARGUMENT_NUMBER,
        SOUND_ARGUMENT_WHOLE,
        SOUND_ARGUMENT_RANGE, /* 6, or -6:6 */
        SOUND_ARGUMENT_CHOICE,
};

struct sound_argument {
        enum sound_argument_kind kind;
        const char *name;
        const char *by_default;  /* as text; NULL: must be given; SOUND_NONE_TEXT: settle() decides, or it stays none */
        double minimum, maximum; /* both included */
        const char *const *choices;
        uint32_t n_choices;
};

/* A number, both ends of a range, or the index of a choice. NAN: none. */
struct sound_value {
        double from, to;
};

/* false and true: the choices 0 and 1. */
extern const char *const SOUND_BOOLS[2];

#define SOUND_ARGUMENT_BOOL(argument_name, initial)                                                                    \
        { SOUND_ARGUMENT_CHOICE, argument_name, initial, .choices = SOUND_BOOLS, .n_choices = 2 }

/* Those of torchaudio's Spectrogram, in the sequence of SPECTRUM_ARGUMENT_... */
#define SOUND_ARGUMENT_N_FFT                                                                                           \
        { SOUND_ARGUMENT_WHOLE, "n_fft", "400", 1, FFT_LENGTH_MAX }
#define SOUND_ARGUMENT_WIN_LENGTH                                                                                      \
        { SOUND_ARGUMENT_WHOLE, "win_length", SOUND_NONE_TEXT, 1, FFT_LENGTH_MAX }
#define SOUND_ARGUMENT_HOP_LENGTH                                                                                      \
        { SOUND_ARGUMENT_WHOLE, "hop_length", SOUND_NONE_TEXT, 1, 1000000 }
#define SOUND_ARGUMENT_PAD                                                                                             \
        { SOUND_ARGUMENT_WHOLE, "pad", "0", 0, 1000000 }
#define SOUND_ARGUMENT_WINDOW                                                                                          \
        { SOUND_ARGUMENT_CHOICE, "window_fn", "hann", .choices = SOUND_WINDOWS, .n_choices = N_WINDOWS }
#define SOUND_ARGUMENT_POWER                                                                                           \
        { SOUND_ARGUMENT_NUMBER, "power", "2", 0.01, 100 }
#define SOUND_ARGUMENT_NORMALIZED                                                                                      \
        { SOUND_ARGUMENT_CHOICE, "normalized", "false", .choices = SOUND_NORMS, .n_choices = N_SPECTRUM_NORMS }
#define SOUND_ARGUMENT_CENTER SOUND_ARGUMENT_BOOL("center", "true")
#define SOUND_ARGUMENT_PAD_MODE                                                                                        \
        { SOUND_ARGUMENT_CHOICE, "pad_mode", "reflect", .choices = SOUND_EDGES, .n_choices = N_SOUND_EDGES }

/* Those that MelSpectrogram has beside. */
#define SOUND_ARGUMENT_F_MIN                                                                                           \
        { SOUND_ARGUMENT_NUMBER, "f_min", "0", 0, 1000000 }
#define SOUND_ARGUMENT_F_MAX                                                                                           \
        { SOUND_ARGUMENT_NUMBER, "f_max", SOUND_NONE_TEXT, 0, 1000000 }
#define SOUND_ARGUMENT_N_MELS                                                                                          \
        { SOUND_ARGUMENT_WHOLE, "n_mels", "128", 1, 4096 }
#define SOUND_ARGUMENT_MEL_NORM(argument_name)                                                                         \
        { SOUND_ARGUMENT_CHOICE, argument_name, "none", .choices = SOUND_MEL_NORMS, .n_choices = 2 }
#define SOUND_ARGUMENT_MEL_SCALE                                                                                       \
        { SOUND_ARGUMENT_CHOICE, "mel_scale", "htk", .choices = SOUND_MEL_SCALES, .n_choices = 2 }

extern const char *const SOUND_WINDOWS[N_WINDOWS], *const SOUND_NORMS[N_SPECTRUM_NORMS];
extern const char *const SOUND_MEL_NORMS[2], *const SOUND_MEL_SCALES[2];

/* What a spectrogram finds beyond the ends of a sound. */
enum sound_edge {
        SOUND_EDGE_REFLECT,
        SOUND_EDGE_CONSTANT,
        SOUND_EDGE_REPLICATE,
        N_SOUND_EDGES,
};

extern const char *const SOUND_EDGES[N_SOUND_EDGES];

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
        const char *name;
        struct sound_argument arguments[SOUND_ARGUMENTS_MAX + 1]; /* positional ones in this sequence */
        unsigned forms;                                           /* what it works on: SOUND_IN() */

        /* Called once, when the text is read: checks arguments that depend on each other or on the state, gives those
         * their value that have none, makes plans, and says what the step makes of the state. -EINVAL, -ENOMEM. NULL:
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
        struct sound_value values[SOUND_ARGUMENTS_MAX];
        /* Of a step that makes features: the spectrum, numbers of silence on each side, and what comes after them. */
        struct spectrum *spectrum;
        uint32_t n_silent;
        enum sound_edge edge;
        float *cosines; /* of MFCC; else NULL */
        uint32_t n_mfcc;
        bool takes_log; /* log_mels of MFCC */
};

extern const struct sound_step_type sound_step_gain;
extern const struct sound_step_type sound_step_noise;
extern const struct sound_step_type sound_step_spectrogram;
extern const struct sound_step_type sound_step_mel_spectrogram;
extern const struct sound_step_type sound_step_mfcc;
extern const struct sound_step_type sound_step_amplitude_to_db;
extern const struct sound_step_type sound_step_log;
extern const struct sound_step_type sound_step_normalize;
extern const struct sound_step_type sound_step_time_mask;
extern const struct sound_step_type sound_step_freq_mask;
extern const struct sound_step_type sound_step_spec_augment;
extern const struct sound_step_type sound_step_columns;
extern const struct sound_step_type sound_step_transpose;

/* Frees what settle() has made. */
void sound_step_fini(struct sound_step *step);

/* The value's index in the table of arguments, found by name (asserted). */
struct sound_value *sound_step_value(struct sound_step *step, const char *name);
double sound_step_number(const struct sound_step *step, const char *name);
bool sound_step_is(const struct sound_step *step, const char *name); /* of SOUND_BOOLS */

/* settle() of a spectrogram; `has_bands`: of mel bands. */
int sound_settle_spectrum(struct sound_step *step, struct sound_state *state, bool has_bands, const char *mel_norm,
                          struct why *why);

/* A draw with this probability; takes one word in any case. */
bool sound_happens(struct dlp_philox *philox, double p);

/* Uniform in a range; takes two words. */
double sound_draw(struct dlp_philox *philox, const struct sound_value *range);

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

/* Reads the value that ends before any of ",) \t\r\n". -EINVAL with the column. */
int sound_argument_read(struct step_text *reader, const struct sound_argument *argument, struct sound_value *ret_value);

/* Reads "(...)", or nothing if it is not there, and fills in defaults. -EINVAL with the column. */
int sound_arguments_read(struct step_text *reader, struct sound_step *step);

/* Writes name(argument=value, ...) in the normal spelling. */
void sound_arguments_print(const struct sound_step *step, FILE *stream);
