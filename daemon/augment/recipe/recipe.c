/* augment/recipe/recipe.c: what is known of a recipe's results before any picture comes. */
#include "daemon/augment/recipe/body.h"

#include <stdlib.h>

/* The types of masks. torch's losses want int64, and the others have room for what files hold. */
const char *const MASK_DTYPE_NAMES[N_MASK_DTYPES] = { "uint8", "uint16", "int32", "int64" };
static const enum dlp_dtype MASK_DTYPES[N_MASK_DTYPES] = { DLP_DTYPE_UINT8, DLP_DTYPE_UINT16, DLP_DTYPE_INT32,
                                                           DLP_DTYPE_INT64 };

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

int recipe_output(const struct recipe *recipe, uint32_t *ret_height, uint32_t *ret_width) {
        uint32_t height = 0, width = 0;

        for (uint32_t i = 0; i < recipe->n_steps; i++)
                if (recipe->steps[i].type->output)
                        recipe->steps[i].type->output(recipe->steps[i].values, &height, &width);
        if (height == 0)
                return RECIPE_VARIES;
        *ret_height = height;
        *ret_width = width;
        return 0;
}

bool recipe_bound(const struct recipe *recipe, uint32_t *ret_height, uint32_t *ret_width) {
        uint32_t height = 0, width = 0;

        for (uint32_t i = 0; i < recipe->n_steps; i++) {
                const struct step_type *type = recipe->steps[i].type;

                if (type->bound) {
                        type->bound(recipe->steps[i].values, &height, &width);
                } else if (type->output) { /* a bound before it is not the size that it asks for */
                        height = width = 0;
                        type->output(recipe->steps[i].values, &height, &width);
                }
        }
        if (height == 0)
                return false;
        *ret_height = height;
        *ret_width = width;
        return true;
}

bool recipe_drops_boxes(const struct recipe *recipe) {
        for (uint32_t i = 0; i < recipe->n_steps; i++)
                if (recipe->steps[i].type->drops_boxes)
                        return true;
        return false;
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
