/* augment/recipe/body.h: what a recipe consists of once it is read. Private to this floor. */
#pragma once

#include "daemon/augment/recipe.h"
#include "daemon/augment/step.h"

#define NORMAL_TEXT_MAX (DLP_STEPS_MAX * 640u) /* bytes: a step with all its arguments has at most 500 */

struct step {
        const struct step_type *type;
        enum stage_id stage; /* of its own time */
        bool is_formed;      /* steps before it made floats of the levels */
        struct value values[ARGUMENTS_MAX];
};

struct recipe {
        enum recipe_kind kind;
        uint32_t n_steps;
        struct step steps[DLP_STEPS_MAX]; /* without `decode`, which does nothing */
        uint64_t max_pixels;              /* of `decode`; 0: not given */
        bool is_upright;                  /* decode(exif=transpose) */
        bool has_mask_dtype;              /* decode(mask=uint16) */
        uint32_t idx_mask_dtype;          /* of MASK_DTYPES */
        struct conversion conversion;
        struct conversion left; /* to the client; see has_left */
        bool has_left;
        bool has_left_operations;
        uint32_t idx_left; /* steps from this one on are left; without has_left_operations: none is */
        char text[NORMAL_TEXT_MAX];
};

/* The types that masks may have, `decode(mask=uint16)`. */
#define N_MASK_DTYPES 4u
extern const char *const MASK_DTYPE_NAMES[N_MASK_DTYPES];

/* Writes the normal text. */
void print_recipe(struct recipe *recipe);
