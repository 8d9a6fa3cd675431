/* unit/test_decode_bad.c: what bad input may cost, and what is made of it: headers that claim more than there is,
 * bombs, pictures of a pixel, damage above and below the box. */
#include "daemon/augment/recipe.h"
#include "daemon/decode/decode.h"
#include "proto/base/cleanup.h"
#include "tests/support/layouts.h"
#include "tests/support/pixels.h"
#include "tests/support/suite.h"
#include "tests/support/vectors.h"

#include <errno.h>
#include <spng.h>
#include <stdlib.h>
#include <string.h>

#define LITTLE (8u << 20) /* bytes: no picture's area, whatever its width */

static const struct jpeg_layout PLAIN = { "4:2:0", JPEG_YCC, { { 2, 2 } }, .noise = true };
static const struct jpeg_layout PROGRESSIVE = { "progressive", JPEG_YCC, { { 2, 2 } }, .progressive = true };

static struct decoder *new_decoder(enum decode_jpeg jpeg, struct decode_limits limits) {
        struct decoder *decoder = NULL;

        ck_assert_int_eq(decoder_new(&limits, jpeg, &decoder, NULL), 0);
        return decoder;
}

/* Opens and reads a box; the view is the decoder's. */
static int read_box(struct decoder *decoder, const uint8_t *bytes, size_t n_bytes, struct box box, struct view *view,
                    struct why *why) {
        struct image_info info;
        int r = decoder_open(decoder, bytes, n_bytes, &info, why);

        return r < 0 ? r : decoder_read(decoder, &box, view, why);
}

/* The box's pixels, packed; the caller frees them. */
static uint8_t *copy_of(const struct view *view) {
        size_t n_row = (size_t)view->width * PIXEL_BYTES;
        uint8_t *pixels = malloc(n_row * view->height);

        for (uint32_t y = 0; y < view->height; y++)
                memcpy(pixels + y * n_row, view->pixels + y * view->stride, n_row);
        return pixels;
}

static void check_same(const struct view *view, const uint8_t *whole, uint32_t width, uint32_t x, uint32_t y) {
        for (uint32_t row = 0; row < view->height; row++)
                ck_assert_mem_eq(view->pixels + row * view->stride,
                                 whole + ((size_t)(y + row) * width + x) * PIXEL_BYTES, view->width * PIXEL_BYTES);
}

/* ---- headers that claim more than there is -------------------------------------------------------------------- */

/* Writes another size into the frame's header. */
static void claim(uint8_t *bytes, size_t n_bytes, uint16_t width, uint16_t height) {
        for (size_t i = 0; i + 8 < n_bytes; i++)
                if (bytes[i] == 0xff && (bytes[i + 1] == 0xc0 || bytes[i + 1] == 0xc2)) {
                        bytes[i + 5] = (uint8_t)(height >> 8);
                        bytes[i + 6] = (uint8_t)height;
                        bytes[i + 7] = (uint8_t)(width >> 8);
                        bytes[i + 8] = (uint8_t)width;
                        return;
                }
        ck_abort_msg("no frame header");
}

START_TEST(a_giant_is_refused_by_its_header) {
        const struct jpeg_layout *layouts[] = { &PLAIN, &PROGRESSIVE };
        struct decoder *decoder = new_decoder((enum decode_jpeg)_i, DECODE_LIMITS_DEFAULT);

        for (size_t i = 0; i < ARRAY_SIZE(layouts); i++) {
                size_t n_bytes;
                uint8_t *bytes = jpeg_make(layouts[i], 16, 16, 0, &n_bytes);
                struct image_info info;
                struct why why;

                claim(bytes, n_bytes, 65500, 65500);
                ck_assert_int_eq(decoder_open(decoder, bytes, n_bytes, &info, &why), -EFBIG);
                ck_assert_msg(strstr(why.text, "65500 x 65500 = 4290250000 pixels; the limit is 268435456") != NULL,
                              "%s", why.text);
                ck_assert_uint_lt(decoder_scratch_bytes(decoder), LITTLE);
                free(bytes);
        }
        decoder_free(decoder);
}
END_TEST

/* Where the limit lets it pass, memory follows the width. */
START_TEST(a_giants_corner_costs_no_more_than_its_width) {
        struct decode_limits limits = DECODE_LIMITS_DEFAULT;
        struct decoder *decoder;
        struct image_info info;
        struct box corner = { 0, 0, 9, 9 };
        struct view view;
        struct why why = {};
        size_t n_bytes;
        uint8_t *bytes = jpeg_make(&PLAIN, 16, 16, 0, &n_bytes);

        limits.max_pixels = UINT64_MAX;
        decoder = new_decoder((enum decode_jpeg)_i, limits);
        claim(bytes, n_bytes, 65500, 65500);
        ck_assert_int_eq(decoder_open(decoder, bytes, n_bytes, &info, &why), 0);
        ck_assert_uint_lt(decoder_need(decoder, &corner), 100u << 20);
        ck_assert_msg(decoder_read(decoder, &corner, &view, &why) == 0, "%s", why.text);
        ck_assert_uint_lt(decoder_scratch_bytes(decoder), 100u << 20);
        decoder_close(decoder);
        free(bytes);

        bytes = jpeg_make(&PROGRESSIVE, 16, 16, 0, &n_bytes);
        claim(bytes, n_bytes, 65500, 65500); /* all coefficients would be kept: 12 GB */
        ck_assert_int_eq(decoder_open(decoder, bytes, n_bytes, &info, &why), -EFBIG);
        ck_assert_msg(strstr(why.text, "several scans") != NULL, "%s", why.text);
        decoder_free(decoder);
        free(bytes);
}
END_TEST

/* ---- bombs --------------------------------------------------------------------------------------------------- */

/* A PNG of one colour: its bytes say little, its pixels are many. */
static uint8_t *make_png_bomb(uint32_t side, size_t *ret_n_bytes) {
        struct spng_ihdr header = { .width = side, .height = side, .bit_depth = 1 };
        spng_ctx *png = spng_ctx_new(SPNG_CTX_ENCODER);
        size_t n_raw = (size_t)(side + 7) / 8 * side;
        uint8_t *raw = calloc(1, n_raw), *bytes;
        int r;

        spng_set_option(png, SPNG_ENCODE_TO_BUFFER, 1);
        spng_set_ihdr(png, &header);
        ck_assert_int_eq(spng_encode_image(png, raw, n_raw, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE), 0);
        bytes = spng_get_png_buffer(png, ret_n_bytes, &r);
        ck_assert_int_eq(r, 0);
        spng_ctx_free(png);
        free(raw);
        return bytes;
}

START_TEST(a_bomb_in_a_png_takes_a_few_rows_of_memory) {
        struct decoder *decoder = new_decoder(DECODE_JPEG_AUTO, DECODE_LIMITS_DEFAULT);
        size_t n_bytes;
        uint8_t *bytes = make_png_bomb(12000, &n_bytes);
        struct view view;
        struct why why = {};

        ck_assert_uint_lt(n_bytes, 100000);
        ck_assert_msg(read_box(decoder, bytes, n_bytes, (struct box){ 11990, 11995, 10, 5 }, &view, &why) == 0, "%s",
                      why.text);
        ck_assert_uint_lt(decoder_scratch_bytes(decoder), 1u << 20);
        decoder_free(decoder);
        free(bytes);
}
END_TEST

/* A picture whose last scan comes again and again: each costs as much as a picture. It is read; returns what came of
 * it. */
static int read_with_scans(enum decode_jpeg way, uint32_t side, size_t n_more, struct why *ret_why) {
        struct decoder *decoder = new_decoder(way, DECODE_LIMITS_DEFAULT);
        size_t n_good, n_scan, n_bytes, last = 0;
        uint8_t *good = jpeg_make(&PROGRESSIVE, side, side, 0, &n_good), *bytes;
        struct view view;
        int r;

        for (size_t i = 0; i + 1 < n_good; i++)
                if (good[i] == 0xff && good[i + 1] == 0xda)
                        last = i;
        n_scan = n_good - 2 - last;
        n_bytes = n_good + n_more * n_scan;
        bytes = malloc(n_bytes);
        memcpy(bytes, good, n_good - 2);
        for (size_t i = 0; i < n_more; i++)
                memcpy(bytes + n_good - 2 + i * n_scan, good + last, n_scan);
        memcpy(bytes + n_bytes - 2, "\xff\xd9", 2);

        r = read_box(decoder, bytes, n_bytes, (struct box){ 0, 0, 1, 1 }, &view, ret_why);
        decoder_free(decoder);
        free(bytes);
        free(good);
        return r;
}

START_TEST(a_progressive_picture_of_a_thousand_scans_is_refused) {
        struct why why = {};

        ck_assert_int_eq(read_with_scans((enum decode_jpeg)_i, 64, 1000, &why), -EFBIG);
        ck_assert_msg(strstr(why.text, "more than 500 scans") != NULL, "%s", why.text);
}
END_TEST

START_TEST(the_larger_a_progressive_picture_is_the_fewer_scans_it_may_have) {
        struct why why = {};

        ck_assert_msg(read_with_scans((enum decode_jpeg)_i, 64, 400, &why) == 0, "%s", why.text);
        ck_assert_int_eq(read_with_scans((enum decode_jpeg)_i, 2048, 60, &why), -EFBIG);
        ck_assert_msg(strstr(why.text, "more than 64 scans") && strstr(why.text, "2048x2048"), "%s", why.text);
        ck_assert_msg(read_with_scans((enum decode_jpeg)_i, 2048, 20, &why) == 0, "%s", why.text);
}
END_TEST

/* ---- pictures of a pixel ------------------------------------------------------------------------------------- */

static void check_all_pixels(struct decoder *decoder, struct decoder *reference, const struct jpeg_layout *layout,
                             uint32_t width, uint32_t height) {
        size_t n_bytes;
        uint8_t *bytes = jpeg_make(layout, width, height, 5, &n_bytes), *whole;
        struct why why = {};
        struct view view;

        ck_assert_msg(read_box(reference, bytes, n_bytes, (struct box){ 0, 0, width, height }, &view, &why) == 0, "%s",
                      why.text);
        whole = copy_of(&view);
        ck_assert_int_eq(read_box(decoder, bytes, n_bytes, (struct box){ 0, 0, width, height }, &view, &why), 0);
        check_same(&view, whole, width, 0, 0);
        for (uint32_t y = 0; y < height; y++)
                for (uint32_t x = 0; x < width; x++) {
                        ck_assert_int_eq(read_box(decoder, bytes, n_bytes, (struct box){ x, y, 1, 1 }, &view, &why), 0);
                        check_same(&view, whole, width, x, y);
                }
        free(whole);
        free(bytes);
}

START_TEST(pictures_of_one_row_or_column_are_read_pixel_by_pixel) {
        struct decoder *decoder = new_decoder((enum decode_jpeg)_i, DECODE_LIMITS_DEFAULT);
        struct decoder *reference = new_decoder(DECODE_JPEG_LIBJPEG, DECODE_LIMITS_DEFAULT);
        static const uint32_t lengths[] = { 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 18, 33, 40 };

        for (size_t l = 0; l < N_JPEG_LAYOUTS; l++)
                for (size_t i = 0; i < ARRAY_SIZE(lengths); i++) {
                        check_all_pixels(decoder, reference, &JPEG_LAYOUTS[l], lengths[i], 1);
                        check_all_pixels(decoder, reference, &JPEG_LAYOUTS[l], 1, lengths[i]);
                }
        decoder_free(decoder);
        decoder_free(reference);
}
END_TEST

START_TEST(each_corner_is_a_box_of_one_pixel) {
        struct decoder *decoder = new_decoder((enum decode_jpeg)_i, DECODE_LIMITS_DEFAULT);
        struct decoder *reference = new_decoder(DECODE_JPEG_LIBJPEG, DECODE_LIMITS_DEFAULT);

        for (size_t l = 0; l < N_JPEG_LAYOUTS; l++)
                for (uint32_t side = 60; side < 70; side += 3) {
                        const uint32_t width = side, height = side + 20;
                        size_t n_bytes;
                        uint8_t *bytes = jpeg_make(&JPEG_LAYOUTS[l], width, height, side, &n_bytes), *whole;
                        struct view view;

                        ck_assert_int_eq(
                                read_box(reference, bytes, n_bytes, (struct box){ 0, 0, width, height }, &view, NULL),
                                0);
                        whole = copy_of(&view);
                        for (unsigned c = 0; c < 4; c++) {
                                struct box box = { c & 1 ? width - 1 : 0, c & 2 ? height - 1 : 0, 1, 1 };

                                ck_assert_int_eq(read_box(decoder, bytes, n_bytes, box, &view, NULL), 0);
                                check_same(&view, whole, width, box.x, box.y);
                        }
                        free(whole);
                        free(bytes);
                }
        decoder_free(decoder);
        decoder_free(reference);
}
END_TEST

/* ---- damage above and below the box -------------------------------------------------------------------------- */

#define SIDE 160u

/* Breaks the scan at `part` / 8 of it with bits that are not a code: ones, stuffed as the format wants it. */
static void break_scan(uint8_t *bytes, size_t n_bytes, unsigned part) {
        size_t scan = 0, at;

        for (size_t i = 0; i + 1 < n_bytes && !scan; i++)
                if (bytes[i] == 0xff && bytes[i + 1] == 0xda)
                        scan = i + 14;
        at = scan + (n_bytes - scan) * part / 8;
        if (bytes[at - 1] == 0xff)
                at++;
        memcpy(bytes + at, "\xff\0\xff\0\xff\0\xff\0\xff\0\xff", 12);
}

START_TEST(damage_below_the_box_is_not_seen) {
        struct decoder *decoder = new_decoder((enum decode_jpeg)_i, DECODE_LIMITS_DEFAULT);
        const struct box top = { 10, 5, 100, 40 }, all = { 0, 0, SIDE, SIDE };
        size_t n_bytes;
        uint8_t *bytes = jpeg_make(&PLAIN, SIDE, SIDE, 1, &n_bytes), *whole;
        struct view view;
        struct why why = {};

        ck_assert_int_eq(read_box(decoder, bytes, n_bytes, all, &view, &why), 0);
        whole = copy_of(&view);
        break_scan(bytes, n_bytes, 6);
        ck_assert_msg(read_box(decoder, bytes, n_bytes, top, &view, &why) == 0, "%s", why.text);
        check_same(&view, whole, SIDE, top.x, top.y);
        ck_assert_int_eq(read_box(decoder, bytes, n_bytes, all, &view, &why), 0);
        ck_assert(memcmp(view.pixels, whole, (size_t)SIDE * SIDE * PIXEL_BYTES) != 0); /* it is there */
        free(whole);
        free(bytes);
        decoder_free(decoder);
}
END_TEST

/* As in Pillow, damage inside the scan is not an error. Both decoders give the same result. */
START_TEST(damage_above_the_box_is_the_same_for_both) {
        struct decoder *own = new_decoder(DECODE_JPEG_AUTO, DECODE_LIMITS_DEFAULT);
        struct decoder *libjpeg = new_decoder(DECODE_JPEG_LIBJPEG, DECODE_LIMITS_DEFAULT);
        const struct box bottom = { 10, 100, 100, 60 }, all = { 0, 0, SIDE, SIDE };

        for (unsigned part = 0; part < 8; part++) {
                size_t n_bytes;
                uint8_t *bytes = jpeg_make(&PLAIN, SIDE, SIDE, part, &n_bytes), *whole;
                struct view view;

                break_scan(bytes, n_bytes, part);
                ck_assert_int_eq(read_box(libjpeg, bytes, n_bytes, all, &view, NULL), 0);
                whole = copy_of(&view);
                ck_assert_int_eq(read_box(libjpeg, bytes, n_bytes, bottom, &view, NULL), 0);
                check_same(&view, whole, SIDE, bottom.x, bottom.y);
                ck_assert_int_eq(read_box(own, bytes, n_bytes, bottom, &view, NULL), 0);
                check_same(&view, whole, SIDE, bottom.x, bottom.y);
                ck_assert_int_eq(decoder_decoded_by(own), DECODED_BY_LIBJPEG);
                free(whole);
                free(bytes);
        }
        decoder_free(own);
        decoder_free(libjpeg);
}
END_TEST

/* Wherever it is cut, wherever the box lies: what the whole picture gets is what the box gets. */
START_TEST(a_file_that_was_cut_is_an_error_wherever_the_box_lies) {
        struct decoder *decoder = new_decoder((enum decode_jpeg)_i, DECODE_LIMITS_DEFAULT);
        const struct box all = { 0, 0, 50, 60 }, boxes[] = { { 0, 0, 1, 1 }, { 5, 20, 30, 20 }, { 49, 59, 1, 1 } };
        unsigned n_refused = 0;

        for (size_t l = 0; l < N_JPEG_LAYOUTS; l++) {
                size_t n_bytes;
                uint8_t *bytes = jpeg_make(&JPEG_LAYOUTS[l], 50, 60, 3, &n_bytes);

                for (size_t n_left = n_bytes - 3; n_left > 700; n_left -= 1 + n_left / 8) {
                        uint8_t *cut = malloc(n_left);
                        struct view view;
                        int expected;

                        memcpy(cut, bytes, n_left);
                        expected = read_box(decoder, cut, n_left, all, &view, NULL);
                        n_refused += expected < 0;
                        for (size_t i = 0; i < ARRAY_SIZE(boxes); i++)
                                ck_assert_int_eq(read_box(decoder, cut, n_left, boxes[i], &view, NULL), expected);
                        free(cut);
                }
                free(bytes);
        }
        ck_assert_uint_gt(n_refused, 100);
        decoder_free(decoder);
}
END_TEST

START_TEST(a_cut_file_of_another_format_is_an_error_wherever_the_box_lies) {
        static const char *const names[] = { "rgb_8.png",      "grey_1.png",       "palette_4_interlaced.png",
                                             "lossy.webp",     "lossless.webp",    "animation.webp",
                                             "pillow_rgb.bmp", "runs_8.bmp",       "pillow_rgb.ppm",
                                             "text_100.pgm",   "text.pbm",         "plain.gif",
                                             "interlaced.gif", "strips_of_5.tif",  "tiles_jpeg.tif",
                                             "planes.tif",     "pillow_group4.tif" };
        struct decoder *decoder = new_decoder(DECODE_JPEG_AUTO, DECODE_LIMITS_DEFAULT);
        unsigned n_refused = 0;

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                char path[256];
                size_t n_bytes;
                uint8_t *bytes;

                snprintf(path, sizeof(path), "tests/vectors/pictures/%s", names[i]);
                bytes = read_whole_file(path, &n_bytes);
                for (size_t n_left = n_bytes - 1; n_left > 20; n_left -= 1 + n_left / 16) {
                        uint8_t *cut = malloc(n_left);
                        struct image_info info;
                        struct view view;
                        int expected;

                        memcpy(cut, bytes, n_left);
                        expected = decoder_open(decoder, cut, n_left, &info, NULL);
                        if (expected == 0) {
                                struct box all = { 0, 0, info.width, info.height };

                                expected = decoder_read(decoder, &all, &view, NULL);
                                ck_assert_int_eq(
                                        read_box(decoder, cut, n_left, (struct box){ 0, 0, 1, 1 }, &view, NULL),
                                        expected);
                        }
                        n_refused += expected < 0;
                        free(cut);
                }
                free(bytes);
        }
        ck_assert_uint_gt(n_refused, 100);
        decoder_free(decoder);
}
END_TEST

/* ---- crops that are not in the picture ------------------------------------------------------------------- */

/* The decoder asserts that its box lies within the picture; whoever writes the pipeline cannot make one that does not.
 */
START_TEST(no_pipeline_asks_for_what_is_not_there) {
        static const char *const refused[] = { "center_crop(0)", "resize(0)", "random_resized_crop(0)",
                                               "center_crop(-1)" };
        static const char *const texts[] = { "center_crop(64)", "resize(1) center_crop(3)",
                                             "center_crop(64) center_crop(1) center_crop(9)",
                                             "random_resized_crop(5, scale=0.0001:0.0002)" };
        struct decoder *decoder = new_decoder(DECODE_JPEG_AUTO, DECODE_LIMITS_DEFAULT);
        struct recipe *recipe;

        for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
                ck_assert_int_eq(recipe_parse(refused[i], &recipe, NULL), -EINVAL);
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
                ck_assert_int_eq(recipe_parse(texts[i], &recipe, NULL), 0);
                for (uint32_t side = 1; side < 20; side++) {
                        size_t n_bytes;
                        uint8_t *bytes = jpeg_make(&PLAIN, side, 21 - side, 0, &n_bytes);
                        struct geometry geometry;
                        struct image_info info;
                        struct view view;

                        ck_assert_int_eq(decoder_open(decoder, bytes, n_bytes, &info, NULL), 0);
                        ck_assert_int_eq(recipe_plan(recipe, info.width, info.height, 0, 0, side, &geometry, NULL), 0);
                        ck_assert_int_eq(decoder_read(decoder, &geometry.source, &view, NULL), 0);
                        free(bytes);
                }
                recipe_free(recipe);
        }
        decoder_free(decoder);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "claims", a_giant_is_refused_by_its_header, 2 },
                { "claims", a_giants_corner_costs_no_more_than_its_width, 2 },
                { "bombs", a_bomb_in_a_png_takes_a_few_rows_of_memory, 0 },
                { "bombs", a_progressive_picture_of_a_thousand_scans_is_refused, 2 },
                { "bombs", the_larger_a_progressive_picture_is_the_fewer_scans_it_may_have, 2 },
                { "small", pictures_of_one_row_or_column_are_read_pixel_by_pixel, 2 },
                { "small", each_corner_is_a_box_of_one_pixel, 2 },
                { "damage", damage_below_the_box_is_not_seen, 2 },
                { "damage", damage_above_the_box_is_the_same_for_both, 0 },
                { "damage", a_file_that_was_cut_is_an_error_wherever_the_box_lies, 2 },
                { "damage", a_cut_file_of_another_format_is_an_error_wherever_the_box_lies, 0 },
                { "crops", no_pipeline_asks_for_what_is_not_there, 0 },
        };

        return suite_run("decode_bad", rows, ARRAY_SIZE(rows));
}
