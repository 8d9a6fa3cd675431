/* augment/recipe/print.c: a recipe in its one normal spelling. */
#include "daemon/augment/recipe/body.h"
#include "proto/base/cleanup.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A step whose brackets are printed. */
struct printing {
        const struct recipe *recipe;
        uint32_t idx;
};

static size_t recipe_print_steps(const struct recipe *recipe, uint32_t begin, uint32_t end, const char *between,
                                 char *text, size_t size);

static size_t print_inside(const void *userdata, char *text, size_t size) {
        const struct printing *group = userdata;
        uint32_t begin = group->idx + 1;

        return recipe_print_steps(group->recipe, begin, begin + group->recipe->steps[group->idx].n_inside, ", ", text,
                                  size);
}

/* Those inside of a group are printed with it. */
static size_t recipe_print_steps(const struct recipe *recipe, uint32_t begin, uint32_t end, const char *between,
                                 char *text, size_t size) {
        size_t n = 0;

        for (uint32_t i = begin; i < end; i += 1 + recipe->steps[i].n_inside) {
                const struct printing group = { recipe, i };

                n += (size_t)snprintf(text + n, size - n, "%s", i > begin ? between : "");
                n += values_print(&picture_steps, &recipe->steps[i].type->kind, recipe->steps[i].values, print_inside,
                                  &group, text + n, size - n);
        }
        return n;
}

/* `decode` with those arguments that are not as by default. Returns its length; 0: there are none. */
static size_t print_decode(const struct recipe *recipe, char *text, size_t size) {
        const struct pixel_format *format = &recipe->conversion.format;
        enum pixel_mode mode = recipe->goes_on ? PIXELS_RGB : format->mode;
        char max_pixels[40] = "", bands[40] = "";
        const char *arguments[] = { max_pixels, recipe->is_upright ? "exif=transpose" : "",
                                    mode == PIXELS_RGB ? "" : "mode=", recipe->has_mask_dtype ? "mask=" : "", bands };
        const char *values[] = { "", "", PIXEL_MODE_NAMES[mode], MASK_DTYPE_NAMES[recipe->idx_mask_dtype], "" };
        size_t n = 0;

        if (recipe->max_pixels > 0)
                snprintf(max_pixels, sizeof(max_pixels), "max_pixels=%" PRIu64, recipe->max_pixels);
        if (format->is_bands && (format->n_channels > 1 || mode != PIXELS_F))
                snprintf(bands, sizeof(bands), "bands=%" PRIu32, format->n_channels);
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
        recipe_print_steps(recipe, 0, recipe->n_steps, " ", recipe->text + n, sizeof(recipe->text) - n);
}
