/* Boxes and points move as torchvision's functions for bounding boxes and keypoints move them: tests/vectors/boxes,
 * made by torchvision. */
#include <check.h>
#include <stdint.h>
#include <string.h>

#include "daemon/augment/motions.h"
#include "daemon/augment/recipe.h"
#include "tests/support/suite.h"
#include "tests/support/vectors.h"

static void note(const cJSON *step, struct motions *motions) {
        const char *kind = cJSON_GetArrayItem(step, 0)->valuestring;
        int64_t a = vector_item(step, 1), b = 0, c = 0, d = 0;

        if (cJSON_GetArraySize(step) > 2) {
                b = vector_item(step, 2);
                c = vector_item(step, 3);
                d = vector_item(step, 4);
        }
        if (strcmp(kind, "scale") == 0) {
                if (a != c || b != d)
                        motions_scale(motions, (uint32_t)a, (uint32_t)b, (uint64_t)c, (uint64_t)d);
        } else if (strcmp(kind, "crop") == 0) {
                motions_shift(motions, -(float)a, -(float)b, (uint64_t)c, (uint64_t)d);
        } else if (strcmp(kind, "pad") == 0) {
                motions_shift(motions, (float)a, (float)b, (uint64_t)c, (uint64_t)d);
        } else if (strcmp(kind, "sanitize") == 0) {
                motions_sanitize(motions, (float)a, (float)b, (uint32_t)c, (uint32_t)d);
        } else if (strcmp(kind, "hflip") == 0) {
                motions_hflip(motions, (uint32_t)a);
        } else {
                ck_assert_str_eq(kind, "vflip");
                motions_vflip(motions, (uint32_t)a);
        }
}

START_TEST(boxes_and_points_have_the_bits_of_torchvisions) {
        unsigned n_boxes = 0, n_dropped = 0;
        struct vectors vectors;

        vectors_open(&vectors, "boxes/boxes.jsonl");
        while (vectors_next(&vectors)) {
                static struct motions motions;
                const cJSON *in, *out, *kept, *points, *steps;
                uint8_t bytes[16 * 8], corners[16 * 8], is_kept = 0;
                size_t n, n_steps;

                if (!vectors_kind(&vectors, "boxes"))
                        continue;
                in = vector_array(vectors.line, "in", &n);
                out = vector_array(vectors.line, "out", NULL);
                kept = vector_array(vectors.line, "kept", NULL);
                points = vector_array(vectors.line, "points", NULL);
                steps = vector_array(vectors.line, "steps", &n_steps);
                motions.n = 0;
                for (size_t i = 0; i < n_steps; i++)
                        note(cJSON_GetArrayItem(steps, (int)i), &motions);
                ck_assert_uint_le(n * 4, sizeof(bytes));
                for (size_t i = 0; i < n; i++) {
                        int32_t bits = (int32_t)vector_item(in, i);

                        memcpy(bytes + i * 4, &bits, 4);
                }
                memcpy(corners, bytes, n * 4);
                motions_apply(&motions, bytes, n / 4, &is_kept);
                motions_apply_points(&motions, corners, n / 2);
                for (size_t i = 0; i < n; i++) {
                        int32_t bits;

                        memcpy(&bits, bytes + i * 4, 4);
                        ck_assert_msg(bits == (int32_t)vector_item(out, i), "line %u, number %zu: %08x", vectors.number,
                                      i, (unsigned)bits);
                        memcpy(&bits, corners + i * 4, 4);
                        ck_assert_msg(bits == (int32_t)vector_item(points, i), "line %u, point %zu: %08x",
                                      vectors.number, i / 2, (unsigned)bits);
                }
                for (size_t i = 0; i < n / 4; i++) {
                        ck_assert_msg((is_kept >> i & 1) == vector_item(kept, i), "line %u, box %zu", vectors.number,
                                      i);
                        n_dropped += !vector_item(kept, i);
                }
                n_boxes += (unsigned)n / 4;
        }
        ck_assert_uint_gt(n_boxes, 500);
        ck_assert_uint_gt(n_dropped, 100);
}
END_TEST

/* What the steps of a recipe tell is what happens to the picture, also where they are folded into one stage. */
START_TEST(the_steps_of_a_recipe_move_boxes_in_their_sequence) {
        static const struct {
                const char *text;
                float box[4];
        } rows[] = {
                { "decode", { 10, 5, 30, 25 } },
                { "resize(80)", { 20, 10, 60, 50 } },
                { "resize(short=80, max=100)", { 10 * 1.25f, 5 * 1.25f, 30 * 1.25f, 25 * 1.25f } },
                { "hflip(1)", { 50, 5, 70, 25 } },
                { "vflip(1) hflip(0)", { 10, 15, 30, 35 } },
                { "center_crop(20:40)", { 0, 0, 10, 15 } },
                { "pad(1:2:3:4) hflip(1) color_jitter(0.4) center_crop(46:84)", { 53, 7, 73, 27 } },
                { "center_crop(60) grayscale(1) to(float32) layout(nchw)", { 0, 15, 20, 35 } },
        };

        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                float box[4] = { 10, 5, 30, 25 };
                struct recipe *recipe = NULL;
                struct geometry geometry, plain;
                struct motions motions;
                struct why why;

                ck_assert_int_eq(recipe_parse(rows[i].text, &recipe, &why), 0);
                ck_assert_int_eq(recipe_plan_motions(recipe, 80, 40, 1, 2, 3, &geometry, &motions, &why), 0);
                ck_assert_int_eq(recipe_plan(recipe, 80, 40, 1, 2, 3, &plain, &why), 0);
                ck_assert_uint_eq(geometry.width, plain.width);
                ck_assert_uint_eq(geometry.height, plain.height);
                motions_apply(&motions, (uint8_t *)box, 1, NULL);
                for (unsigned k = 0; k < 4; k++)
                        ck_assert_msg(box[k] == rows[i].box[k], "%s: number %u is %g", rows[i].text, k, (double)box[k]);
                recipe_free(recipe);
        }
}
END_TEST

/* A row of `n` pixels, each its own place, resized: which places are taken? */
static void resize_places(uint32_t n, uint32_t n_out, bool flip, uint8_t *out) {
        static uint8_t source[400 * PIXEL_BYTES];
        struct resize_job job = {
                .width = n_out,
                .height = 1,
                .window = { 0, 0, n_out, 1 },
                .filter = RESIZE_NEAREST_FLOOR,
                .flip = flip,
        };
        struct view view = { .pixels = source, .stride = sizeof(source), .width = n, .height = 1 };
        struct resizer *resizer = NULL;
        struct why why;

        for (uint32_t x = 0; x < n; x++) {
                source[x * PIXEL_BYTES] = (uint8_t)x;
                source[x * PIXEL_BYTES + 1] = (uint8_t)(x >> 8);
        }
        ck_assert_int_eq(resizer_new(RESIZE_CODE_BEST, &resizer, &why), 0);
        ck_assert_int_eq(resizer_begin(resizer, n, 1, NULL, &job, out, (size_t)n_out * PIXEL_BYTES, &why), 0);
        resizer_feed(resizer, &view);
        resizer_free(resizer);
}

START_TEST(masks_take_the_pixels_that_torch_takes) {
        struct vectors vectors;
        unsigned n_masks = 0;

        vectors_open(&vectors, "boxes/boxes.jsonl");
        while (vectors_next(&vectors)) {
                uint8_t out[200 * PIXEL_BYTES], flipped[200 * PIXEL_BYTES];
                const cJSON *places;
                uint32_t n;
                size_t n_out;

                if (!vectors_kind(&vectors, "mask"))
                        continue;
                n = (uint32_t)vector_int(vectors.line, "n");
                places = vector_array(vectors.line, "places", &n_out);
                resize_places(n, (uint32_t)n_out, false, out);
                resize_places(n, (uint32_t)n_out, true, flipped);
                for (size_t x = 0; x < n_out; x++) {
                        const uint8_t *pixel = out + x * PIXEL_BYTES;
                        const uint8_t *mirrored = flipped + (n_out - 1 - x) * PIXEL_BYTES;

                        ck_assert_msg(pixel[0] + 256 * pixel[1] == vector_item(places, x), "line %u: pixel %zu is %d",
                                      vectors.number, x, pixel[0] + 256 * pixel[1]);
                        ck_assert_mem_eq(pixel, mirrored, PIXEL_BYTES);
                }
                n_masks++;
        }
        ck_assert_uint_ge(n_masks, 50);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "boxes", boxes_and_points_have_the_bits_of_torchvisions, 0 },
                { "boxes", masks_take_the_pixels_that_torch_takes, 0 },
                { "boxes", the_steps_of_a_recipe_move_boxes_in_their_sequence, 0 },
        };

        return suite_run("boxes", rows, sizeof(rows) / sizeof(rows[0]));
}
