/* unit/test_colors.c: the steps that change colours and levels where they are: the pixels of Pillow, OpenCV and
 * Albumentations, what is drawn, and what of their pipeline is left to a device. The pixels come from
 * tests/support/make_color_vectors.py and make_pixel_vectors.py. */
#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/augment/recipe.h"
#include "daemon/augment/step.h"
#include "daemon/base/stages.h"
#include "proto/base/cleanup.h"
#include "proto/order/philox.h"
#include "tests/support/pixels.h"
#include "tests/support/suite.h"
#include "tests/support/vectors.h"

#define GUARD 16u /* bytes between rows that nobody may write */

static struct recipe *parse(const char *text) {
        struct recipe *recipe = NULL;
        struct why why = {};

        ck_assert_msg(recipe_parse(text, &recipe, &why) == 0, "%s: %s", text, why.text);
        return recipe;
}

#define SEED  5u
#define EPOCH 2u

static void plan(const char *text, uint64_t sample, struct geometry *ret_geometry) {
        struct recipe *recipe = parse(text);

        ck_assert_int_eq(recipe_plan(recipe, 40, 30, SEED, EPOCH, sample, ret_geometry, NULL), 0);
        recipe_free(recipe);
}

/* An example of a step with another probability; false: it has none. */
static bool write_text(const struct kind *kind, const char *probability, char *ret_text, size_t size) {
        uint32_t n = kind_n_arguments(kind), i;

        for (i = 0; i < n && strcmp(kind->arguments[i].name, "p") != 0; i++)
                ;
        if (i == n)
                return false;
        if (i == 0 || strchr(kind->example, '=') || !strpbrk(kind->example, "0123456789"))
                snprintf(ret_text, size, "%s(p=%s)", kind->name, probability);
        else
                snprintf(ret_text, size, "%.*s, p=%s)", (int)strlen(kind->example) - 1, kind->example, probability);
        return true;
}

/* Does it, where its probability says so, one thing to the pixels where they are, and is never left to a device? Such
 * steps are looked for among all kinds. */
static bool is_one_change(int idx) {
        const struct step_type *type = (const struct step_type *)picture_steps.kinds[idx];
        static struct geometry geometry;
        char text[128];

        if (type->can_be_left || !type->stage || !write_text(&type->kind, "1", text, sizeof(text)))
                return false;
        plan(text, 0, &geometry);
        return geometry.n_operations == 1 && geometry.n_stages == 1;
}

static const char *text_of(int idx, const char *probability) {
        static char text[96];

        write_text(picture_steps.kinds[idx], probability, text, sizeof(text));
        return text;
}

/* ---- pixels -------------------------------------------------------------------------------------------------- */

struct picture {
        uint32_t n_channels, width, height;
        uint8_t *pixels; /* always three channels */
        size_t n_bytes;
};

static void read_picture(const cJSON *line, struct picture *picture) {
        size_t n_pixels, n_bytes;
        uint8_t *bytes = vector_base64(vector_string(line, "pixels"), &n_bytes);

        *picture = (struct picture){ .n_channels = (uint32_t)vector_int(line, "channels"),
                                     .width = (uint32_t)vector_int(line, "width"),
                                     .height = (uint32_t)vector_int(line, "height") };
        n_pixels = (size_t)picture->width * picture->height;
        ck_assert_uint_eq(n_bytes, n_pixels * picture->n_channels);
        picture->n_bytes = n_pixels * PIXEL_BYTES;
        picture->pixels = malloc(picture->n_bytes);
        for (size_t i = 0; i < picture->n_bytes; i++)
                picture->pixels[i] = bytes[picture->n_channels == 1 ? i / PIXEL_BYTES : i];
        free(bytes);
}

/* What the steps make of the picture, without what lies between its rows; the caller frees it. */
static uint8_t *apply(struct workspace *workspace, const struct picture *picture, const char *steps) {
        size_t n_row = (size_t)picture->width * picture->n_channels, stride = n_row + GUARD;
        uint8_t *out = malloc(stride * picture->height), *packed = malloc(n_row * picture->height);
        struct view view = { .pixels = picture->pixels,
                             .stride = (size_t)picture->width * PIXEL_BYTES,
                             .width = picture->width,
                             .height = picture->height };
        struct geometry geometry;
        struct recipe *recipe;
        char text[256];

        snprintf(text, sizeof(text), "%s%s", picture->n_channels == 1 ? "decode(mode=L) " : "", steps);
        recipe = parse(text);
        memset(out, 0xa5, stride * picture->height);
        workspace_trim(workspace);
        ck_assert_int_eq(recipe_plan(recipe, picture->width, picture->height, 0, 0, 0, &geometry, NULL), 0);
        ck_assert_int_eq(recipe_apply(workspace, &geometry, &view, out, stride, NULL), 0);
        if (workspace_bytes(workspace) > recipe_bytes_needed(&geometry))
                ck_abort_msg("%s: %zu bytes; said to need %llu", text, workspace_bytes(workspace),
                             (unsigned long long)recipe_bytes_needed(&geometry));
        for (uint32_t y = 0; y < picture->height; y++) {
                memcpy(packed + y * n_row, out + y * stride, n_row);
                for (size_t i = n_row; i < stride; i++)
                        if (out[y * stride + i] != 0xa5)
                                ck_abort_msg("%s: written beside row %u", text, y);
        }
        free(out);
        recipe_free(recipe);
        return packed;
}

static const struct {
        const char *file;
        unsigned n_at_least;
} VECTORS[] = { { "colors.jsonl", 1000 }, { "pixels.jsonl", 1200 } };

START_TEST(pixels_are_those_of_the_original_whatever_the_size_and_the_levels) {
        struct picture picture = { 0 };
        struct workspace *workspace = NULL;
        struct vectors vectors;
        unsigned n = 0;

        ck_assert_int_eq(workspace_new(RESIZE_CODE_BEST, &workspace, NULL), 0);
        vectors_open(&vectors, VECTORS[_i].file);
        while (vectors_next(&vectors)) {
                const char *text;
                uint8_t *pixels;

                if (vectors_kind(&vectors, "picture")) {
                        free(picture.pixels);
                        read_picture(vectors.line, &picture);
                        continue;
                }
                text = vector_string(vectors.line, "text");
                pixels = apply(workspace, &picture, text);
                ck_assert_msg(fnv1a(pixels, picture.n_bytes / PIXEL_BYTES * picture.n_channels) ==
                                      vector_hex(vector_string(vectors.line, "fnv")),
                              "line %u: %s of %u x %u with %u channels", vectors.number, text, picture.width,
                              picture.height, picture.n_channels);
                free(pixels);
                n++;
        }
        ck_assert_uint_ge(n, VECTORS[_i].n_at_least);
        free(picture.pixels);
        workspace_free(workspace);
}
END_TEST

/* ---- draws --------------------------------------------------------------------------------------------------- */

START_TEST(there_are_such_steps) {
        int n = 0;

        for (int i = 0; picture_steps.kinds[i]; i++)
                n += is_one_change(i);
        ck_assert_int_ge(n, 12);
}
END_TEST

START_TEST(a_step_is_done_where_the_number_of_its_place_is_below_p) {
        static const struct {
                const char *text;
                float p;
        } rows[] = { { "0", 0 }, { "0.25", 0.25f }, { "0.5", 0.5f }, { "1", 1 } };
        static struct geometry geometry;

        if (!is_one_change(_i))
                return;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
                for (uint64_t sample = 0; sample < 300; sample++) {
                        struct dlp_philox philox;
                        char text[128];
                        bool happens;

                        dlp_philox_init(&philox, SEED, EPOCH, sample, 2);
                        happens = dlp_philox_f32(&philox) < rows[i].p;
                        snprintf(text, sizeof(text), "hflip(0.5) %s", text_of(_i, rows[i].text));
                        plan(text, sample, &geometry);
                        ck_assert(geometry.n_operations == happens);
                        if (happens)
                                ck_assert(strcmp(stage_name(geometry.operations[0].step),
                                                 picture_steps.kinds[_i]->name) == 0);
                }
}
END_TEST

START_TEST(other_steps_draw_the_same_whether_a_step_is_done_or_not) {
        static struct geometry with, without;

        if (!is_one_change(_i))
                return;
        for (uint64_t sample = 0; sample < 100; sample++) {
                char text[128];

                snprintf(text, sizeof(text), "%s color_jitter(0.9)", text_of(_i, "1"));
                plan(text, sample, &with);
                snprintf(text, sizeof(text), "%s color_jitter(0.9)", text_of(_i, "0"));
                plan(text, sample, &without);
                ck_assert_uint_eq(with.n_operations, 2);
                ck_assert_uint_eq(without.n_operations, 1);
                ck_assert(with.operations[1].amount == without.operations[0].amount);
        }
}
END_TEST

START_TEST(masks_are_not_changed) {
        static struct geometry geometry;
        struct recipe *recipe;

        if (!is_one_change(_i))
                return;
        recipe = parse(text_of(_i, "1"));
        ck_assert_int_eq(recipe_plan_mask(recipe, 40, 30, false, SEED, EPOCH, 0, &geometry, NULL), 0);
        ck_assert_uint_eq(geometry.n_operations, 0);
        recipe_free(recipe);
}
END_TEST

/* ---- what is left to a device -------------------------------------------------------------------------------- */

START_TEST(a_step_and_all_before_it_are_done_here_and_what_follows_is_left) {
        static struct geometry geometry;
        struct recipe *recipe;
        char text[256];

        if (!is_one_change(_i))
                return;
        snprintf(text, sizeof(text), "center_crop(8) color_jitter(0.4) %s vflip(1) to(float16)", text_of(_i, "1"));
        recipe = parse(text);
        ck_assert(recipe_can_leave_operations(recipe)); /* the flip */
        recipe_free(recipe);

        snprintf(text, sizeof(text),
                 "center_crop(8) color_jitter(0.4) hflip(1) %s vflip(1) color_jitter(0.4) random_grayscale(1)",
                 text_of(_i, "1"));
        recipe = parse(text);
        ck_assert(recipe_can_leave_operations(recipe));
        recipe_leave_operations(recipe);
        ck_assert_int_eq(recipe_plan(recipe, 40, 30, SEED, EPOCH, 0, &geometry, NULL), 0);
        ck_assert_uint_eq(geometry.n_operations, 2);
        ck_assert_uint_eq(geometry.operations[0].step, STAGE_COLOR_JITTER);
        ck_assert_str_eq(stage_name(geometry.operations[1].step), picture_steps.kinds[_i]->name);
        ck_assert(geometry.stages[geometry.n_stages - 1].flip && !geometry.stages[geometry.n_stages - 1].vflip);
        ck_assert_uint_eq(geometry.left.flips, DLP_LEFT_UPSIDE_DOWN);
        ck_assert_uint_eq(geometry.left.n_operations, 2);
        ck_assert_uint_eq(geometry.left.operations[0].kind, DLP_LEFT_BRIGHTNESS);
        ck_assert_uint_eq(geometry.left.operations[1].kind, DLP_LEFT_GRAYSCALE);
        recipe_free(recipe);
}
END_TEST

START_TEST(nothing_is_left_of_a_pipeline_that_ends_with_a_step_except_its_form) {
        static const char *const probabilities[] = { "0", "0.5", "1" }; /* known before anything is drawn */

        if (!is_one_change(_i))
                return;
        for (size_t i = 0; i < sizeof(probabilities) / sizeof(probabilities[0]); i++) {
                struct recipe *recipe;
                char text[256];

                snprintf(text, sizeof(text), "center_crop(8) color_jitter(0.4) hflip %s to(float16) layout(nchw)",
                         text_of(_i, probabilities[i]));
                recipe = parse(text);
                ck_assert(!recipe_can_leave_operations(recipe));
                ck_assert(recipe_can_leave_form(recipe));
                recipe_free(recipe);
        }
}
END_TEST

int main(void) {
        int n_steps = 0;

        while (picture_steps.kinds[n_steps])
                n_steps++;
        const struct suite_row rows[] = {
                { "pixels", pixels_are_those_of_the_original_whatever_the_size_and_the_levels, 2 },
                { "draws", a_step_is_done_where_the_number_of_its_place_is_below_p, n_steps },
                { "draws", other_steps_draw_the_same_whether_a_step_is_done_or_not, n_steps },
                { "draws", there_are_such_steps, 0 },
                { "draws", masks_are_not_changed, n_steps },
                { "left", a_step_and_all_before_it_are_done_here_and_what_follows_is_left, n_steps },
                { "left", nothing_is_left_of_a_pipeline_that_ends_with_a_step_except_its_form, n_steps },
        };

        return suite_run("colors", rows, sizeof(rows) / sizeof(rows[0]));
}
