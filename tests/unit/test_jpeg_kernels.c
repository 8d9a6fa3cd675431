/* unit/test_jpeg_kernels.c: the kernels that decode and resize JPEGs in rows give the bits of libjpeg-turbo and of our
 * own resizing, run on the CPU; and whatever the bytes of a row are, they stay within their memory and end. */
#include <stdio.h>

#include "daemon/staging/prepare/transcoder.h"
#include "proto/base/cleanup.h"
#include "tests/support/jpegs.h"
#include "tests/support/rows_decoding.h"
#include "tests/support/suite.h"

#define MAX_PIXELS (1u << 20)

/* ---- fixture --------------------------------------------------------------------------------------------------- */

static bool never(void *userdata) {
        (void)userdata;
        return false;
}

struct file {
        uint8_t *bytes;
        size_t n_bytes;
};

static struct file make_rows(const struct jpegs_spec *spec) {
        struct transcoder *transcoder;
        struct block block = {};
        struct file file;
        uint8_t *source;
        size_t n_source;
        uint64_t need;

        source = jpegs_make(spec, &n_source);
        ck_assert_int_eq(transcoder_new(&transcoder), 0);
        ck_assert_int_eq(transcoder_open(transcoder, source, n_source, &need, NULL), 0);
        ck_assert_int_eq(transcoder_make(transcoder, never, NULL, &block, &file.n_bytes, NULL), 0);
        file.bytes = malloc(file.n_bytes);
        memcpy(file.bytes, block.bytes, file.n_bytes);
        block_free(&block);
        transcoder_free(transcoder);
        free(source);
        return file;
}

static struct box whole_of(const struct rows_decoding *decoding) {
        return (struct box){ 0, 0, decoding->picture.jpeg.width, decoding->picture.jpeg.height };
}

static bool has_box(const struct jpegs_verdict *verdict, const struct rows_decoding *decoding, struct box box) {
        size_t n_row = (size_t)box.width * PIXEL_BYTES;

        for (uint32_t y = 0; y < box.height; y++)
                if (memcmp(decoding->picture.pixels + y * n_row,
                           verdict->rgb + ((size_t)(box.y + y) * verdict->width + box.x) * PIXEL_BYTES, n_row) != 0)
                        return false;
        return true;
}

static const struct { int h, v; } SAMPLINGS[] = { { 0, 0 }, { 1, 1 }, { 2, 1 }, { 2, 2 }, { 1, 2 } };

/* ---- pixels ---------------------------------------------------------------------------------------------------- */

static void check_pixels_of(const struct jpegs_spec *spec, bool is_backwards) {
        struct file file = make_rows(spec);
        struct jpegs_verdict verdict = jpegs_decode(file.bytes, file.n_bytes, MAX_PIXELS);
        struct rows_decoding decoding;

        dlk_cpu_is_backwards = is_backwards;
        ck_assert_int_eq(rows_decoding_open(&decoding, file.bytes, file.n_bytes), 0);
        ck_assert_int_eq(rows_decoding_run(&decoding, whole_of(&decoding)), DLK_JPEG_GOOD);
        ck_assert_msg(has_box(&verdict, &decoding, whole_of(&decoding)), "%u x %u, %d x %d, quality %d, seed %u",
                      spec->width, spec->height, spec->h, spec->v, spec->quality, (unsigned)spec->seed);
        dlk_cpu_is_backwards = false;
        rows_decoding_free(&decoding);
        free(verdict.rgb);
        free(file.bytes);
}

START_TEST(pixels_are_those_of_libjpeg_whatever_the_size_and_the_sampling) {
        static const uint32_t SIDES[] = { 1, 2, 3, 4, 5, 6, 8, 9, 16, 17, 31, 130 };
        uint64_t seed = 1;

        for (size_t s = 0; s < ARRAY_SIZE(SAMPLINGS); s++)
                for (size_t x = 0; x < ARRAY_SIZE(SIDES); x++)
                        for (size_t y = 0; y < ARRAY_SIZE(SIDES); y++, seed++) {
                                struct jpegs_spec spec = {
                                        .width = SIDES[x],
                                        .height = SIDES[y],
                                        .quality = 1 + (int)(seed * 37 % 100),
                                        .h = SAMPLINGS[s].h,
                                        .v = SAMPLINGS[s].v,
                                        .content = (enum jpegs_content)(seed % N_JPEGS_CONTENTS),
                                        .seed = seed,
                                };

                                check_pixels_of(&spec, seed % 2);
                        }
}
END_TEST

START_TEST(a_box_has_the_pixels_that_the_whole_picture_has_there) {
        uint64_t random = 6;

        for (unsigned i = 0; i < 60; i++) {
                struct jpegs_spec spec = { .width = 20 + jpegs_random(&random, 100),
                                           .height = 20 + jpegs_random(&random, 100),
                                           .quality = 75,
                                           .h = SAMPLINGS[i % ARRAY_SIZE(SAMPLINGS)].h,
                                           .v = SAMPLINGS[i % ARRAY_SIZE(SAMPLINGS)].v,
                                           .content = JPEGS_PHOTO,
                                           .seed = i };
                struct file file = make_rows(&spec);
                struct jpegs_verdict verdict = jpegs_decode(file.bytes, file.n_bytes, MAX_PIXELS);
                struct box box = { .x = jpegs_random(&random, spec.width), .y = jpegs_random(&random, spec.height) };
                struct rows_decoding decoding;

                box.width = 1 + jpegs_random(&random, spec.width - box.x);
                box.height = 1 + jpegs_random(&random, spec.height - box.y);
                ck_assert_int_eq(rows_decoding_open(&decoding, file.bytes, file.n_bytes), 0);
                ck_assert_int_eq(rows_decoding_run(&decoding, box), DLK_JPEG_GOOD);
                ck_assert(has_box(&verdict, &decoding, box));
                rows_decoding_free(&decoding);
                free(verdict.rgb);
                free(file.bytes);
        }
}
END_TEST

/* No encoder writes coefficients that leave the range of samples; libjpeg-turbo's SIMD code wraps and saturates them,
 * and so does this. Steps of quantisation are changed after the encoder. */
START_TEST(coefficients_that_no_encoder_writes_give_the_pixels_of_libjpeg) {
        uint64_t random = 9;

        for (unsigned i = 0; i < 200; i++) {
                struct jpegs_spec spec = { .width = 40, .height = 24, .quality = 100, .content = JPEGS_NOISE };
                struct rows_decoding decoding;
                struct jpegs_verdict verdict;
                struct file file;

                spec.h = SAMPLINGS[i % ARRAY_SIZE(SAMPLINGS)].h;
                spec.v = SAMPLINGS[i % ARRAY_SIZE(SAMPLINGS)].v;
                spec.seed = i;
                if (i % 3 == 0) /* nothing below the first row of a block */
                        spec.height = 1, spec.content = JPEGS_SMOOTH;
                file = make_rows(&spec);
                for (size_t at = 2; file.bytes[at + 1] != 0xda;
                     at += 2 + (file.bytes[at + 2] << 8 | file.bytes[at + 3]))
                        for (unsigned k = 0; file.bytes[at + 1] == 0xdb && k < 64; k++)
                                file.bytes[at + 5 + k] = (uint8_t)(1 + jpegs_random(&random, i % 2 ? 255 : 24));
                verdict = jpegs_decode(file.bytes, file.n_bytes, MAX_PIXELS);
                ck_assert_int_eq(rows_decoding_open(&decoding, file.bytes, file.n_bytes), 0);
                ck_assert_int_eq(rows_decoding_run(&decoding, whole_of(&decoding)), DLK_JPEG_GOOD);
                ck_assert_msg(has_box(&verdict, &decoding, whole_of(&decoding)), "picture %u", i);
                rows_decoding_free(&decoding);
                free(verdict.rgb);
                free(file.bytes);
        }
}
END_TEST

/* ---- resizing -------------------------------------------------------------------------------------------------- */

static uint8_t *resize_as_the_daemon(const struct rows_decoding *decoding, uint32_t width, uint32_t height,
                                     enum resize_filter filter) {
        const struct dlk_jpeg_picture *picture = &decoding->picture;
        struct resize_job job = { width, height, { 0, 0, width, height }, filter, false };
        struct view source = { picture->pixels, (size_t)picture->box_width * PIXEL_BYTES, picture->box_width,
                               picture->box_height };
        uint8_t *out = malloc((size_t)width * height * PIXEL_BYTES);
        struct resizer *resizer;

        ck_assert_int_eq(resizer_new(RESIZE_CODE_SCALAR, &resizer, NULL), 0);
        ck_assert_int_eq(
                resizer_begin(resizer, source.width, source.height, NULL, &job, out, (size_t)width * PIXEL_BYTES, NULL),
                0);
        resizer_feed(resizer, &source);
        resizer_free(resizer);
        return out;
}

START_TEST(a_resized_box_has_the_bits_of_our_own_resizing) {
        uint64_t random = 12;

        for (unsigned i = 0; i < 100; i++) {
                enum resize_filter filter = (enum resize_filter)(i % N_RESIZE_FILTERS);
                struct jpegs_spec spec = { .width = 120, .height = 90, .quality = 75, .h = 2, .v = 2, .seed = i };
                uint32_t width = 1 + jpegs_random(&random, 150), height = 1 + jpegs_random(&random, 150);
                struct file file = make_rows(&spec);
                struct rows_decoding decoding;
                struct box box = { 0 };
                uint8_t *expected;

                box.width = 1 + jpegs_random(&random, 120);
                box.height = 1 + jpegs_random(&random, 90);
                box.x = jpegs_random(&random, 121 - box.width);
                box.y = jpegs_random(&random, 91 - box.height);
                ck_assert_int_eq(rows_decoding_open(&decoding, file.bytes, file.n_bytes), 0);
                ck_assert_int_eq(rows_decoding_run(&decoding, box), DLK_JPEG_GOOD);
                rows_decoding_resize(&decoding, width, height, filter);
                expected = resize_as_the_daemon(&decoding, width, height, filter);
                ck_assert_msg(memcmp(decoding.picture.out, expected, (size_t)width * height * PIXEL_BYTES) == 0,
                              "%u x %u to %u x %u, %s", box.width, box.height, width, height,
                              RESIZE_FILTER_NAMES[filter]);
                free(expected);
                rows_decoding_free(&decoding);
                free(file.bytes);
        }
}
END_TEST

/* ---- damage ---------------------------------------------------------------------------------------------------- */

static const struct jpegs_spec SPEC = {
        .width = 70, .height = 50, .quality = 80, .h = 2, .v = 2, .content = JPEGS_PHOTO, .seed = 3
};

START_TEST(a_row_that_is_too_short_too_long_or_has_a_wrong_code_is_told_apart) {
        struct file file = make_rows(&SPEC);
        struct rows_decoding decoding;
        uint8_t *scan;

        for (unsigned how = 0; how < 4; how++) {
                ck_assert_int_eq(rows_decoding_open(&decoding, file.bytes, file.n_bytes), 0);
                scan = decoding.file + decoding.picture.jpeg.scan_at;
                if (how == 0)
                        decoding.offsets[2] -= 20;
                else if (how == 1)
                        decoding.offsets[2] += 20;
                else if (how == 2)
                        memset(scan + decoding.offsets[1], 0, 1),
                                scan[decoding.offsets[1] + 1] = 0xff, scan[decoding.offsets[1] + 2] = 0xd9;
                else
                        for (uint32_t at = decoding.offsets[1]; at + 4 < decoding.offsets[2]; at += 2)
                                scan[at] = 0xff, scan[at + 1] = 0; /* no code is all ones */
                rows_decoding_run(&decoding, whole_of(&decoding));
                if (how == 1)
                        ck_assert_uint_ne(decoding.status, DLK_JPEG_GOOD); /* reads on into its marker, and row 2 */
                else
                        ck_assert_uint_eq(decoding.status, how == 3 ? DLK_JPEG_WRONG : DLK_JPEG_SHORT);
                rows_decoding_free(&decoding);
        }
        free(file.bytes);
}
END_TEST

/* A single byte after the last code of the only row. */
static struct file with_a_byte_more(void) {
        struct jpegs_spec spec = { .width = 30, .height = 8, .quality = 80, .content = JPEGS_PHOTO, .seed = 2 };
        struct file file = make_rows(&spec);
        struct dlp_jpeg jpeg;
        uint8_t *longer, *offset;

        ck_assert_int_eq(dlp_jpeg_read(file.bytes, file.n_bytes, &jpeg, NULL), 0);
        ck_assert_uint_eq(jpeg.n_rows, 1);
        longer = malloc(file.n_bytes + 1);
        memcpy(longer, file.bytes, file.n_bytes - 2);
        memcpy(longer + file.n_bytes - 2, "\x5a\xff\xd9", 3);
        offset = longer + (jpeg.offsets - file.bytes) + 4;
        ck_assert_uint_lt(offset[0], 255);
        offset[0]++;
        free(file.bytes);
        return (struct file){ longer, file.n_bytes + 1 };
}

START_TEST(bytes_after_the_last_code_of_a_row_are_noticed) {
        struct file file = with_a_byte_more();
        struct rows_decoding decoding;

        ck_assert_int_eq(rows_decoding_open(&decoding, file.bytes, file.n_bytes), 0);
        rows_decoding_run(&decoding, whole_of(&decoding));
        ck_assert_uint_eq(decoding.status, DLK_JPEG_LONG);
        rows_decoding_free(&decoding);
        free(file.bytes);

        file = make_rows(&SPEC);
        ck_assert_int_eq(rows_decoding_open(&decoding, file.bytes, file.n_bytes), 0);
        decoding.picture.jpeg.n_mcus_x--;
        rows_decoding_run(&decoding, whole_of(&decoding));
        ck_assert_uint_eq(decoding.status, DLK_JPEG_LONG);
        rows_decoding_free(&decoding);
        free(file.bytes);
}
END_TEST

START_TEST(whatever_the_bytes_of_rows_become_after_they_were_checked_kernels_stay_within_memory) {
        struct file file = make_rows(&SPEC);
        uint64_t random = 15;
        unsigned n_good = 0;

        for (unsigned i = 0; i < 2000; i++) {
                struct rows_decoding decoding;
                uint32_t n_scan;
                uint8_t *scan;

                ck_assert_int_eq(rows_decoding_open(&decoding, file.bytes, file.n_bytes), 0);
                scan = decoding.file + decoding.picture.jpeg.scan_at;
                n_scan = decoding.offsets[decoding.picture.jpeg.n_rows];
                for (uint32_t n = i % 4 == 3 ? n_scan : 1 + jpegs_random(&random, 4); n > 0; n--)
                        scan[jpegs_random(&random, n_scan)] = (uint8_t)jpegs_random(&random, 256);
                dlk_cpu_is_backwards = i % 2;
                rows_decoding_run(&decoding, whole_of(&decoding));
                if (decoding.status == DLK_JPEG_GOOD) { /* then libjpeg has no word to say about it either */
                        struct jpegs_verdict verdict = jpegs_decode(decoding.file, file.n_bytes, MAX_PIXELS);

                        n_good++;
                        if (verdict.n_warnings == 0)
                                ck_assert(has_box(&verdict, &decoding, whole_of(&decoding)));
                        free(verdict.rgb);
                }
                rows_decoding_free(&decoding);
        }
        dlk_cpu_is_backwards = false;
        ck_assert_uint_lt(n_good, 1500);
        free(file.bytes);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "pixels", pixels_are_those_of_libjpeg_whatever_the_size_and_the_sampling, 0 },
                { "pixels", a_box_has_the_pixels_that_the_whole_picture_has_there, 0 },
                { "pixels", coefficients_that_no_encoder_writes_give_the_pixels_of_libjpeg, 0 },
                { "resizing", a_resized_box_has_the_bits_of_our_own_resizing, 0 },
                { "damage", a_row_that_is_too_short_too_long_or_has_a_wrong_code_is_told_apart, 0 },
                { "damage", bytes_after_the_last_code_of_a_row_are_noticed, 0 },
                { "damage", whatever_the_bytes_of_rows_become_after_they_were_checked_kernels_stay_within_memory, 0 },
        };

        return suite_run("jpeg_kernels", rows, ARRAY_SIZE(rows));
}
