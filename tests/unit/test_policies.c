/* unit/test_policies.c: the steps auto_augment, rand_augment, trivial_augment_wide, timm_rand_augment and aug_mix: the
 * pixels of torchvision's and timm's own classes on Pillow, with our draws, from tests/support/make_policy_vectors.py,
 * make_timm_vectors.py and make_aug_mix_vectors.py; and what is refused. */
#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/augment/operations/aug_mix/aug_mix_draws.h"
#include "daemon/augment/recipe.h"
#include "daemon/base/stages.h"
#include "proto/base/cleanup.h"
#include "tests/support/pixels.h"
#include "tests/support/suite.h"
#include "tests/support/vectors.h"

#define SEED  1u
#define EPOCH 0u

static struct recipe *parse(const char *text) {
        struct recipe *recipe = NULL;
        struct why why = {};

        ck_assert_msg(recipe_parse(text, &recipe, &why) == 0, "%s: %s", text, why.text);
        return recipe;
}

struct picture {
        uint32_t n_channels, width, height;
        uint8_t *pixels; /* always three channels */
};

static void read_picture(const cJSON *line, struct picture *picture) {
        size_t n_bytes;
        uint8_t *bytes = vector_base64(vector_string(line, "pixels"), &n_bytes);

        picture->n_channels = (uint32_t)vector_int(line, "channels");
        picture->width = (uint32_t)vector_int(line, "width");
        picture->height = (uint32_t)vector_int(line, "height");
        n_bytes = (size_t)picture->width * picture->height * PIXEL_BYTES;
        picture->pixels = malloc(n_bytes);
        for (size_t i = 0; i < n_bytes; i++)
                picture->pixels[i] = bytes[picture->n_channels == 1 ? i / PIXEL_BYTES : i];
        free(bytes);
}

static uint64_t digest(struct workspace *workspace, const struct picture *picture, const char *steps, uint64_t sample) {
        size_t n_row = (size_t)picture->width * picture->n_channels;
        struct view view = { .pixels = picture->pixels,
                             .stride = (size_t)picture->width * PIXEL_BYTES,
                             .width = picture->width,
                             .height = picture->height };
        static struct geometry geometry;
        struct recipe *recipe;
        uint64_t fnv;
        uint8_t *out;
        char text[256];

        snprintf(text, sizeof(text), "%s%s", picture->n_channels == 1 ? "decode(mode=L) " : "", steps);
        recipe = parse(text);
        ck_assert_int_eq(recipe_plan(recipe, picture->width, picture->height, SEED, EPOCH, sample, &geometry, NULL), 0);
        ck_assert_uint_eq(geometry.width, picture->width);
        ck_assert_uint_eq(geometry.height, picture->height);
        out = malloc(n_row * geometry.height);
        workspace_trim(workspace);
        ck_assert_int_eq(recipe_apply(workspace, &geometry, &view, out, n_row, NULL), 0);
        ck_assert_uint_le(workspace_bytes(workspace), recipe_bytes_needed(&geometry));
        fnv = fnv1a(out, n_row * geometry.height);
        free(out);
        recipe_free(recipe);
        return fnv;
}

static const char *const VECTORS[] = { "policies.jsonl", "timm.jsonl", "aug_mix.jsonl" };

START_TEST(pixels_are_those_of_the_original_classes) {
        struct picture picture = { 0 };
        struct workspace *workspace = NULL;
        struct vectors vectors;
        unsigned n = 0;

        ck_assert_int_eq(workspace_new(RESIZE_CODE_BEST, &workspace, NULL), 0);
        vectors_open(&vectors, VECTORS[_i]);
        while (vectors_next(&vectors)) {
                const char *text;

                if (vectors_kind(&vectors, "picture")) {
                        free(picture.pixels);
                        read_picture(vectors.line, &picture);
                        continue;
                }
                text = vector_string(vectors.line, "text");
                ck_assert_msg(digest(workspace, &picture, text, (uint64_t)vector_int(vectors.line, "sample")) ==
                                      vector_hex(vector_string(vectors.line, "fnv")),
                              "line %u: %s of %u x %u", vectors.number, text, picture.width, picture.height);
                n++;
        }
        ck_assert_uint_ge(n, 700);
        free(picture.pixels);
        workspace_free(workspace);
}
END_TEST

/* Each with all of its own arguments. */
static const char *const STEPS[] = { "auto_augment(svhn)", "rand_augment(4, 9)", "trivial_augment_wide",
                                     "timm_rand_augment(9)", "aug_mix(3)" };

#define N_FOLDED 4 /* the first ones, whose changes are operations and warps of the plan */

START_TEST(a_policy_is_for_pictures_alone) {
        struct recipe *recipe = parse(STEPS[_i]);
        static struct geometry geometry;
        static struct motions motions;
        struct why why = {};

        ck_assert_int_eq(recipe_plan_mask(recipe, 9, 9, false, SEED, EPOCH, 0, &geometry, &why), -EINVAL);
        ck_assert_ptr_nonnull(strstr(why.text, "is not for pictures with masks, boxes or points"));
        ck_assert_int_eq(recipe_plan_motions(recipe, 9, 9, SEED, EPOCH, 0, &geometry, &motions, &why), -EINVAL);
        ck_assert_int_eq(strncmp(why.text, STEPS[_i], strcspn(STEPS[_i], "(")), 0);
        recipe_free(recipe);
}
END_TEST

START_TEST(what_it_does_is_its_own_time_and_is_left_to_nobody) {
        enum stage_id stages[] = { STAGE_AUTO_AUGMENT, STAGE_RAND_AUGMENT, STAGE_TRIVIAL_AUGMENT_WIDE,
                                   STAGE_TIMM_RAND_AUGMENT };
        struct recipe *recipe = parse(STEPS[_i]);
        static struct geometry geometry;
        unsigned n_operations = 0, n_warps = 0;

        ck_assert(!recipe_can_leave_operations(recipe));
        for (uint64_t sample = 0; sample < 200; sample++) {
                ck_assert_int_eq(recipe_plan(recipe, 40, 30, SEED, EPOCH, sample, &geometry, NULL), 0);
                for (uint32_t i = 0; i < geometry.n_operations; i++, n_operations++)
                        ck_assert(geometry.operations[i].step == stages[_i]);
                for (uint32_t i = 1; i < geometry.n_stages; i++, n_warps++)
                        ck_assert(geometry.stages[i].drawn_by == stages[_i] && geometry.stages[i].warp.kind);
        }
        ck_assert_uint_gt(n_operations, 50);
        ck_assert_uint_gt(n_warps, 30);
        recipe_free(recipe);
}
END_TEST

/* ---- aug_mix ----------------------------------------------------------------------------------------------------- */

START_TEST(aug_mix_is_one_operation_that_says_what_memory_it_needs) {
        struct recipe *recipe = parse("aug_mix(mixture_width=5) hflip(1)"), *other = parse("invert(1) hflip(1)");
        static struct geometry geometry, other_geometry;

        ck_assert(!recipe_can_leave_operations(recipe));
        ck_assert_int_eq(recipe_plan(recipe, 40, 30, SEED, EPOCH, 0, &geometry, NULL), 0);
        ck_assert_int_eq(recipe_plan(other, 40, 30, SEED, EPOCH, 0, &other_geometry, NULL), 0);
        ck_assert_uint_eq(geometry.n_operations, 1);
        ck_assert(geometry.operations[0].step == STAGE_AUG_MIX);
        ck_assert_uint_eq(geometry.n_stages, 2); /* nothing after it may be done before it */
        ck_assert_uint_eq(other_geometry.n_stages, 1);
        ck_assert_uint_ge(recipe_bytes_needed(&geometry),
                          recipe_bytes_needed(&other_geometry) + 6 * 40 * 30 * PIXEL_BYTES);
        recipe_free(recipe);
        recipe_free(other);
}
END_TEST

static const float ALPHAS[] = { 0.01f, 0.25f, 1, 4, 100 };

/* Of n equal alphas a share has the mean 1 / n and the variance (1 / n) (1 - 1 / n) / (n alpha + 1). The original's is
 * one of two, and the chains share the other. */
START_TEST(weights_have_the_mean_and_the_deviation_of_dirichlets) {
        const unsigned n = 20000;
        double sum = 0, squares = 0, chain_sum = 0, alpha = (double)ALPHAS[_i];

        for (uint64_t seed = 0; seed < n; seed++) {
                struct aug_mix_weights weights;
                double all, from_half;

                aug_mix_draw_weights(seed * 0x9e3779b97f4a7c15u, ALPHAS[_i], 3, &weights);
                all = (double)weights.original + (double)weights.chains[0] + (double)weights.chains[1] +
                      (double)weights.chains[2];
                ck_assert(fabs(all - 1) < 1e-6);
                from_half = (double)weights.original - 0.5;
                sum += from_half;
                squares += from_half * from_half;
                chain_sum += (double)weights.chains[1];
        }
        ck_assert_double_lt(fabs(sum / n), 0.015); /* four deviations of the mean, of alphas near 0 */
        ck_assert_double_lt(fabs(chain_sum / n - 1.0 / 6), 0.01);
        ck_assert_double_lt(fabs(squares / n / (0.25 / (2 * alpha + 1)) - 1), 0.05);
}
END_TEST

START_TEST(an_argument_moves_no_other_draws) {
        struct dlp_philox given, drawn, chain;
        struct aug_mix_weights few, many;

        aug_mix_draw_weights(7, 0.5f, 1, &few);
        aug_mix_draw_weights(7, 0.5f, 16, &many);
        ck_assert(few.original == many.original);
        ck_assert_uint_eq(aug_mix_begin_chain(7, 2, 9, &given), 9);
        ck_assert_uint_le(aug_mix_begin_chain(7, 2, 0, &drawn), 3);
        aug_mix_begin_chain(7, 1, 0, &chain);
        for (unsigned i = 0; i < 9; i++) {
                struct aug_mix_draw one = aug_mix_draw_change(&given, true, 10),
                                    other = aug_mix_draw_change(&drawn, true, 1);

                ck_assert_int_eq(one.change, other.change);
                ck_assert_int_eq(one.is_negative, other.is_negative);
        }
        ck_assert_uint_ne(dlp_philox_u32(&given), dlp_philox_u32(&chain));
}
END_TEST

/* The longest pipeline of them: everything has its place. */
START_TEST(as_many_as_a_pipeline_may_have_fit) {
        char text[DLP_STEPS_MAX * 32] = "";
        static struct geometry geometry;
        struct recipe *recipe;

        for (unsigned i = 0; i < DLP_STEPS_MAX; i++)
                strcat(text, "rand_augment(4, 9) ");
        recipe = parse(text);
        for (uint64_t sample = 0; sample < 300; sample++)
                ck_assert_int_eq(recipe_plan(recipe, 40, 30, SEED, EPOCH, sample, &geometry, NULL), 0);
        recipe_free(recipe);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "vectors", pixels_are_those_of_the_original_classes, sizeof(VECTORS) / sizeof(VECTORS[0]) },
                { "plans", a_policy_is_for_pictures_alone, ARRAY_SIZE(STEPS) },
                { "plans", what_it_does_is_its_own_time_and_is_left_to_nobody, N_FOLDED },
                { "aug_mix", aug_mix_is_one_operation_that_says_what_memory_it_needs, 0 },
                { "aug_mix", weights_have_the_mean_and_the_deviation_of_dirichlets, ARRAY_SIZE(ALPHAS) },
                { "aug_mix", an_argument_moves_no_other_draws, 0 },
                { "plans", as_many_as_a_pipeline_may_have_fit, 0 },
        };

        return suite_run("policies", rows, sizeof(rows) / sizeof(rows[0]));
}
