/* sound/recipe_type.h: what a recipe for sound is made of. Private to this floor. */
#pragma once

#include "daemon/sound/sound_recipe.h"
#include "daemon/sound/sound_step.h"

struct sound_recipe {
        uint32_t n_steps;
        struct sound_step steps[SOUND_STEPS_MAX];
        uint32_t n_channels;
        bool is_wave; /* no features are made of it */
        bool is_turned;
        uint32_t n_rows; /* of features */
};

/* Columns of a sound's features. */
struct sound_columns {
        uint64_t n_made;  /* by the spectrum: without those that the next step cuts off */
        uint64_t n_most;  /* after any step */
        uint64_t n_last;  /* after the last one */
        uint64_t n_fixed; /* that every sound has; 0: they depend on its length */
};

/* The step that makes features of the wave, and its place among the steps; NULL: there is none. */
const struct sound_step *sound_recipe_maker(const struct sound_recipe *recipe, uint32_t *ret_idx);

/* Of a recipe that makes features. */
void sound_recipe_columns(const struct sound_recipe *recipe, uint64_t n_frames, struct sound_columns *ret_columns);
