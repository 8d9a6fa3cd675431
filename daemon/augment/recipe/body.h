/* augment/recipe/body.h: what a recipe consists of once it is read. Private to this floor. */
#pragma once

#include "daemon/augment/group.h"
#include "daemon/augment/recipe.h"
#include "daemon/augment/step.h"

/* Bytes: a list of LIST_MAX numbers with 24 characters and a colon each, and all else of a step has at most 500. */
#define NORMAL_TEXT_MAX (DLP_STEPS_MAX * 1400u)

struct step {
        const struct step_type *type;
        enum stage_id stage; /* of its own time */
        bool is_formed;      /* steps before it made floats of the levels */
        uint32_t n_inside;   /* of a group: that many steps after it are within its brackets */
        uint32_t depth;      /* in how many groups it is */
        struct value values[ARGUMENTS_MAX];
};

struct recipe {
        enum recipe_kind kind;
        bool goes_on; /* recipe_read() */
        uint32_t n_steps;
        struct step steps[DLP_STEPS_MAX]; /* without `decode`, which does nothing; a group, then those inside */
        uint32_t depth;                   /* while it is read: in how many groups the next step is */
        uint32_t view;                    /* recipe_set_view() */
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
        _Alignas(8) uint8_t store[VALUE_STORE_BYTES(DLP_PIPELINE_MAX, DLP_STEPS_MAX)]; /* of the steps' values */
};

/* The arguments of `decode`. */
enum {
        DECODE_MAX_PIXELS,
        DECODE_EXIF,
        DECODE_MODE,
        DECODE_MASK,
        DECODE_BANDS,
};

/* What they say, for the recipe. -EINVAL: they exclude each other. */
int step_decode_read(struct recipe *recipe, const struct value *values, struct why *why);

/* The types that masks may have, `decode(mask=uint16)`. */
#define N_MASK_DTYPES 4u
extern const char *const MASK_DTYPE_NAMES[N_MASK_DTYPES];

/* Does the step do something to pixels? Else it sets the form in which all samples leave. */
bool step_touches_pixels(const struct step_type *type);

/* The branches of a group: where in recipe->steps each begins and where it ends, up to LIST_MAX. Returns how many. */
uint32_t group_branches(const struct recipe *recipe, uint32_t idx_group, uint32_t *ret_begins, uint32_t *ret_ends);

/* Writes the normal text. */
void print_recipe(struct recipe *recipe);
