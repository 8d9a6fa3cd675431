/* codec/steps/sound_steps.h: the first step for sound, audio(...), which decodes it. Its kind says what its arguments
 * mean. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/why.h"
#include "proto/layout.h"
#include "proto/text/grammar.h"

enum sound_crop {
        SOUND_CROP_RANDOM,
        SOUND_CROP_CENTER,
        SOUND_CROP_START,
        N_SOUND_CROPS,
};

struct sound_steps {
        char start[DLP_TENSOR_NAME_MAX], duration[DLP_TENSOR_NAME_MAX]; /* names of columns; "": none is named */
        bool starts_at_zero;                                            /* start=0 */
        uint32_t rate;                                                  /* 0: as in the file */
        bool is_mono;
        bool is_int16;
        double seconds; /* 0: any length */
        double max_seconds;
        enum sound_crop crop;
};

/* Is it this step? */
bool sound_steps_are(const struct grammar_step *step);

/* -EINVAL with the column in the text; -ENOMEM. */
int sound_steps_read(struct grammar *grammar, const struct grammar_step *step, struct sound_steps *ret_steps,
                     struct why *why);

/* The step in its one normal spelling, with all defaults; the caller frees it. NULL: no memory. */
char *sound_steps_text(const struct sound_steps *steps);
