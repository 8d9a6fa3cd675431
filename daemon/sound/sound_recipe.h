/* sound/sound_recipe.h: the steps of a pipeline that follow audio(...): of the wave, and of the features made of it.
 *
 *      audio(rate=16000) mel_spectrogram(n_fft=400, hop_length=160, n_mels=80) amplitude_to_db(top_db=80)
 *
 * Names, arguments and results are torchaudio's. Features are [row][column], with a channel before them if the sound
 * has two; after transpose [column][row]. A recipe does not change once it is read: any number of threads may use it,
 * each with memory of its own.
 *
 * What steps draw belongs to (seed, epoch, sample, step); audio is step 0. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/wanting.h"
#include "proto/base/why.h"
#include "proto/text/grammar.h"

#define SOUND_STEPS_MAX 16u

struct sound_recipe;

/* What the steps get. */
struct sound_input {
        uint32_t rate;       /* frames a second; 0: each sound has its own */
        uint32_t n_channels; /* 1 or 2 */
};

/* Reads some steps of a text; there may be none. -EINVAL with the column; -ENOMEM. */
int sound_recipe_read(struct grammar *grammar, struct grammar_steps steps, const struct sound_input *input,
                      struct sound_recipe **ret_recipe, struct why *why);

/* Takes NULL. */
void sound_recipe_free(struct sound_recipe *recipe);

/* The steps in their normal spelling, each after a blank; "" for none. The caller frees it; NULL: no memory. */
char *sound_recipe_text(const struct sound_recipe *recipe);

bool sound_recipe_is_empty(const struct sound_recipe *recipe);

/* Is a spectrogram or the like made of the wave? */
bool sound_recipe_makes_features(const struct sound_recipe *recipe);

#define SOUND_DIMS 3u

/* What is delivered of a sound: a wave, [frame] or [frame][channel], or features. */
struct sound_shape {
        uint32_t n_dims;
        uint32_t idx_time; /* the dimension that depends on the sound's length */
        uint64_t n_time;   /* of it: frames or columns */
        uint64_t n_outer;  /* the product of the dimensions before it */
        uint64_t n_inner;  /* and after it */
        uint64_t n_fixed;  /* columns that every sound has; 0: they depend on its length */
        int64_t sizes[SOUND_DIMS];
};

/* Of a sound of n_frames. -EBADMSG: the steps cannot be done with so short a sound. */
int sound_recipe_shape(const struct sound_recipe *recipe, uint64_t n_frames, struct sound_shape *ret_shape,
                       struct why *why);

/* The same of the longest sound, for the room it needs: a wave that is too short has no columns. */
void sound_recipe_bound(const struct sound_recipe *recipe, uint64_t n_frames, struct sound_shape *ret_shape);

/* ---- running ----------------------------------------------------------------------------------------------------- */

struct sound_draws {
        uint64_t seed, sample;
        uint32_t epoch;
};

/* Numbers that the steps need before the first frame and after the last one, where they may write. */
uint32_t sound_recipe_margin(const struct sound_recipe *recipe);

/* Memory beside the wave and the result, for a sound of n_frames. */
uint64_t sound_recipe_scratch(const struct sound_recipe *recipe, uint64_t n_frames);

/* Changes the wave of n_frames in place, and writes its features to `out`, if there are any: n_outer pieces that begin
 * out_stride numbers apart. Both may be shared with a client that writes there: that changes its own numbers and
 * nothing else. Returns 0; -ECANCELED soon after `wanting` says no (NULL: the features are wanted). */
int sound_recipe_run(const struct sound_recipe *recipe, const struct sound_draws *draws, float *wave, uint64_t n_frames,
                     float *scratch, float *out, uint64_t out_stride, struct wanting *wanting);
