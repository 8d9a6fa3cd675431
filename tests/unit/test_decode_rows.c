/* unit/test_decode_rows.c: rows of a box are those of the whole picture, whatever the layout and wherever the box lies;
 * they come from the top, once, and no more is held than was said. */
#include "daemon/decode/decode.h"
#include "proto/base/cleanup.h"
#include "proto/order/philox.h"
#include "tests/support/layouts.h"
#include "tests/support/pixels.h"
#include "tests/support/suite.h"
#include "tests/support/vectors.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define EXPECTED "pictures/expected.jsonl"
#define PICTURES 8  /* of each layout */
#define BOXES    25 /* of each picture */

static struct decoder *new_decoder(enum decode_jpeg jpeg) {
        struct decoder *decoder = NULL;

        ck_assert_int_eq(decoder_new(&DECODE_LIMITS_DEFAULT, jpeg, &decoder, NULL), 0);
        return decoder;
}

/* A sink that compares what it gets with the whole picture's pixels. */
struct checker {
        const uint8_t *whole;
        uint32_t width; /* of the whole */
        struct box box;
        uint32_t n_begun, n_rows;
        uint32_t fails_at; /* the row at which take() returns -ECANCELED; UINT32_MAX: never */
        bool refuses;      /* begin() returns -EIO */
};

static int check_begin(void *userdata, struct why *why) {
        struct checker *checker = userdata;

        checker->n_begun++;
        checker->n_rows = 0;
        return checker->refuses ? why_set(why, -EIO, "not now") : 0;
}

static int check_take(void *userdata, const struct view *rows, struct why *why) {
        struct checker *checker = userdata;

        ck_assert_uint_gt(checker->n_begun, 0);
        ck_assert_uint_eq(rows->width, checker->box.width);
        ck_assert_uint_gt(rows->height, 0);
        ck_assert_uint_le(rows->height, checker->box.height - checker->n_rows);
        for (uint32_t y = 0; y < rows->height; y++, checker->n_rows++)
                ck_assert_mem_eq(
                        rows->pixels + y * rows->stride,
                        checker->whole +
                                ((size_t)(checker->box.y + checker->n_rows) * checker->width + checker->box.x) * 3,
                        rows->width * 3);
        return checker->n_rows > checker->fails_at ? why_set(why, -ECANCELED, "enough") : 0;
}

static struct row_sink sink_of(struct checker *checker) {
        return (struct row_sink){ .begin = check_begin, .take = check_take, .userdata = checker };
}

/* The whole picture; the caller frees it. NULL if it cannot be decoded. */
static uint8_t *read_whole(struct decoder *decoder, const uint8_t *bytes, size_t n_bytes, struct image_info *ret_info) {
        uint8_t *whole;

        if (decoder_open(decoder, bytes, n_bytes, ret_info, NULL) < 0)
                return NULL;
        whole = malloc((size_t)ret_info->width * ret_info->height * 3);
        if (decoder_read_into(decoder, whole, (size_t)ret_info->width * 3, NULL) < 0) {
                free(whole);
                return NULL;
        }
        return whole;
}

static uint32_t draw(struct dlp_philox *philox, uint32_t n) {
        return dlp_philox_u32(philox) % n;
}

/* Corners and borders are met often. */
static struct box draw_box(struct dlp_philox *philox, uint32_t width, uint32_t height) {
        struct box box = {
                .x = draw(philox, 4) ? draw(philox, width) : 0,
                .y = draw(philox, 4) ? draw(philox, height) : 0,
        };

        box.width = draw(philox, 4) ? 1 + draw(philox, width - box.x) : width - box.x;
        box.height = draw(philox, 4) ? 1 + draw(philox, height - box.y) : height - box.y;
        if (draw(philox, 5) == 0)
                box.width = box.height = 1;
        return box;
}

static void check_box_of(struct decoder *decoder, const uint8_t *bytes, size_t n_bytes, const struct box *box,
                         const uint8_t *whole, const char *name) {
        struct checker checker = { .whole = whole, .box = *box, .fails_at = UINT32_MAX };
        struct row_sink sink = sink_of(&checker);
        struct image_info info;
        struct why why = {};
        uint64_t need;
        int r;

        ck_assert_int_eq(decoder_open(decoder, bytes, n_bytes, &info, NULL), 0);
        checker.width = info.width;
        need = decoder_need(decoder, box);
        r = decoder_read_rows(decoder, box, &sink, &why);
        ck_assert_msg(r == 0 && checker.n_rows == box->height, "%s, box %u,%u %ux%u: %u rows, %s", name, box->x, box->y,
                      box->width, box->height, checker.n_rows, why.text);
        ck_assert_uint_le(decoder_scratch_bytes(decoder), need + (1u << 20)); /* scratch grows in steps of 256 KiB */
        ck_assert_uint_le(checker.n_begun, 2); /* anew for who takes over, or for a PNG with wrong checksums */
}

/* _i is who decodes JPEG; whole pictures are always libjpeg-turbo's. */
START_TEST(rows_of_a_box_are_those_of_the_whole_jpeg) {
        struct decoder *decoder = new_decoder((enum decode_jpeg)_i), *reference = new_decoder(DECODE_JPEG_LIBJPEG);
        struct dlp_philox philox;

        dlp_philox_init(&philox, 20, (uint32_t)_i, 0, 0);
        for (size_t l = 0; l < N_JPEG_LAYOUTS; l++)
                for (unsigned n = 0; n < PICTURES; n++) {
                        uint32_t width = 1 + draw(&philox, n % 3 ? 90 : 7), height = 1 + draw(&philox, n % 4 ? 90 : 7);
                        const char *name = JPEG_LAYOUTS[l].name;
                        struct image_info info;
                        uint8_t *bytes, *whole;
                        size_t n_bytes;

                        bytes = jpeg_make(&JPEG_LAYOUTS[l], width, height, n, &n_bytes);
                        whole = read_whole(reference, bytes, n_bytes, &info);
                        ck_assert_msg(whole != NULL, "%s", name);
                        for (unsigned b = 0; b < BOXES; b++) {
                                struct box box = draw_box(&philox, width, height);

                                check_box_of(decoder, bytes, n_bytes, &box, whole, name);
                        }
                        free(whole);
                        free(bytes);
                }
        decoder_free(decoder);
        decoder_free(reference);
}
END_TEST

/* The library makes up what is missing from the blocks around. */
START_TEST(rows_of_a_progressive_picture_that_lacks_scans_are_those_of_the_whole) {
        struct decoder *decoder = new_decoder(DECODE_JPEG_AUTO);
        const struct jpeg_layout layout = { "cut progressive", JPEG_YCC, { { 2, 2 } }, .progressive = true };
        struct dlp_philox philox;

        dlp_philox_init(&philox, 22, 0, 0, 0);
        for (unsigned n_scans = 1; n_scans < 8; n_scans++) {
                uint32_t width = 40 + draw(&philox, 60), height = 40 + draw(&philox, 60);
                struct image_info info;
                uint8_t *bytes, *whole;
                size_t n_bytes, at = 0;

                bytes = jpeg_make(&layout, width, height, n_scans, &n_bytes);
                for (unsigned n = 0; n <= n_scans; n++) /* to the first scan that is left out */
                        do
                                at++;
                        while (bytes[at] != 0xff || bytes[at + 1] != 0xda);
                bytes[at + 1] = 0xd9;
                whole = read_whole(decoder, bytes, at + 2, &info);
                ck_assert(whole != NULL);
                for (unsigned b = 0; b < 4 * BOXES; b++) {
                        struct box box = draw_box(&philox, width, height);

                        check_box_of(decoder, bytes, at + 2, &box, whole, layout.name);
                }
                free(whole);
                free(bytes);
        }
        decoder_free(decoder);
}
END_TEST

/* Damaged ones too, as far as they are served. */
START_TEST(rows_of_a_box_are_those_of_the_whole_file_of_any_format) {
        struct decoder *decoder = new_decoder(DECODE_JPEG_AUTO), *reference = new_decoder(DECODE_JPEG_LIBJPEG);
        struct dlp_philox philox;
        struct vectors vectors;
        unsigned n = 0;

        dlp_philox_init(&philox, 21, 0, 0, 0);
        vectors_open(&vectors, EXPECTED);
        while (vectors_next(&vectors)) {
                const char *name = vector_string(vectors.line, "file");
                struct image_info info;
                uint8_t *bytes, *whole;
                char path[256];
                size_t n_bytes;

                if (!vector_has(vectors.line, "fnv"))
                        continue;
                snprintf(path, sizeof(path), "tests/vectors/pictures/%s", name);
                bytes = read_whole_file(path, &n_bytes);
                whole = read_whole(reference, bytes, n_bytes, &info);
                ck_assert_msg(whole != NULL, "%s", name);
                for (unsigned b = 0; b < 2 * BOXES; b++) {
                        struct box box = draw_box(&philox, info.width, info.height);

                        check_box_of(decoder, bytes, n_bytes, &box, whole, name);
                }
                free(whole);
                free(bytes);
                n++;
        }
        ck_assert_uint_gt(n, 80);
        decoder_free(decoder);
        decoder_free(reference);
}
END_TEST

START_TEST(a_sink_that_fails_ends_the_reading_with_its_own_error) {
        static const char *const names[] = { "sampling_2.jpg",
                                             "progressive.jpg",
                                             "cmyk_adobe.jpg",
                                             "rgb_8.png",
                                             "grey_1.png",
                                             "grey_1_interlaced.png",
                                             "lossy.webp",
                                             "pillow_rgb.bmp",
                                             "runs_8.bmp",
                                             "pillow_rgb.ppm",
                                             "text_6.ppm",
                                             "plain.gif",
                                             "interlaced.gif",
                                             "strips_of_5.tif",
                                             "planes.tif",
                                             "tiles_rgb_8.tif",
                                             "orientation_6_plain.tif" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                struct decoder *decoder = new_decoder(DECODE_JPEG_AUTO);
                struct image_info info;
                uint8_t *bytes, *whole;
                char path[256];
                size_t n_bytes;

                snprintf(path, sizeof(path), "tests/vectors/pictures/%s", names[i]);
                bytes = read_whole_file(path, &n_bytes);
                whole = read_whole(decoder, bytes, n_bytes, &info);
                for (unsigned kind = 0; kind < 3; kind++) {
                        struct checker checker = {
                                .whole = whole,
                                .width = info.width,
                                .box = { 0, 0, info.width, info.height },
                                .fails_at = kind == 0 ? 0 : info.height - 1,
                                .refuses = kind == 2,
                        };
                        struct row_sink sink = sink_of(&checker);
                        struct why why = {};

                        ck_assert_int_eq(decoder_open(decoder, bytes, n_bytes, &info, NULL), 0);
                        ck_assert_int_eq(decoder_read_rows(decoder, &checker.box, &sink, &why),
                                         kind == 2 ? -EIO : -ECANCELED);
                        ck_assert_str_eq(why.text, kind == 2 ? "not now" : "enough");
                        ck_assert_uint_eq(checker.n_rows == 0, kind == 2);
                }
                free(whole);
                free(bytes);
                decoder_free(decoder);
        }
}
END_TEST

START_TEST(a_small_box_of_a_large_picture_needs_little_memory) {
        struct decoder *decoder = new_decoder(DECODE_JPEG_LIBJPEG);
        const struct box box = { 2000, 1700, 100, 90 };
        struct image_info info;
        struct view view;
        size_t n_bytes;
        uint8_t *bytes = jpeg_make(&JPEG_LAYOUTS[2], 4000, 3000, 0, &n_bytes);

        ck_assert_int_eq(decoder_open(decoder, bytes, n_bytes, &info, NULL), 0);
        ck_assert_uint_lt(decoder_need(decoder, &box), 2u << 20);
        ck_assert_int_eq(decoder_read(decoder, &box, &view, NULL), 0);
        ck_assert_uint_lt(decoder_scratch_bytes(decoder), 1u << 20);
        decoder_free(decoder);
        free(bytes);
}
END_TEST

START_TEST(a_wide_picture_takes_what_was_said) {
        struct decoder *decoder = new_decoder((enum decode_jpeg)_i);

        for (size_t l = 0; l < N_JPEG_LAYOUTS; l++) {
                size_t n_bytes;
                uint8_t *bytes = jpeg_make(&JPEG_LAYOUTS[l], 8000, 40, 0, &n_bytes), *whole;
                struct checker checker = { .width = 8000, .box = { 0, 0, 8000, 40 }, .fails_at = UINT32_MAX };
                struct row_sink sink = sink_of(&checker);
                struct image_info info;
                uint64_t need;

                whole = read_whole(decoder, bytes, n_bytes, &info);
                decoder_free(decoder); /* begin with nothing */
                decoder = new_decoder((enum decode_jpeg)_i);
                checker.whole = whole;
                ck_assert_int_eq(decoder_open(decoder, bytes, n_bytes, &info, NULL), 0);
                need = decoder_need(decoder, &checker.box);
                ck_assert_int_eq(decoder_read_rows(decoder, &checker.box, &sink, NULL), 0);
                ck_assert_uint_le(decoder_scratch_bytes(decoder), need);
                free(whole);
                free(bytes);
        }
        decoder_free(decoder);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "rows", rows_of_a_box_are_those_of_the_whole_jpeg, 2 },
                { "rows", rows_of_a_progressive_picture_that_lacks_scans_are_those_of_the_whole, 0 },
                { "rows", rows_of_a_box_are_those_of_the_whole_file_of_any_format, 0 },
                { "rows", a_sink_that_fails_ends_the_reading_with_its_own_error, 0 },
                { "rows", a_small_box_of_a_large_picture_needs_little_memory, 0 },
                { "rows", a_wide_picture_takes_what_was_said, 2 },
        };

        return suite_run("decode_rows", rows, ARRAY_SIZE(rows));
}
