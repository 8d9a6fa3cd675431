/* unit/test_warps.c: the steps random_rotation, random_affine and random_perspective: the pixels of torchvision on
 * Pillow, its masks, boxes and points. They come from tests/support/make_warp_vectors.py. */
#include <check.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/augment/recipe.h"
#include "proto/base/cleanup.h"
#include "proto/order/philox.h"
#include "tests/support/pixels.h"
#include "tests/support/suite.h"
#include "tests/support/vectors.h"

#define SEED  1u
#define EPOCH 0u
#define GUARD 16u /* bytes between rows that nobody may write */

static struct recipe *parse(const char *text) {
        struct recipe *recipe = NULL;
        struct why why = {};

        ck_assert_msg(recipe_parse(text, &recipe, &why) == 0, "%s: %s", text, why.text);
        return recipe;
}

/* ---- vectors ----------------------------------------------------------------------------------------------------- */

struct picture {
        uint32_t width, height;
        uint8_t *pixels, *alpha; /* three channels each */
};

/* As a codec lays out the pixels of a mode (conversion.h). */
static void read_picture(const cJSON *line, const char *key, const char *mode, struct picture *picture) {
        size_t n_bytes, n_pixels, n_each;
        uint8_t *bytes = vector_base64(vector_string(line, key), &n_bytes);
        bool has_alpha = strcmp(mode, "RGBA") == 0 || strcmp(mode, "LA") == 0, is_wide = strcmp(mode, "I;16") == 0;

        picture->width = (uint32_t)vector_int(line, "width");
        picture->height = (uint32_t)vector_int(line, "height");
        n_pixels = (size_t)picture->width * picture->height;
        n_each = n_bytes / n_pixels;
        picture->pixels = calloc(n_pixels, PIXEL_BYTES);
        picture->alpha = calloc(n_pixels, PIXEL_BYTES);
        for (size_t i = 0; i < n_pixels; i++)
                for (size_t c = 0; c < PIXEL_BYTES; c++) {
                        const uint8_t *pixel = bytes + i * n_each;

                        picture->alpha[i * PIXEL_BYTES + c] = has_alpha ? pixel[n_each - 1] : 0;
                        if (is_wide)
                                picture->pixels[i * PIXEL_BYTES + c] = c < 2 ? pixel[c] : 0;
                        else
                                picture->pixels[i * PIXEL_BYTES + c] = pixel[n_each >= PIXEL_BYTES ? c : 0];
                }
        free(bytes);
}

static void free_picture(struct picture *picture) {
        free(picture->pixels);
        free(picture->alpha);
}

static struct view view_of(const struct picture *picture, const struct box *box) {
        return (struct view){ .pixels = picture->pixels + ((size_t)box->y * picture->width + box->x) * PIXEL_BYTES,
                              .stride = (size_t)picture->width * PIXEL_BYTES,
                              .width = box->width,
                              .height = box->height };
}

/* Executes the plan, in a workspace that is empty before, and checks what the rows have beside them, and the memory.
 * The result is packed; the caller frees it. `n_each`: bytes of a pixel. */
static uint8_t *execute(struct workspace *workspace, const struct geometry *geometry, const struct picture *picture,
                        bool has_alpha, size_t n_each) {
        size_t n_row = geometry->width * n_each, stride = (n_row + GUARD + 1) / 2 * 2;
        uint8_t *out = malloc(stride * geometry->height), *packed = malloc(n_row * geometry->height);
        struct view view = view_of(picture, &geometry->source);

        memset(out, 0xa5, stride * geometry->height);
        workspace_trim(workspace);
        if (has_alpha) /* the whole picture: a warp is preceded by no crop here */
                ck_assert_int_eq(
                        recipe_run_alpha(workspace, geometry, picture->pixels, picture->alpha, out, stride, NULL), 0);
        else
                ck_assert_int_eq(recipe_apply(workspace, geometry, &view, out, stride, NULL), 0);
        ck_assert_uint_le(workspace_bytes(workspace), recipe_bytes_needed(geometry));
        for (uint32_t y = 0; y < geometry->height; y++) {
                memcpy(packed + y * n_row, out + y * stride, n_row);
                for (size_t i = n_row; i < stride; i++)
                        ck_assert(out[y * stride + i] == 0xa5);
        }
        free(out);
        return packed;
}

START_TEST(pictures_of_all_modes_are_warped_as_pillow_does) {
        struct workspace *workspace = NULL;
        static struct geometry geometry;
        struct vectors vectors;
        unsigned n = 0;

        ck_assert_int_eq(workspace_new(RESIZE_CODE_BEST, &workspace, NULL), 0);
        vectors_open(&vectors, "warps.jsonl");
        while (vectors_next(&vectors)) {
                const char *text = vector_string(vectors.line, "text"), *mode = vector_string(vectors.line, "mode");
                const cJSON *size = vector_array(vectors.line, "out", NULL);
                struct recipe *recipe = parse(text);
                const struct pixel_format *format = recipe_format(recipe);
                size_t n_each = pixel_format_bytes(format);
                struct picture picture;
                uint8_t *out;

                read_picture(vectors.line, "pixels", mode, &picture);
                ck_assert_int_eq(recipe_plan(recipe, picture.width, picture.height, SEED, EPOCH,
                                             (uint64_t)vector_int(vectors.line, "sample"), &geometry, NULL),
                                 0);
                ck_assert_int_eq(geometry.width, vector_item(size, 0));
                ck_assert_int_eq(geometry.height, vector_item(size, 1));
                out = execute(workspace, &geometry, &picture, pixel_format_has_alpha(format), n_each);
                ck_assert_msg(fnv1a(out, n_each * geometry.width * geometry.height) ==
                                      vector_hex(vector_string(vectors.line, "fnv")),
                              "line %u: %s of %u x %u", vectors.number, text, picture.width, picture.height);
                free(out);
                free_picture(&picture);
                recipe_free(recipe);
                n++;
        }
        ck_assert_uint_gt(n, 400);
        workspace_free(workspace);
}
END_TEST

/* The same numbers as masks of 8 bits and as wide ones, which have the low byte in the first channel. */
START_TEST(masks_are_warped_as_torch_does) {
        struct workspace *workspace = NULL;
        static struct geometry geometry;
        struct vectors vectors;

        ck_assert_int_eq(workspace_new(RESIZE_CODE_BEST, &workspace, NULL), 0);
        vectors_open(&vectors, "warps.jsonl");
        while (vectors_next(&vectors)) {
                const char *text = vector_string(vectors.line, "text");
                struct recipe *recipe = parse(text);
                size_t n_each = _i ? 2 : PIXEL_BYTES, n_pixels;
                struct picture picture;
                uint8_t *out;

                read_picture(vectors.line, "mask", "L", &picture);
                for (size_t i = 0; i < (size_t)picture.width * picture.height && _i; i++)
                        picture.pixels[i * PIXEL_BYTES + 1] = picture.pixels[i * PIXEL_BYTES + 2] = 0;
                ck_assert_int_eq(recipe_plan_mask(recipe, picture.width, picture.height, _i, SEED, EPOCH,
                                                  (uint64_t)vector_int(vectors.line, "sample"), &geometry, NULL),
                                 0);
                out = execute(workspace, &geometry, &picture, false, n_each);
                n_pixels = (size_t)geometry.width * geometry.height;
                for (size_t i = 0; i < n_pixels; i++) {
                        ck_assert(!_i || out[i * n_each + 1] == 0);
                        out[i] = out[i * n_each];
                }
                ck_assert_msg(fnv1a(out, n_pixels) == vector_hex(vector_string(vectors.line, "mask_fnv")),
                              "line %u: mask of %s, %u x %u", vectors.number, text, picture.width, picture.height);
                free(out);
                free_picture(&picture);
                recipe_free(recipe);
        }
        workspace_free(workspace);
}
END_TEST

static void compare(const struct vectors *vectors, const char *key, const uint8_t *bytes, size_t n) {
        const cJSON *expected = vector_array(vectors->line, key, NULL);

        for (size_t i = 0; i < n; i++) {
                int32_t bits;
                float got, wanted;

                memcpy(&bits, bytes + i * 4, 4);
                memcpy(&got, &bits, 4);
                bits = (int32_t)vector_item(expected, i);
                memcpy(&wanted, &bits, 4);
                /* equal, whatever the sign of a zero */
                ck_assert_msg(got == wanted, "line %u, %s %zu: %.9g, %.9g expected", vectors->number, key, i,
                              (double)got, (double)wanted);
        }
}

START_TEST(boxes_and_points_have_the_bits_of_torchvisions) {
        static struct geometry geometry;
        static struct motions motions;
        struct vectors vectors;

        vectors_open(&vectors, "warps.jsonl");
        while (vectors_next(&vectors)) {
                struct recipe *recipe = parse(vector_string(vectors.line, "text"));
                uint8_t boxes[8 * 4], points[8 * 4];
                const cJSON *in;
                size_t n;

                in = vector_array(vectors.line, "in", &n);
                ck_assert_uint_eq(n, 8);
                for (size_t i = 0; i < n; i++) {
                        int32_t bits = (int32_t)vector_item(in, i);

                        memcpy(boxes + i * 4, &bits, 4);
                }
                memcpy(points, boxes, sizeof(points));
                ck_assert_int_eq(recipe_plan_motions(recipe, (uint32_t)vector_int(vectors.line, "width"),
                                                     (uint32_t)vector_int(vectors.line, "height"), SEED, EPOCH,
                                                     (uint64_t)vector_int(vectors.line, "sample"), &geometry, &motions,
                                                     NULL),
                                 0);
                motions_apply(&motions, boxes, n / 4, NULL);
                motions_apply_points(&motions, points, n / 2);
                compare(&vectors, "boxes", boxes, n);
                compare(&vectors, "points", points, n);
                recipe_free(recipe);
        }
}
END_TEST

/* ---- plans ------------------------------------------------------------------------------------------------------- */

static const struct {
        const char *text;
        uint32_t n_stages; /* of a picture of 40 x 30 */
} PLANS[] = {
        { "random_rotation(0)", 1 }, /* nothing moves */
        { "random_rotation(10:10)", 2 },
        { "random_rotation(90:90, expand=true)", 2 },
        { "random_affine(0)", 1 },
        { "random_affine(0, scale=2:2)", 2 },
        { "random_perspective(0.5, p=0)", 1 },
        { "hflip(1) random_rotation(10:10)", 2 },
        { "random_rotation(10:10) invert(1) posterize(3, p=1)", 2 },
        { "random_rotation(10:10) hflip(1)", 3 },
        { "random_rotation(10:10) vflip(1) hflip(1)", 3 },
        { "random_rotation(10:10) center_crop(8)", 3 },
        { "random_rotation(10:10) pad(2)", 3 },
        { "random_rotation(10:10) resize(9:9)", 3 },
        { "random_rotation(10:10) random_rotation(10:10)", 3 },
        { "random_perspective(0.5, p=1) invert(1) random_affine(5) autocontrast(1)", 3 },
};

START_TEST(a_warp_is_the_only_move_of_its_stage) {
        static struct geometry geometry;
        struct recipe *recipe = parse(PLANS[_i].text);

        ck_assert_int_eq(recipe_plan(recipe, 40, 30, SEED, EPOCH, 3, &geometry, NULL), 0);
        ck_assert_msg(geometry.n_stages == PLANS[_i].n_stages, "%s: %u stages", PLANS[_i].text, geometry.n_stages);
        recipe_free(recipe);
}
END_TEST

START_TEST(a_picture_of_one_row_keeps_its_perspective) {
        static const struct { uint32_t width, height; } sizes[] = { { 1, 1 }, { 1, 9 }, { 9, 1 } };
        struct recipe *recipe = parse("random_perspective(1, p=1)");
        static struct geometry geometry;

        for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
                for (uint64_t sample = 0; sample < 50; sample++) {
                        ck_assert_int_eq(recipe_plan(recipe, sizes[i].width, sizes[i].height, SEED, EPOCH, sample,
                                                     &geometry, NULL),
                                         0);
                        ck_assert_uint_eq(geometry.n_stages, 1);
                }
        recipe_free(recipe);
}
END_TEST

START_TEST(what_does_not_fit_into_memory_is_refused) {
        static const char *const texts[] = { "random_rotation(30:30, expand=true)", "random_rotation(10:10)",
                                             "random_affine(3:3)", "random_perspective(0.5, p=1)" };
        static struct geometry geometry;

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                struct recipe *recipe = parse(texts[i]);
                uint32_t side = i == 0 ? 8000 : 9000; /* the canvas is then 10,929 pixels a side */
                struct why why = {};

                ck_assert_int_eq(recipe_plan(recipe, side, side, SEED, EPOCH, 0, &geometry, &why), -EFBIG);
                ck_assert_ptr_nonnull(strstr(why.text, "above the limit of 67108864 pixels"));
                ck_assert_int_eq(recipe_plan(recipe, UINT32_MAX, 1, SEED, EPOCH, 0, &geometry, &why), -EFBIG);
                recipe_free(recipe);
        }
}
END_TEST

START_TEST(a_mask_is_not_filled_with_a_colour) {
        static const char *const texts[] = { "random_rotation(10:10, fill=1:2:3)", "random_affine(3:3, fill=1:2:3)",
                                             "random_perspective(0.5, p=1, fill=1:2:3)" };
        static struct geometry geometry;

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                struct recipe *recipe = parse(texts[i]);
                struct why why = {};

                ck_assert_int_eq(recipe_plan_mask(recipe, 9, 9, false, SEED, EPOCH, 0, &geometry, &why), -EINVAL);
                ck_assert_ptr_nonnull(strstr(why.text, "give fill one number"));
                recipe_free(recipe);
        }
}
END_TEST

START_TEST(other_draws_stay_whatever_the_arguments_are) {
        static const char *const texts[] = { "random_perspective(0.3, p=0) color_jitter(0.9)",
                                             "random_affine(0) color_jitter(0.9)",
                                             "random_rotation(0) color_jitter(0.9)" };
        static struct geometry geometry;
        float amount = 0;

        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                struct recipe *recipe = parse(texts[i]);

                ck_assert_int_eq(recipe_plan(recipe, 40, 30, SEED, EPOCH, 5, &geometry, NULL), 0);
                ck_assert_uint_eq(geometry.n_operations, 1);
                ck_assert(i == 0 || geometry.operations[0].amount == amount);
                amount = geometry.operations[0].amount;
                recipe_free(recipe);
        }
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "vectors", pictures_of_all_modes_are_warped_as_pillow_does, 0 },
                { "vectors", masks_are_warped_as_torch_does, 2 },
                { "vectors", boxes_and_points_have_the_bits_of_torchvisions, 0 },
                { "plans", a_warp_is_the_only_move_of_its_stage, ARRAY_SIZE(PLANS) },
                { "plans", a_picture_of_one_row_keeps_its_perspective, 0 },
                { "plans", what_does_not_fit_into_memory_is_refused, 0 },
                { "plans", a_mask_is_not_filled_with_a_colour, 0 },
                { "plans", other_draws_stay_whatever_the_arguments_are, 0 },
        };

        return suite_run("warps", rows, sizeof(rows) / sizeof(rows[0]));
}
