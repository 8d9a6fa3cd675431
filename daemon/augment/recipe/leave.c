/* augment/recipe/leave.c: what a recipe leaves to whoever gets its pictures. */
#include "daemon/augment/recipe/body.h"

#include <string.h>

bool recipe_can_leave_form(const struct recipe *recipe) {
        const struct pixel_format *format = &recipe->conversion.format;

        return recipe->kind == RECIPE_PIXELS && !recipe->conversion.has_erasing &&
               (format->mode == PIXELS_RGB || format->mode == PIXELS_L) &&
               (format->dtype != DLP_DTYPE_UINT8 || format->channels_first);
}

void recipe_leave_form(struct recipe *recipe) {
        enum pixel_mode mode = recipe->conversion.format.mode;

        recipe->left = recipe->conversion;
        recipe->has_left = true;
        conversion_init(&recipe->conversion);
        conversion_set_mode(&recipe->conversion, mode);
        recipe->conversion.format.n_channels = recipe->left.format.n_channels; /* one, of grayscale(1) */
        conversion_finish(&recipe->conversion);
}

/* ---- operations that are left ---------------------------------------------------------------------------------- */

bool step_leaves_none(const struct value *values, uint32_t *ret_n_operations) {
        (void)values;
        *ret_n_operations = 0;
        return true;
}

bool step_leaves_one(const struct value *values, uint32_t *ret_n_operations) {
        (void)values;
        *ret_n_operations = 1;
        return true;
}

/* The first of the steps at the end that can be left; n_steps: none can. Steps that touch no pixels are not looked at:
 * they are done by the table. */
static uint32_t first_left(const struct recipe *recipe) {
        uint32_t idx_left = recipe->n_steps, n_operations = 0, n;

        for (uint32_t i = recipe->n_steps; i-- > 0;) {
                const struct step *step = &recipe->steps[i];

                if (!step_touches_pixels(step->type))
                        continue;
                if (step->depth > 0 || !step->type->can_be_left || !step->type->can_be_left(step->values, &n) ||
                    n_operations + n > DLP_LEFT_OPERATIONS_MAX)
                        break;
                n_operations += n;
                idx_left = i;
        }
        return idx_left;
}

/* Where a sample has its operations, after its pixels. */
static uint64_t operations_at(const struct recipe *recipe, uint64_t *ret_pixel_bytes) {
        uint32_t height, width;

        recipe_output(recipe, &height, &width);
        *ret_pixel_bytes = (uint64_t)height * width * recipe->conversion.format.n_channels;
        return (*ret_pixel_bytes + DLP_LEFT_ALIGN - 1) / DLP_LEFT_ALIGN * DLP_LEFT_ALIGN;
}

bool recipe_can_leave_operations(const struct recipe *recipe) {
        enum pixel_mode mode = recipe->conversion.format.mode;
        uint32_t height, width;

        return recipe->kind == RECIPE_PIXELS && !recipe->has_left && !recipe->conversion.has_erasing &&
               (mode == PIXELS_RGB || mode == PIXELS_L) && recipe_output(recipe, &height, &width) != RECIPE_VARIES &&
               (uint64_t)height * width <= DLP_LEFT_PIXELS_MAX && first_left(recipe) < recipe->n_steps;
}

void recipe_leave_operations(struct recipe *recipe) {
        recipe->idx_left = first_left(recipe);
        recipe->has_left_operations = true;
        recipe_leave_form(recipe);
}

uint64_t recipe_left_bytes(const struct recipe *recipe) {
        uint64_t pixel_bytes, at, end;

        if (!recipe->has_left_operations)
                return 0;
        at = operations_at(recipe, &pixel_bytes);
        end = at + sizeof(struct dlp_left_operations);
        return (end + DLP_LEFT_ALIGN - 1) / DLP_LEFT_ALIGN * DLP_LEFT_ALIGN - pixel_bytes;
}

void recipe_write_left(const struct recipe *recipe, const struct geometry *geometry, uint8_t *bytes) {
        uint64_t pixel_bytes, at = operations_at(recipe, &pixel_bytes) - pixel_bytes;

        memset(bytes, 0, recipe_left_bytes(recipe));
        memcpy(bytes + at, &geometry->left, sizeof(geometry->left));
}

bool recipe_left_form(const struct recipe *recipe, struct picture_form *ret_form) {
        const struct pixel_format *format = &recipe->left.format;
        uint64_t pixel_bytes;

        if (!recipe->has_left)
                return false;
        *ret_form = (struct picture_form){ .dtype = format->dtype,
                                           .n_channels = format->n_channels,
                                           .channels_first = format->channels_first };
        conversion_table(&recipe->left, &ret_form->table, &ret_form->table_bytes);
        if (recipe->has_left_operations)
                ret_form->operations_at = operations_at(recipe, &pixel_bytes);
        return true;
}
