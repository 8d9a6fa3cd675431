/* unit/test_blur.c: the loops of a blur in all their forms, its memory, and what it does with pictures that are smaller
 * than its kernel. That the pixels are torchvision's is shown by test_transforms.py. */
#include <check.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/augment/operations/blur/blur.h"
#include "daemon/augment/recipe.h"
#include "proto/order/philox.h"
#include "tests/support/pixels.h"
#include "tests/support/suite.h"

#define N_MAX     200u
#define STEP      3u
#define REACH_MAX 20u

struct input {
        uint32_t reach;
        float weights[REACH_MAX + 1];
        uint8_t levels[2 * REACH_MAX + 1][N_MAX];
        const uint8_t *rows[2 * REACH_MAX + 1];
        float sums[N_MAX + 2 * REACH_MAX * STEP];
};

static void draw(struct dlp_philox *philox, struct input *input) {
        input->reach = dlp_philox_below(philox, REACH_MAX + 1);
        for (uint32_t k = 0; k <= input->reach; k++)
                input->weights[k] = dlp_philox_f32(philox) / (float)(2 * input->reach + 1);
        for (uint32_t i = 0; i < 2 * REACH_MAX + 1; i++) {
                for (uint32_t x = 0; x < N_MAX; x++)
                        input->levels[i][x] = (uint8_t)dlp_philox_u32(philox);
                input->rows[i] = input->levels[i];
        }
        for (size_t i = 0; i < sizeof(input->sums) / sizeof(input->sums[0]); i++)
                input->sums[i] = dlp_philox_f32(philox) * 255;
}

START_TEST(all_forms_of_the_loops_give_the_same_bits_and_write_nothing_else) {
        const struct blur_loops *loops = blur_loops_avx2();
        static struct input input;
        struct dlp_philox philox;

        if (!loops)
                return; /* this CPU has one form */
        dlp_philox_init(&philox, 3, 0, 0, 0);
        for (uint32_t n = 0; n <= N_MAX; n++) {
                float sums[2][N_MAX + 1] = { { 0 } };
                uint8_t levels[2][N_MAX + 1] = { { 0 } };

                draw(&philox, &input);
                blur_loops_scalar.down(input.weights, input.reach, input.rows, n, sums[0]);
                loops->down(input.weights, input.reach, input.rows, n, sums[1]);
                ck_assert_msg(memcmp(sums[0], sums[1], sizeof(sums[0])) == 0, "down, %u columns", n);
                blur_loops_scalar.across(input.weights, input.reach, input.sums + REACH_MAX * STEP, STEP, n, levels[0]);
                loops->across(input.weights, input.reach, input.sums + REACH_MAX * STEP, STEP, n, levels[1]);
                ck_assert_msg(memcmp(levels[0], levels[1], sizeof(levels[0])) == 0, "across, %u values", n);
        }
}
END_TEST

/* What the recipe makes of a picture, which it overwrites. */
static void apply(const char *text, uint8_t *pixels, uint32_t width, uint32_t height) {
        struct view view = {
                .pixels = pixels, .stride = (size_t)width * PIXEL_BYTES, .width = width, .height = height
        };
        size_t n_bytes = (size_t)width * height * PIXEL_BYTES;
        uint8_t *out = malloc(n_bytes);
        struct workspace *workspace = NULL;
        struct recipe *recipe = NULL;
        struct geometry geometry;
        struct why why = {};

        ck_assert_msg(recipe_parse(text, &recipe, &why) == 0, "%s", why.text);
        ck_assert_int_eq(workspace_new(RESIZE_CODE_BEST, &workspace, NULL), 0);
        ck_assert_int_eq(recipe_plan(recipe, width, height, 0, 0, 0, &geometry, NULL), 0);
        ck_assert_int_eq(recipe_apply(workspace, &geometry, &view, out, view.stride, NULL), 0);
        ck_assert_msg(workspace_bytes(workspace) <= recipe_bytes_needed(&geometry),
                      "%s of %u x %u needs more than said", text, width, height);
        memcpy(pixels, out, n_bytes);
        free(out);
        workspace_free(workspace);
        recipe_free(recipe);
}

static const uint8_t FLAT[PIXEL_BYTES] = { 255, 0, 127 };

START_TEST(a_flat_picture_of_any_size_stays_as_it_is) {
        static const char *const texts[] = { "gaussian_blur(1)", "gaussian_blur(3)", "gaussian_blur(255, sigma=100)",
                                             "gaussian_blur(1:255, sigma=0.3)", "gaussian_blur(255:3, sigma=1000)" };

        for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
                for (uint32_t width = 1; width < 40; width += 3)
                        for (uint32_t height = 1; height < 40; height += 6) {
                                uint8_t pixels[40 * 40 * PIXEL_BYTES];
                                size_t n_bytes = (size_t)width * height * PIXEL_BYTES;

                                for (size_t at = 0; at < n_bytes; at++)
                                        pixels[at] = FLAT[at % PIXEL_BYTES];
                                apply(texts[i], pixels, width, height);
                                for (size_t at = 0; at < n_bytes; at++)
                                        ck_assert(pixels[at] == FLAT[at % PIXEL_BYTES]);
                        }
}
END_TEST

/* 0 1 0 with a kernel of 3 whose weights are nearly equal: each pixel has the bright one beside it, the outer ones on
 * both sides. */
START_TEST(beyond_the_edges_the_picture_is_mirrored_without_its_outermost_pixel) {
        uint8_t pixels[] = { 0, 0, 0, 240, 240, 240, 0, 0, 0 };
        const uint8_t expected[] = { 160, 160, 160, 80, 80, 80, 160, 160, 160 };

        apply("gaussian_blur(3:1, sigma=1000)", pixels, 3, 1);
        ck_assert(memcmp(pixels, expected, sizeof(pixels)) == 0);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "loops", all_forms_of_the_loops_give_the_same_bits_and_write_nothing_else, 0 },
                { "pictures", a_flat_picture_of_any_size_stays_as_it_is, 0 },
                { "pictures", beyond_the_edges_the_picture_is_mirrored_without_its_outermost_pixel, 0 },
        };

        return suite_run("blur", rows, sizeof(rows) / sizeof(rows[0]));
}
