/* unit/test_decode.c: pixels are Pillow's, bit for bit; what Pillow refuses is refused, with the right errno and words.
 *
 * The files and what is expected of them come from tests/support/make_pictures.py. Every file is copied into memory
 * that ends with its last byte, so that a sanitizer sees whatever reads past it. */
#include "daemon/decode/decode.h"
#include "proto/base/cleanup.h"
#include "tests/support/pixels.h"
#include "tests/support/vectors.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LIMITS(pixels, scans, scratch_bytes)                                                                           \
        ((struct decode_limits){ .max_pixels = pixels, .max_scans = scans, .max_scratch_bytes = scratch_bytes })

#define EXPECTED "pictures/expected.jsonl"
#define GUARD    16u        /* bytes between rows, which nobody may write */
#define SMALL    (1u << 20) /* bytes of scratch: nothing of a picture's size is held */

struct file {
        uint8_t *bytes;
        size_t n_bytes;
};

static struct file read_file(const char *name) {
        char path[256];
        struct file file;
        uint8_t *bytes;

        snprintf(path, sizeof(path), "tests/vectors/pictures/%s", name);
        bytes = read_whole_file(path, &file.n_bytes);
        file.bytes = malloc(file.n_bytes); /* without the NUL that read_whole_file() adds */
        memcpy(file.bytes, bytes, file.n_bytes);
        free(bytes);
        return file;
}

static struct decoder *new_decoder(struct decode_limits limits) {
        struct decoder *decoder = NULL;

        ck_assert_int_eq(decoder_new(&limits, DECODE_JPEG_AUTO, &decoder, NULL), 0);
        return decoder;
}

/* Reads a whole picture into guarded rows and packs it; the caller frees it. Negative errno as decode.h says. */
static int read_packed(struct decoder *decoder, const uint8_t *bytes, size_t n_bytes, struct image_info *info,
                       uint8_t **ret_pixels, struct why *why) {
        _cleanup_(freep) uint8_t *out = NULL;
        size_t n_row, stride;
        uint8_t *pixels;
        int r;

        r = decoder_open(decoder, bytes, n_bytes, info, why);
        if (r < 0)
                return r;
        n_row = (size_t)info->width * 3;
        stride = n_row + GUARD;
        out = malloc(stride * info->height);
        memset(out, 0xa5, stride * info->height);
        r = decoder_read_into(decoder, out, stride, why);

        for (uint32_t y = 0; y < info->height; y++)
                for (size_t i = 0; i < GUARD; i++)
                        if (out[y * stride + n_row + i] != 0xa5)
                                ck_abort_msg("written beside row %u", y);
        if (r < 0)
                return r;

        pixels = malloc(n_row * info->height);
        for (uint32_t y = 0; y < info->height; y++)
                memcpy(pixels + y * n_row, out + y * stride, n_row);
        *ret_pixels = pixels;
        return 0;
}

/* Every box must show the same pixels as the whole picture. */
static void check_boxes(struct decoder *decoder, const struct file *file, const uint8_t *pixels, uint32_t width,
                        uint32_t height) {
        const struct box boxes[] = {
                { 0, 0, width, height },
                { 0, 0, 1, 1 },
                { width - 1, height - 1, 1, 1 },
                { width / 3, height / 4, width - width / 3, height - height / 4 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(boxes); i++) {
                const struct box *box = &boxes[i];
                struct image_info info;
                struct view view;

                ck_assert_int_eq(decoder_open(decoder, file->bytes, file->n_bytes, &info, NULL), 0);
                ck_assert_int_eq(decoder_read(decoder, box, &view, NULL), 0);
                ck_assert_uint_eq(view.width, box->width);
                ck_assert_uint_eq(view.height, box->height);
                for (uint32_t y = 0; y < box->height; y++)
                        ck_assert_mem_eq(view.pixels + y * view.stride,
                                         pixels + ((size_t)(box->y + y) * width + box->x) * 3, box->width * 3);
        }
}

static void check_pixels_of(struct decoder *decoder, const cJSON *line, bool boxes) {
        const char *name = vector_string(line, "file");
        struct file file = read_file(name);
        struct why why = {};
        struct image_info info;
        uint8_t *pixels = NULL;
        int r = read_packed(decoder, file.bytes, file.n_bytes, &info, &pixels, &why);

        ck_assert_msg(r == 0, "%s: %s", name, why.text);
        ck_assert_int_eq((int)info.width, vector_int(line, "width"));
        ck_assert_int_eq((int)info.height, vector_int(line, "height"));
        ck_assert_msg(fnv1a(pixels, (size_t)info.width * info.height * 3) == vector_hex(vector_string(line, "fnv")),
                      "%s: other pixels than Pillow's", name);
        if (boxes)
                check_boxes(decoder, &file, pixels, info.width, info.height);
        free(pixels);
        free(file.bytes);
}

START_TEST(pixels_are_pillows_to_the_bit) {
        struct decoder *decoder = new_decoder(
                DECODE_LIMITS_DEFAULT); /* one for all: nothing of a picture stays in it */
        struct vectors vectors;
        unsigned n = 0;

        vectors_open(&vectors, EXPECTED);
        while (vectors_next(&vectors))
                if (vector_has(vectors.line, "fnv")) {
                        check_pixels_of(decoder, vectors.line, true);
                        n++;
                }
        ck_assert_uint_gt(n, 80);
        decoder_free(decoder);
}
END_TEST

START_TEST(what_cannot_be_read_is_refused_with_its_reason) {
        struct decoder *decoder = new_decoder(DECODE_LIMITS_DEFAULT);
        struct vectors vectors;
        unsigned n = 0;

        vectors_open(&vectors, EXPECTED);
        while (vectors_next(&vectors)) {
                struct image_info info;
                struct why why = {};
                struct file file;
                uint8_t *pixels;
                int r;

                if (!vector_has(vectors.line, "error")) {
                        if (vector_has(vectors.line, "fnv")) /* a good picture is good after a bad one */
                                check_pixels_of(decoder, vectors.line, false);
                        continue;
                }
                file = read_file(vector_string(vectors.line, "file"));
                r = read_packed(decoder, file.bytes, file.n_bytes, &info, &pixels, &why);
                ck_assert_msg(r == -vector_int(vectors.line, "error"), "%s: %d", vector_string(vectors.line, "file"),
                              r);
                ck_assert_msg(strstr(why.text, vector_string(vectors.line, "says")) != NULL, "%s: %s",
                              vector_string(vectors.line, "file"), why.text);
                free(file.bytes);
                n++;
        }
        ck_assert_uint_gt(n, 15);
        decoder_free(decoder);
}
END_TEST

START_TEST(a_file_that_was_cut_is_refused_where_pillow_refuses_it) {
        struct decoder *decoder = new_decoder(DECODE_LIMITS_DEFAULT);
        struct vectors vectors;
        unsigned n = 0;

        vectors_open(&vectors, EXPECTED);
        while (vectors_next(&vectors)) {
                struct image_info info;
                struct file file;
                uint8_t *pixels = NULL, *part;
                size_t n_part;
                int r;

                if (!vector_has(vectors.line, "cut"))
                        continue;
                file = read_file(vector_string(vectors.line, "file"));
                n_part = (size_t)vector_int(vectors.line, "cut");
                part = malloc(n_part);
                memcpy(part, file.bytes, n_part);
                r = read_packed(decoder, part, n_part, &info, &pixels, NULL);
                ck_assert_msg((r == 0) == vector_bool(vectors.line, "ok"), "%s cut to %zu: %d",
                              vector_string(vectors.line, "file"), n_part, r);
                free(pixels);
                free(part);
                free(file.bytes);
                n++;
        }
        ck_assert_uint_gt(n, 80);
        decoder_free(decoder);
}
END_TEST

/* Each byte of each file set to each of a few values: no crash, no hang; a sanitizer sees the rest. */
START_TEST(damage_anywhere_never_crashes) {
        static const char *const names[] = { "sampling_2.jpg",
                                             "progressive.jpg",
                                             "cmyk_adobe.jpg",
                                             "palette_2_interlaced.png",
                                             "rgb_8.png",
                                             "lossy_alpha.webp",
                                             "lossless.webp",
                                             "animation_corner.webp",
                                             "arithmetic.jpg",
                                             "restarts_progressive.jpg",
                                             "pillow_palette.bmp",
                                             "runs_8.bmp",
                                             "runs_4.bmp",
                                             "masks_565.bmp",
                                             "text_6.ppm",
                                             "max_1000.ppm",
                                             "text.pbm",
                                             "interlaced.gif",
                                             "offset_transparent.gif",
                                             "strips_of_5.tif",
                                             "tiles_rgb_8.tif",
                                             "planes.tif",
                                             "pillow_group4.tif",
                                             "tiles_jpeg.tif",
                                             "orientation_6_packbits.tif" };
        static const uint8_t values[] = { 0x00, 0xff, 0x7f };
        struct decoder *decoder = new_decoder(LIMITS(1 << 20, 50, 8 << 20));
        unsigned n_read = 0, n_refused = 0;

        for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                struct file file = read_file(names[i]);

                for (size_t at = 0; at<file.n_bytes; at += file.n_bytes> 1500 ? 7 : 3) {
                        uint8_t kept = file.bytes[at], *pixels = NULL;
                        struct image_info info;

                        file.bytes[at] = values[at / 3 % ARRAY_SIZE(values)];
                        if (read_packed(decoder, file.bytes, file.n_bytes, &info, &pixels, NULL) == 0)
                                n_read++;
                        else
                                n_refused++;
                        free(pixels);
                        file.bytes[at] = kept;
                }
                free(file.bytes);
        }
        ck_assert_uint_gt(n_read, 100);
        ck_assert_uint_gt(n_refused, 100);
        decoder_free(decoder);
}
END_TEST

static void check_refused(struct decode_limits limits, const char *name, const char *says, const char *number) {
        struct decoder *decoder = new_decoder(limits);
        struct file file = read_file(name);
        struct image_info info;
        struct why why = {};
        struct view view;
        int r = decoder_open(decoder, file.bytes, file.n_bytes, &info, &why);

        if (r == 0)
                r = decoder_read(decoder, &(struct box){ 0, 0, info.width, info.height }, &view, &why);
        ck_assert_int_eq(r, -EFBIG);
        ck_assert_msg(strstr(why.text, says) != NULL && strstr(why.text, number) != NULL, "%s", why.text);
        if (!strstr(says, "scans, ")) /* these are counted while decoding */
                ck_assert_uint_lt(decoder_scratch_bytes(decoder), SMALL);
        decoder_free(decoder);
        free(file.bytes);
}

START_TEST(limits_are_refused_with_both_numbers_before_memory_is_reserved) {
        static const char *const names[] = { "sampling_2.jpg", "smooth.png",     "lossy.webp",      "animation.webp",
                                             "really_bmp.jpg", "really_ppm.jpg", "really_tiff.jpg", "really_gif.jpg" };
        static const char *const sizes[] = { "45 x 35 = 1575", "60 x 40 = 2400", "37 x 29 = 1073", "37 x 29 = 1073",
                                             "9 x 7 = 63",     "9 x 7 = 63",     "9 x 7 = 63",     "9 x 7 = 63" };

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                check_refused(LIMITS(50 + (i < 4) * 950, 100, 1 << 30), names[i], sizes[i],
                              i < 4 ? "limit is 1000 pixels" : "limit is 50 pixels");

        check_refused(LIMITS(1 << 20, 2, 1 << 30), "progressive.jpg", "more than 2 scans, which is the limit", "2");
        check_refused(LIMITS(1 << 20, 100, 2000), "progressive.jpg", "several scans", "limit is 2000 bytes");
        check_refused(LIMITS(1 << 20, 100, 2000), "lossy.webp", "bytes of scratch memory", "limit is 2000 bytes");
}
END_TEST

START_TEST(a_picture_may_be_opened_and_not_read) {
        struct decoder *decoder = new_decoder(DECODE_LIMITS_DEFAULT);
        static const char *const names[] = { "progressive.jpg", "smooth.png", "animation.webp", "cut_in_data.jpg",
                                             "psd.jpg" };

        for (unsigned round = 0; round < 20; round++)
                for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
                        struct file file = read_file(names[i]);
                        struct image_info info = { .width = 77 };
                        int r = decoder_open(decoder, file.bytes, file.n_bytes, &info, NULL);

                        ck_assert_int_eq(r, i == 4 ? -ENOTSUP : 0);
                        ck_assert(i == 4 ? info.width == 77 : info.width < 77);
                        free(file.bytes);
                        decoder_close(decoder);
                }
        decoder_free(decoder);
        decoder_free(NULL);
}
END_TEST

START_TEST(scratch_is_kept_and_a_giants_is_given_back) {
        struct decoder *decoder = new_decoder(DECODE_LIMITS_DEFAULT);
        struct file file = read_file("really_gif.jpg"), small = read_file("lossy.webp");
        const size_t frame = 13 + 64 * 3; /* header and palette */
        struct image_info info;
        struct view view;
        size_t n_bytes;

        /* The size is in the header alone. An interlaced frame is kept whole, a byte a
         * pixel; then its data end early. */
        ck_assert_int_eq(file.bytes[frame], 0x2c);
        memcpy(file.bytes + 6, "\x28\x23\x28\x23", 4);             /* 9,000 x 9,000 */
        memcpy(file.bytes + frame + 5, "\x28\x23\x28\x23\x40", 5); /* interlaced */
        ck_assert_int_eq(decoder_open(decoder, file.bytes, file.n_bytes, &info, NULL), 0);
        ck_assert_uint_eq(info.height, 9000);
        ck_assert_int_eq(decoder_read(decoder, &(struct box){ 0, 0, 9, 9 }, &view, NULL), -EBADMSG);
        ck_assert_uint_ge(decoder_scratch_bytes(decoder), 9000u * 9000);

        ck_assert_int_eq(decoder_open(decoder, small.bytes, small.n_bytes, &info, NULL), 0);
        ck_assert_uint_lt(decoder_scratch_bytes(decoder), SMALL);
        ck_assert_int_eq(decoder_read(decoder, &(struct box){ 1, 1, 3, 1 }, &view, NULL), 0);
        n_bytes = decoder_scratch_bytes(decoder);
        ck_assert_uint_ge(n_bytes, 3 * 3);
        decoder_close(decoder);
        ck_assert_uint_eq(decoder_scratch_bytes(decoder), n_bytes);
        decoder_free(decoder);
        free(file.bytes);
        free(small.bytes);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("decode");
        TCase *tcase = tcase_create("decode");
        SRunner *runner;
        int n_failed;

        tcase_set_timeout(tcase, 60);
        tcase_add_test(tcase, pixels_are_pillows_to_the_bit);
        tcase_add_test(tcase, what_cannot_be_read_is_refused_with_its_reason);
        tcase_add_test(tcase, a_file_that_was_cut_is_refused_where_pillow_refuses_it);
        tcase_add_test(tcase, damage_anywhere_never_crashes);
        tcase_add_test(tcase, limits_are_refused_with_both_numbers_before_memory_is_reserved);
        tcase_add_test(tcase, a_picture_may_be_opened_and_not_read);
        tcase_add_test(tcase, scratch_is_kept_and_a_giants_is_given_back);
        suite_add_tcase(suite, tcase);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
