/* Masks of instances move as torchvision moves them, and are drawn from segmentations as pycocotools draws them:
 * tests/vectors/masks, made by both. */
#include <check.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/codec/codec_choose.h"
#include "daemon/codec/codec_tools.h"
#include "daemon/codec/masks/segments.h"
#include "proto/base/cleanup.h"
#include "tests/support/suite.h"
#include "tests/support/vectors.h"

static struct codec_tools *tools;

static void begin(void) {
        const struct decode_limits limits = { .max_pixels = 1 << 20, .max_scans = 100, .max_scratch_bytes = 1 << 20 };
        struct why why;

        ck_assert_msg(codec_tools_new(&limits, DECODE_JPEG_AUTO, &tools, &why) == 0, "%s", why.text);
}

static void end(void) {
        codec_tools_free(tools);
}

/* ---- stacks of planes ------------------------------------------------------------------------------------------ */

/* Serves `input` as the only field of a source. Returns its bytes, which the caller frees; NULL with `why`. */
static uint8_t *serve(const struct schema_field *field, const char *steps, struct codec_input *input,
                      struct codec_opened *ret_opened, struct why *why) {
        static struct source source;
        struct codec *codec = NULL;
        uint8_t *out = NULL;
        int r;

        source.schema = (struct schema){ .n_fields = 1, .fields = { *field } };
        input->source = &source;
        r = codec_new(&source, 0, 0, steps, NULL, &codec, why);
        if (r == 0 && field->kind == FIELD_PICTURE)
                codec_set_mask(codec);
        if (r == 0)
                r = codec_open(codec, tools, input, ret_opened, why);
        if (r == 0) {
                out = malloc(ret_opened->n_bytes + 1);
                r = codec_render(codec, tools, input, out, why);
                codec_close(tools);
        }
        codec_free(codec);
        if (r < 0) {
                free(out);
                return NULL;
        }
        return out;
}

static const struct schema_field PLANES = {
        .name = "masks",
        .kind = FIELD_VALUE,
        .is_stored = true,
        .dtype = DLP_DTYPE_UINT8,
        .n_dims = 3,
};

START_TEST(planes_have_the_bytes_of_torchvisions_masks) {
        static uint8_t bytes[8 * 80 * 80];
        unsigned n_stacks = 0;
        struct vectors vectors;

        begin();
        vectors_open(&vectors, "masks/planes.jsonl");
        while (vectors_next(&vectors)) {
                struct schema_field field = PLANES;
                struct codec_kept kept = { 0 };
                struct codec_opened opened;
                struct codec_input input = { .bytes = bytes, .kept = &kept };
                const cJSON *shape;
                struct why why = { 0 };
                uint8_t *out;
                size_t n;

                if (!vectors_kind(&vectors, "planes"))
                        continue;
                input.lead_height = (uint32_t)vector_int(vectors.line, "height");
                input.lead_width = (uint32_t)vector_int(vectors.line, "width");
                n = (size_t)vector_int(vectors.line, "n");
                input.n_bytes = n * input.lead_height * input.lead_width;
                for (uint64_t i = 0; i < input.n_bytes; i++)
                        bytes[i] = (uint8_t)((i * 2654435761u + n) >> 16);
                field.shape[0] = -1;
                field.shape[1] = input.lead_height;
                field.shape[2] = input.lead_width;
                out = serve(&field, vector_string(vectors.line, "steps"), &input, &opened, &why);
                ck_assert_msg(out, "line %u: %s", vectors.number, why.text);
                shape = vector_array(vectors.line, "shape", NULL);
                for (int i = 0; i < 3; i++)
                        ck_assert_int_eq(opened.shape[i], vector_item(shape, (size_t)i));
                ck_assert_msg(fnv1a(out, opened.n_bytes) == vector_hex(vector_string(vectors.line, "hash")),
                              "line %u: %s", vectors.number, vector_string(vectors.line, "steps"));
                free(out);
                n_stacks++;
        }
        ck_assert_uint_ge(n_stacks, 150);
        end();
}
END_TEST

START_TEST(planes_leave_with_their_boxes) {
        struct schema_field field = PLANES;
        struct codec_kept kept = { .is_known = true, .n_boxes = 5, .n_kept = 2, .bits = { 0x12 } };
        uint8_t bytes[5] = { 10, 11, 12, 13, 14 };
        struct codec_input input = { .bytes = bytes, .n_bytes = 5, .kept = &kept, .lead_width = 1, .lead_height = 1 };
        struct codec_opened opened;
        struct why why = { 0 };
        uint8_t *out;

        begin();
        field.shape[0] = -1;
        field.shape[1] = field.shape[2] = 1;
        out = serve(&field, "hflip(1) sanitize", &input, &opened, &why);
        ck_assert_msg(out, "%s", why.text);
        ck_assert_int_eq(opened.shape[0], 2);
        ck_assert_uint_eq(opened.n_bytes, 2);
        ck_assert_int_eq(out[0], 11);
        ck_assert_int_eq(out[1], 14);
        free(out);
        kept.n_boxes = 6;
        ck_assert_ptr_null(serve(&field, "hflip(1) sanitize", &input, &opened, &why));
        ck_assert_msg(strstr(why.text, "5 masks for 6 boxes"), "%s", why.text);
        kept.is_known = false; /* the sample has no boxes */
        out = serve(&field, "hflip(1) sanitize", &input, &opened, &why);
        ck_assert_int_eq(opened.shape[0], 5);
        free(out);
        end();
}
END_TEST

/* ---- masks of 16 bits ------------------------------------------------------------------------------------------ */

static const struct schema_field PICTURE = { .name = "mask", .kind = FIELD_PICTURE, .is_stored = true };

/* A PGM file; `max` says how many bits its numbers have. Returns its length. */
static size_t make_pgm(uint8_t *file, uint32_t width, uint32_t height, uint32_t max) {
        int n = sprintf((char *)file, "P5 %u %u %u\n", width, height, max);
        uint8_t *at = file + n;

        for (uint64_t i = 0; i < (uint64_t)width * height; i++) {
                uint32_t number = (uint32_t)((i * 2654435761u + height) >> 8) & max;

                if (max > 255)
                        *at++ = (uint8_t)(number >> 8);
                *at++ = (uint8_t)number;
        }
        return (size_t)(at - file);
}

/* Serves the mask in the dtype, and returns its numbers as uint16, which the caller frees. */
static uint16_t *serve_wide(const char *dtype, const char *steps, struct codec_input *input,
                            struct codec_opened *ret_opened, struct why *why) {
        char text[1024];
        uint64_t n;
        uint16_t *numbers;
        uint8_t *out;

        snprintf(text, sizeof(text), "decode(mask=%s) %s", dtype, steps);
        out = serve(&PICTURE, text, input, ret_opened, why);
        if (!out)
                return NULL;
        n = (uint64_t)ret_opened->shape[0] * (uint64_t)ret_opened->shape[1];
        numbers = malloc(n * 2 + 1);
        for (uint64_t i = 0; i < n; i++) {
                uint64_t n_number = ret_opened->n_bytes / n, number = 0;

                memcpy(&number, out + i * n_number, n_number);
                ck_assert_uint_le(number, UINT16_MAX);
                numbers[i] = (uint16_t)number;
        }
        free(out);
        return numbers;
}

START_TEST(wide_masks_have_the_numbers_of_torchvisions_masks) {
        static const struct {
                const char *name;
                uint32_t n_bytes;
        } DTYPES[] = { { "uint16", 2 }, { "int32", 4 }, { "int64", 8 } };
        static uint8_t file[32 + 2 * 80 * 80];
        unsigned n_masks = 0;
        struct vectors vectors;

        begin();
        vectors_open(&vectors, "masks/planes.jsonl");
        while (vectors_next(&vectors)) {
                struct codec_input input = { .bytes = file };
                const cJSON *shape;

                if (!vectors_kind(&vectors, "wide"))
                        continue;
                input.lead_height = (uint32_t)vector_int(vectors.line, "height");
                input.lead_width = (uint32_t)vector_int(vectors.line, "width");
                input.n_bytes = make_pgm(file, input.lead_width, input.lead_height, 65535);
                shape = vector_array(vectors.line, "shape", NULL);
                for (size_t i = 0; i < ARRAY_SIZE(DTYPES); i++) {
                        struct codec_opened opened;
                        struct why why = { 0 };
                        uint16_t *numbers = serve_wide(DTYPES[i].name, vector_string(vectors.line, "steps"), &input,
                                                       &opened, &why);
                        uint64_t n;

                        ck_assert_msg(numbers, "line %u: %s", vectors.number, why.text);
                        n = (uint64_t)opened.shape[0] * (uint64_t)opened.shape[1];
                        ck_assert_int_eq(opened.shape[0], vector_item(shape, 0));
                        ck_assert_int_eq(opened.shape[1], vector_item(shape, 1));
                        ck_assert_uint_eq(opened.n_bytes, n * DTYPES[i].n_bytes);
                        ck_assert_msg(fnv1a(numbers, 2 * n) == vector_hex(vector_string(vectors.line, "hash")),
                                      "line %u: %s", vectors.number, vector_string(vectors.line, "steps"));
                        free(numbers);
                }
                n_masks++;
        }
        ck_assert_uint_ge(n_masks, 100);
        end();
}
END_TEST

/* The numbers of a wide mask, in each of the 16 bits of an element. */
static void make_array(uint8_t *bytes, uint64_t n, uint32_t height, uint32_t n_number) {
        for (uint64_t i = 0; i < n; i++) {
                uint64_t number = ((i * 2654435761u + height) >> 8 & 65535) * 0x0001000100010001u;

                memcpy(bytes + i * n_number, &number, n_number);
        }
}

/* Serves an array with numbers of this dtype, and compares it with torchvision's mask. */
static void check_array(const struct vectors *vectors, const char *name, enum dlp_dtype dtype, uint32_t n_number) {
        static uint8_t bytes[8 * 60 * 60];
        uint32_t height = (uint32_t)vector_int(vectors->line, "height"),
                 width = (uint32_t)vector_int(vectors->line, "width");
        struct schema_field field = {
                .name = "mask", .kind = FIELD_VALUE, .is_stored = true, .dtype = dtype, .n_dims = 2
        };
        struct codec_input input = { .bytes = bytes, .lead_height = height, .lead_width = width };
        struct codec_opened opened;
        struct why why = { 0 };
        char steps[1024];
        uint16_t *low;
        uint8_t *out;
        uint64_t n;

        field.shape[0] = height;
        field.shape[1] = width;
        input.n_bytes = (uint64_t)height * width * n_number;
        make_array(bytes, (uint64_t)height * width, height, n_number);
        snprintf(steps, sizeof(steps), "decode(mask=%s) %s", name, vector_string(vectors->line, "steps"));
        out = serve(&field, steps, &input, &opened, &why);
        ck_assert_msg(out, "line %u: %s", vectors->number, why.text);
        n = (uint64_t)opened.shape[0] * (uint64_t)opened.shape[1];
        low = malloc(2 * n + 1);
        for (uint64_t i = 0; i < n; i++) {
                uint64_t number = 0, all;

                memcpy(&number, out + i * n_number, n_number);
                low[i] = (uint16_t)number;
                all = low[i] * 0x0001000100010001u;
                /* What `fill` made is below 256. */
                ck_assert(memcmp(&number, &all, n_number) == 0 || number < 256);
        }
        ck_assert_uint_eq(opened.n_bytes, n * n_number);
        ck_assert_msg(fnv1a(low, 2 * n) == vector_hex(vector_string(vectors->line, "hash")), "line %u: %s, %s",
                      vectors->number, name, steps);
        free(low);
        free(out);
}

START_TEST(arrays_have_the_numbers_of_torchvisions_masks) {
        struct vectors vectors;
        unsigned n_masks = 0;

        begin();
        vectors_open(&vectors, "masks/planes.jsonl");
        while (vectors_next(&vectors)) {
                if (!vectors_kind(&vectors, "wide"))
                        continue;
                check_array(&vectors, "uint16", DLP_DTYPE_UINT16, 2);
                check_array(&vectors, "int32", DLP_DTYPE_INT32, 4);
                check_array(&vectors, "int64", DLP_DTYPE_INT64, 8);
                n_masks++;
        }
        ck_assert_uint_ge(n_masks, 100);
        end();
}
END_TEST

/* A uint8, int32 or int64. */
static int64_t number_at(const uint8_t *bytes, uint64_t n_bytes) {
        int64_t number = 0;

        memcpy(&number, bytes, n_bytes);
        return n_bytes == sizeof(int32_t) ? (int32_t)number : number;
}

START_TEST(an_array_becomes_the_dtype_that_is_asked_for_or_is_damaged) {
        static const struct {
                enum dlp_dtype dtype;
                const char *stored; /* two numbers, as they are stored */
                size_t n_stored;
                const char *steps;
                int64_t first, second; /* as they are delivered, */
                const char *said;      /* or the error */
        } rows[] = {
                { DLP_DTYPE_BOOL, "\0\1", 2, "decode(mask=uint8) hflip(1)", 1, 0, NULL },
                { DLP_DTYPE_INT32, "\7\0\0\0\xff\xff\xff\xff", 8, "decode(mask=int64) hflip(1)", -1, 7, NULL },
                { DLP_DTYPE_INT32, "\7\0\0\0\xff\xff\xff\xff", 8, "decode(mask=int32) hflip(1)", -1, 7, NULL },
                { DLP_DTYPE_INT16, "\7\0\xff\xff", 4, "decode(mask=int64) hflip(1)", -1, 7, NULL },
                { DLP_DTYPE_INT32, "\7\0\0\0\xff\xff\xff\xff", 8, "decode(mask=uint8) hflip(1)", 0, 0,
                  "-1 does not fit uint8" },
                { DLP_DTYPE_UINT16, "\7\0\0\1", 4, "decode(mask=uint8) hflip(1)", 0, 0, "256 does not fit uint8" },
                { DLP_DTYPE_UINT16, "\7\0\0\1\1\1", 6, "decode(mask=uint16)", 0, 0, "its shape needs 4" },
                { DLP_DTYPE_FLOAT32, "\0\0\0\0\0\0\0\0", 8, "decode(mask=uint16)", 0, 0, "array of float32" },
        };

        begin();
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct schema_field field = { .name = "mask",
                                              .kind = FIELD_VALUE,
                                              .is_stored = true,
                                              .dtype = rows[i].dtype,
                                              .n_dims = 2,
                                              .shape = { 1, 2 } };
                struct codec_input input = { .bytes = (const uint8_t *)rows[i].stored,
                                             .n_bytes = rows[i].n_stored,
                                             .lead_height = 1,
                                             .lead_width = 2 };
                struct codec_opened opened;
                struct why why = { 0 };
                uint8_t *out = serve(&field, rows[i].steps, &input, &opened, &why);

                if (rows[i].said) {
                        ck_assert_ptr_null(out);
                        ck_assert_msg(strstr(why.text, rows[i].said) != NULL, "row %zu: %s", i, why.text);
                        continue;
                }
                ck_assert_msg(out, "row %zu: %s", i, why.text);
                ck_assert_int_eq(number_at(out, opened.n_bytes / 2), rows[i].first);
                ck_assert_int_eq(number_at(out + opened.n_bytes / 2, opened.n_bytes / 2), rows[i].second);
                free(out);
        }
        end();
}
END_TEST

START_TEST(a_mask_of_8_bits_fits_every_dtype_and_one_of_16_bits_does_not_fit_uint8) {
        static const char *const DTYPES[] = { "uint8", "uint16", "int32", "int64" };
        uint8_t file[64];
        struct codec_input input = { .bytes = file, .lead_width = 5, .lead_height = 3 };
        struct codec_opened opened;
        struct why why = { 0 };

        begin();
        input.n_bytes = make_pgm(file, 5, 3, 255);
        for (size_t i = 0; i < ARRAY_SIZE(DTYPES); i++) {
                uint16_t *numbers = serve_wide(DTYPES[i], "hflip(1) pad(0:0:1:0, fill=7)", &input, &opened, &why);

                ck_assert_msg(numbers, "%s: %s", DTYPES[i], why.text);
                ck_assert_uint_eq(opened.n_bytes, 3 * 6 * (1u << i));
                for (uint32_t y = 0; y < 3; y++) {
                        for (uint32_t x = 0; x < 5; x++)
                                ck_assert_uint_eq(numbers[6 * y + x], file[input.n_bytes - 15 + 5 * y + 4 - x]);
                        ck_assert_uint_eq(numbers[6 * y + 5], 7);
                }
                free(numbers);
        }
        input.n_bytes = make_pgm(file, 5, 3, 1023);
        ck_assert_ptr_null(serve(&PICTURE, "hflip(1)", &input, &opened, &why));
        ck_assert_msg(strstr(why.text, "16 bits") && strstr(why.text, "decode(mask=uint16)"), "%s", why.text);
        ck_assert_ptr_null(serve(&PICTURE, "decode(mask=uint8)", &input, &opened, &why));
        end();
}
END_TEST

/* ---- segmentations --------------------------------------------------------------------------------------------- */

/* Draws the only mask of the text. */
static int draw(const char *text, uint32_t width, uint32_t height, uint8_t *plane, struct why *why) {
        struct segments segments;
        uint8_t columns[64];
        uint64_t n = 0;
        int r = segments_count(text, strlen(text), &n, why);

        if (r < 0)
                return r;
        ck_assert_uint_eq(n, 1);
        segments_begin(&segments, text, strlen(text), width, height, columns);
        return segments_draw(&segments, plane, why);
}

START_TEST(segmentations_are_drawn_as_cocos_tools_draw_them) {
        unsigned n_segments = 0;
        struct vectors vectors;

        vectors_open(&vectors, "masks/segments.jsonl");
        while (vectors_next(&vectors)) {
                uint32_t width = (uint32_t)vector_int(vectors.line, "width");
                uint32_t height = (uint32_t)vector_int(vectors.line, "height");
                uint8_t plane[64 * 64];
                struct why why = { 0 };
                int n = 0;

                ck_assert_msg(draw(vector_string(vectors.line, "segmentation"), width, height, plane, &why) == 0,
                              "line %u: %s", vectors.number, why.text);
                for (uint32_t i = 0; i < width * height; i++)
                        n += plane[i];
                ck_assert_msg(n == vector_int(vectors.line, "n"), "line %u: %d pixels", vectors.number, n);
                ck_assert_msg(fnv1a(plane, (size_t)width * height) == vector_hex(vector_string(vectors.line, "hash")),
                              "line %u", vectors.number);
                n_segments++;
        }
        ck_assert_uint_ge(n_segments, 150);
}
END_TEST

START_TEST(a_segmentation_that_cannot_be_drawn_is_refused_with_its_reason) {
        static const struct {
                const char *text, *words;
        } rows[] = {
                { "[null]", "has no segmentation" },
                { "[7]", "an array of polygons" },
                { "[[]]", "no polygons" },
                { "[[[]]]", "0 corners" },
                { "[[[1, 1, 2, 2]]]", "2 corners" },
                { "[[[1, 1, 2, 2, 3]]]", "5 numbers" },
                { "[[[1, 1, 2, 2, 3, 0], [1, 2, 3]]]", "3 numbers" },
                { "[[1, 1, 2, 2, 3, 0]]", "not an array [x, y" },
                { "[[[1, 1, \"2\", 2, 3, 0]]]", "not an array [x, y" },
                { "[[[1, 1, NaN, 2, 3, 0]]]", "a corner that cannot be: NaN is not" },
                { "[[[1, 1, 2, -Infinity, 3, 0]]]", "cannot be" },
                { "[[[1, 1, 1e300, 2, 3, 0]]]", "cannot be" },
                { "[[[1, 1, 1048577, 2, 3, 0]]]", "cannot be" },
                { "[{\"counts\": [2, 30], \"size\": [3, 4]}]", "10 pixels of 4 x 3 are left" },
                { "[{\"counts\": [2, 11], \"size\": [3, 4]}]", "one of 11, where 10 pixels" },
                { "[{\"counts\": [2, -1], \"size\": [3, 4]}]", "one of -1" },
                { "[{\"counts\": [2, 3], \"size\": [3, 4]}]", "those of 5 pixels" },
                { "[{\"counts\": [2.5, 3], \"size\": [3, 4]}]", "whole numbers" },
                { "[{\"counts\": [99999999999999999999], \"size\": [3, 4]}]", "whole numbers" },
                { "[{\"counts\": [12], \"size\": [4, 3]}]", "3 high and 4 wide" },
                { "[{\"counts\": [12], \"size\": [3]}]", "size" },
                { "[{\"counts\": [12], \"size\": 12}]", "[height, width]" },
                { "[{\"counts\": [12]}]", "size and counts" },
                { "[{\"size\": [3, 4]}]", "size and counts" },
                { "[{\"counts\": [12], \"counts\": [12], \"size\": [3, 4]}]", "twice" },
                { "[{\"counts\": null, \"size\": [3, 4]}]", "an array or a text" },
                { "[{\"counts\": \"\\u0020\", \"size\": [3, 4]}]", "not the text" },
                { "[{\"counts\": \"P\", \"size\": [3, 4]}]", "not the text" },
                { "[{\"counts\": \"ooooooooooooo0\", \"size\": [3, 4]}]", "not the text" },
                { "[{\"counts\": \"\\n0\", \"size\": [3, 4]}]", "not the text" },
        };
        uint8_t plane[12];

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct why why = { 0 };

                ck_assert_msg(draw(rows[i].text, 4, 3, plane, &why) < 0, "%s", rows[i].text);
                ck_assert_msg(strstr(why.text, rows[i].words), "%s: %s", rows[i].text, why.text);
                ck_assert_msg(strstr(why.text, "mask 0: "), "%s: %s", rows[i].text, why.text);
        }
}
END_TEST

/* Corners as far away as they may be, again and again: the sum of the edges has a limit. */
START_TEST(polygons_that_would_take_minutes_are_refused) {
        char text[4096] = "[[[";
        size_t n = strlen(text);
        uint8_t plane[12];
        struct why why = { 0 };

        for (unsigned i = 0; i < 60; i++)
                n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s1048576, %d", i ? ", " : "", i % 2 ? "-" : "",
                                      i % 3);
        snprintf(text + n, sizeof(text) - n, "]]]");
        ck_assert_int_lt(draw(text, 4, 3, plane, &why), 0);
        ck_assert_msg(strstr(why.text, "longer than"), "%s", why.text);
}
END_TEST

START_TEST(masks_of_a_sample_are_drawn_one_after_the_other_and_passed_over) {
        const char *text = "[[[0, 0, 4, 0, 4, 3, 0, 3]], null, {\"size\": [3, 4], \"more\": {\"a\": [1]}, "
                           "\"counts\": [0, 1, 11]}, {\"counts\": \"<\", \"size\": [3, 4]}]";
        struct segments segments;
        uint8_t columns[4], plane[12];
        uint64_t n = 0;
        struct why why = { 0 };

        ck_assert_int_eq(segments_count(text, strlen(text), &n, &why), 0);
        ck_assert_uint_eq(n, 4);
        segments_begin(&segments, text, strlen(text), 4, 3, columns);
        ck_assert_int_eq(segments_draw(&segments, plane, &why), 0);
        for (unsigned i = 0; i < 12; i++)
                ck_assert_int_eq(plane[i], 1);
        ck_assert_int_eq(segments_skip(&segments, &why), 0);
        ck_assert_msg(segments_draw(&segments, plane, &why) == 0, "%s", why.text);
        for (unsigned i = 0; i < 12; i++)
                ck_assert_int_eq(plane[i], i == 0);
        ck_assert_msg(segments_draw(&segments, plane, &why) == 0, "%s", why.text);
        for (unsigned i = 0; i < 12; i++)
                ck_assert_int_eq(plane[i], 0);
        ck_assert_int_lt(segments_count("[[1]", 4, &n, &why), 0);
        ck_assert_int_lt(segments_count("{}", 2, &n, &why), 0);
        ck_assert_int_lt(segments_count("[] 1", 4, &n, &why), 0);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "planes", planes_have_the_bytes_of_torchvisions_masks, 0 },
                { "planes", planes_leave_with_their_boxes, 0 },
                { "planes", wide_masks_have_the_numbers_of_torchvisions_masks, 0 },
                { "planes", arrays_have_the_numbers_of_torchvisions_masks, 0 },
                { "planes", an_array_becomes_the_dtype_that_is_asked_for_or_is_damaged, 0 },
                { "planes", a_mask_of_8_bits_fits_every_dtype_and_one_of_16_bits_does_not_fit_uint8, 0 },
                { "segments", segmentations_are_drawn_as_cocos_tools_draw_them, 0 },
                { "segments", a_segmentation_that_cannot_be_drawn_is_refused_with_its_reason, 0 },
                { "segments", polygons_that_would_take_minutes_are_refused, 0 },
                { "segments", masks_of_a_sample_are_drawn_one_after_the_other_and_passed_over, 0 },
        };

        return suite_run("masks", rows, sizeof(rows) / sizeof(rows[0]));
}
