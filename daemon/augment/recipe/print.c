/* augment/recipe/print.c: a recipe in its one normal spelling. */
#include "daemon/augment/recipe/body.h"
#include "daemon/augment/recipe/read_arguments.h"
#include "proto/base/cleanup.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool is_left_out(const struct argument *argument, const struct value *value) {
        return argument->is_optional && value->height == 0 && value->n_list == 0;
}

static void print_step(const struct step *step, char *text, size_t size) {
        const struct step_type *type = step->type;
        size_t n = (size_t)snprintf(text, size, "%s(", type->name);

        for (unsigned i = 0; i < count_arguments(type); i++) {
                char value[160];

                if (is_left_out(&type->arguments[i], &step->values[i]))
                        continue;
                argument_print(&type->arguments[i], &step->values[i], value, sizeof(value));
                if (i == 0)
                        n += (size_t)snprintf(text + n, size - n, "%s", value);
                else
                        n += (size_t)snprintf(text + n, size - n, ", %s=%s", type->arguments[i].name, value);
        }
        snprintf(text + n, size - n, ")");
}

/* `decode` with those arguments that are not as by default. Returns its length; 0: there are none. */
static size_t print_decode(const struct recipe *recipe, char *text, size_t size) {
        enum pixel_mode mode = recipe->conversion.format.mode;
        char max_pixels[40] = "";
        const char *arguments[] = { max_pixels, recipe->is_upright ? "exif=transpose" : "",
                                    mode == PIXELS_RGB ? "" : "mode=", recipe->has_mask_dtype ? "mask=" : "" };
        const char *values[] = { "", "", PIXEL_MODE_NAMES[mode], MASK_DTYPE_NAMES[recipe->idx_mask_dtype] };
        size_t n = 0;

        if (recipe->max_pixels > 0)
                snprintf(max_pixels, sizeof(max_pixels), "max_pixels=%" PRIu64, recipe->max_pixels);
        for (size_t i = 0; i < ARRAY_SIZE(arguments); i++)
                if (arguments[i][0])
                        n += (size_t)snprintf(text + n, size - n, "%s%s%s", n > 0 ? ", " : "decode(", arguments[i],
                                              values[i]);
        if (n > 0)
                n += (size_t)snprintf(text + n, size - n, ")%s", recipe->n_steps > 0 ? " " : "");
        return n;
}

void print_recipe(struct recipe *recipe) {
        size_t n = print_decode(recipe, recipe->text, sizeof(recipe->text));

        if (n == 0 && recipe->n_steps == 0)
                strcpy(recipe->text, recipe->kind == RECIPE_RAW ? "raw" : "decode");
        for (uint32_t i = 0; i < recipe->n_steps; i++) {
                char text[NORMAL_TEXT_MAX / DLP_STEPS_MAX - 1];

                print_step(&recipe->steps[i], text, sizeof(text));
                n += (size_t)snprintf(recipe->text + n, sizeof(recipe->text) - n, "%s%s", i ? " " : "", text);
        }
}
