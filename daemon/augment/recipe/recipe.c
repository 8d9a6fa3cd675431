/* augment/recipe/recipe.c: what is known of a recipe's results before any picture comes. */
#include "daemon/augment/recipe/body.h"

#include <stdlib.h>

/* The types of masks. torch's losses want int64, and the others have room for what files hold. */
const char *const MASK_DTYPE_NAMES[N_MASK_DTYPES] = { "uint8", "uint16", "int32", "int64" };
static const enum dlp_dtype MASK_DTYPES[N_MASK_DTYPES] = { DLP_DTYPE_UINT8, DLP_DTYPE_UINT16, DLP_DTYPE_INT32,
                                                           DLP_DTYPE_INT64 };

bool step_touches_pixels(const struct step_type *type) {
        return type->plan || type->group;
}

uint32_t group_branches(const struct recipe *recipe, uint32_t idx_group, uint32_t *ret_begins, uint32_t *ret_ends) {
        const struct step *group = &recipe->steps[idx_group];
        uint32_t begin = idx_group + 1, end = begin + group->n_inside, n = 0;

        while (begin < end) {
                uint32_t after = group->type->group->is_sequence ? end : begin + 1 + recipe->steps[begin].n_inside;

                ret_begins[n] = begin;
                ret_ends[n++] = begin = after;
        }
        return n;
}

void recipe_free(struct recipe *recipe) {
        free(recipe);
}

void recipe_freep(struct recipe **recipe) {
        recipe_free(*recipe);
}

enum recipe_kind recipe_kind(const struct recipe *recipe) {
        return recipe->kind;
}

const char *recipe_text(const struct recipe *recipe) {
        return recipe->text;
}

bool recipe_drops_boxes(const struct recipe *recipe) {
        for (uint32_t i = 0; i < recipe->n_steps; i++)
                if (recipe->steps[i].type->drops_boxes)
                        return true;
        return false;
}

bool recipe_needs_boxes(const struct recipe *recipe) {
        for (uint32_t i = 0; i < recipe->n_steps; i++)
                if (recipe->steps[i].type->needs_boxes)
                        return true;
        return false;
}

void recipe_set_view(struct recipe *recipe, uint32_t view) {
        recipe->view = view;
}

bool recipe_keeps_places(const struct recipe *recipe) {
        for (uint32_t i = 0; i < recipe->n_steps; i++)
                if (step_touches_pixels(recipe->steps[i].type) && !recipe->steps[i].type->may_follow_form)
                        return false;
        return true;
}

bool recipe_is_upright(const struct recipe *recipe) {
        return recipe->is_upright;
}

bool recipe_mask_dtype(const struct recipe *recipe, enum dlp_dtype *ret_dtype) {
        if (recipe->has_mask_dtype)
                *ret_dtype = MASK_DTYPES[recipe->idx_mask_dtype];
        return recipe->has_mask_dtype;
}

uint64_t recipe_max_pixels(const struct recipe *recipe) {
        return recipe->max_pixels;
}

const struct pixel_format *recipe_format(const struct recipe *recipe) {
        return &recipe->conversion.format;
}
