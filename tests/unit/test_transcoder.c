/* unit/test_transcoder.c: JPEGs transcoded without loss: the same pixels, in rows that the file's own offsets find; and
 * all other files stay as they are, with the reason. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/little_endian.h"
#include "daemon/decode/exif.h"
#include "daemon/decode/jpeg/baseline.h"
#include "daemon/staging/prepare/transcoder.h"
#include "proto/base/cleanup.h"
#include "proto/jpeg/row_index.h"
#include "tests/support/jpegs.h"
#include "tests/support/suite.h"

#define MAX_PIXELS (1u << 20)

/* ---- a file and what becomes of it --------------------------------------------------------------------------- */

struct file {
        uint8_t *bytes;
        size_t n_bytes;
};

static void file_free(struct file *file) {
        free(file->bytes);
        *file = (struct file){};
}

static bool never(void *userdata) {
        (void)userdata;
        return false;
}

static bool always(void *userdata) {
        (void)userdata;
        return true;
}

/* The result lies in memory that ends with its last byte. */
static int transcode(struct transcoder *transcoder, const struct file *source, struct file *ret_file, struct why *why) {
        struct block block = {};
        uint64_t need = 0;
        size_t n_bytes;
        int r = transcoder_open(transcoder, source->bytes, source->n_bytes, &need, why);

        if (r == 0)
                r = transcoder_make(transcoder, never, NULL, &block, &n_bytes, why);
        if (r != 0)
                return r;
        ck_assert_uint_le(n_bytes, need);
        *ret_file = (struct file){ malloc(n_bytes), n_bytes };
        memcpy(ret_file->bytes, block.bytes, n_bytes);
        block_free(&block);
        return 0;
}

static bool has_same_pixels(const struct file *a, const struct file *b) {
        struct jpegs_verdict x = jpegs_decode(a->bytes, a->n_bytes, MAX_PIXELS);
        struct jpegs_verdict y = jpegs_decode(b->bytes, b->n_bytes, MAX_PIXELS);
        bool is_same = !x.has_failed && !y.has_failed && x.n_warnings == 0 && y.n_warnings == 0 && x.width == y.width &&
                       x.height == y.height && memcmp(x.rgb, y.rgb, (size_t)x.width * x.height * 3) == 0;

        free(x.rgb);
        free(y.rgb);
        return is_same;
}

/* A marker's segment, from the n-th on; NULL: there is none before the scan. */
static const uint8_t *find_segment(const struct file *file, uint8_t marker, unsigned n) {
        size_t at = 2;

        while (at + 4 <= file->n_bytes && file->bytes[at] == 0xff) {
                if (file->bytes[at + 1] == marker && n-- == 0)
                        return file->bytes + at;
                if (file->bytes[at + 1] == 0xda)
                        return NULL;
                at += 2 + (file->bytes[at + 2] << 8 | file->bytes[at + 3]);
        }
        return NULL;
}

static size_t length_of(const uint8_t *segment) {
        return 2 + (size_t)(segment[2] << 8 | segment[3]);
}

/* The offsets are those of the markers, whose numbers follow each other, and no other marker is between them. */
static void check_offsets(const struct file *file, uint32_t n_rows) {
        const uint8_t *segment = find_segment(file, 0xef, 0), *sos = find_segment(file, 0xda, 0), *scan, *content;
        uint32_t n_markers = 0;

        ck_assert(segment && sos);
        content = segment + 4;
        scan = sos + length_of(sos);
        ck_assert_str_eq((const char *)content, DLP_JPEG_ROWS_MAGIC);
        ck_assert_uint_eq(le32(content + DLP_JPEG_ROWS_AT_VERSION), DLP_JPEG_ROWS_VERSION);
        ck_assert_uint_eq(le32(content + DLP_JPEG_ROWS_AT_COUNT), n_rows);
        ck_assert_uint_eq(length_of(segment), 4 + DLP_JPEG_ROWS_BYTES(n_rows));
        content += DLP_JPEG_ROWS_AT_OFFSETS;
        ck_assert_uint_eq(le32(content), 0);
        for (uint32_t i = 1; i <= n_rows; i++) {
                const uint8_t *end = scan + le32(content + 4 * i);

                ck_assert(end - 2 >= scan + le32(content + 4 * (i - 1)) && end <= file->bytes + file->n_bytes);
                ck_assert_uint_eq(end[-2], 0xff);
                ck_assert_uint_eq(end[-1], i == n_rows ? 0xd9 : 0xd0 + (i - 1) % 8);
        }
        ck_assert(scan + le32(content + 4 * n_rows) == file->bytes + file->n_bytes);
        for (const uint8_t *at = scan; at + 1 < file->bytes + file->n_bytes; at++)
                n_markers += at[0] == 0xff && at[1] != 0;
        ck_assert_uint_eq(n_markers, n_rows);
}

/* Our own decoder takes it, and so does a GPU: at most two tables of each kind, all in front of the scan. */
static void check_form(const struct file *file, uint32_t n_mcus_a_row, bool is_narrow) {
        const uint8_t *restarts = find_segment(file, 0xdd, 0), *codes;
        struct baseline *baseline;
        uint32_t width, height;
        unsigned seen = 0;

        ck_assert(restarts && !find_segment(file, 0xdd, 1));
        ck_assert_uint_eq(restarts[4] << 8 | restarts[5], n_mcus_a_row);
        for (unsigned i = 0; (codes = find_segment(file, 0xc4, i)); i++) {
                ck_assert_uint_le(codes[4] & 15, 1);
                seen |= 1u << (2 * (codes[4] >> 4) + (codes[4] & 1));
        }
        ck_assert(seen == 5 || seen == 15); /* grey has one of each kind */
        ck_assert_int_eq(baseline_new(BASELINE_CODE_BEST, &baseline), 0);
        if (baseline_open(baseline, file->bytes, file->n_bytes, &width, &height) != 0)
                ck_assert(is_narrow); /* upsampled in another way, which it leaves to libjpeg */
        baseline_free(baseline);
}

static const struct { int h, v; } SAMPLINGS[] = { { 0, 0 }, { 1, 1 }, { 2, 1 }, { 2, 2 }, { 1, 2 } };

/* ---- what is taken ------------------------------------------------------------------------------------------- */

/* All of a spec's picture. */
static void check_spec(struct transcoder *transcoder, const struct jpegs_spec *spec, enum jpegs_kind kind) {
        uint32_t mcu_width = spec->h == 2 ? 16 : 8, mcu_height = spec->v == 2 ? 16 : 8;
        struct file source, made = {}, again = {};
        struct why why = {};

        source.bytes = kind == N_JPEGS_KINDS ? jpegs_make(spec, &source.n_bytes)
                                             : jpegs_make_other(spec, kind, &source.n_bytes);
        ck_assert_msg(transcode(transcoder, &source, &made, &why) == 0, "%u x %u, %d x %d, kind %d: %s", spec->width,
                      spec->height, spec->h, spec->v, (int)kind, why.text);
        ck_assert_msg(has_same_pixels(&source, &made), "%u x %u, %d x %d, kind %d: other pixels", spec->width,
                      spec->height, spec->h, spec->v, (int)kind);
        check_offsets(&made, (spec->height + mcu_height - 1) / mcu_height);
        check_form(&made, (spec->width + mcu_width - 1) / mcu_width, spec->width < 5);
        ck_assert_int_eq(transcode(transcoder, &made, &again, &why), 0);
        ck_assert_uint_eq(again.n_bytes, made.n_bytes);
        ck_assert(memcmp(again.bytes, made.bytes, made.n_bytes) == 0);
        file_free(&again);
        file_free(&made);
        file_free(&source);
}

START_TEST(pixels_are_the_same_whatever_the_size_and_the_sampling) {
        static const uint32_t SIDES[] = { 1, 2, 7, 8, 9, 15, 16, 17, 33, 130 };
        struct transcoder *transcoder;
        uint64_t seed = 1;

        ck_assert_int_eq(transcoder_new(&transcoder), 0);
        for (size_t s = 0; s < ARRAY_SIZE(SAMPLINGS); s++)
                for (size_t x = 0; x < ARRAY_SIZE(SIDES); x++)
                        for (size_t y = 0; y < ARRAY_SIZE(SIDES); y++, seed++) {
                                struct jpegs_spec spec = {
                                        .width = SIDES[x],
                                        .height = SIDES[y],
                                        .quality = 30 + (int)(seed % 71),
                                        .h = SAMPLINGS[s].h,
                                        .v = SAMPLINGS[s].v,
                                        .content = (enum jpegs_content)(seed % N_JPEGS_CONTENTS),
                                        .seed = seed,
                                };

                                check_spec(transcoder, &spec, N_JPEGS_KINDS);
                        }
        transcoder_free(transcoder);
}
END_TEST

START_TEST(pixels_are_the_same_however_the_source_was_coded) {
        static const enum jpegs_kind KINDS[] = { N_JPEGS_KINDS, JPEGS_PROGRESSIVE, JPEGS_SCANS };
        static const enum jpegs_codes CODES[] = { JPEGS_STANDARD, JPEGS_OPTIMISED, JPEGS_STRANGE };
        static const uint32_t RESTARTS[] = { 0, 1, 3, 65535 };
        struct transcoder *transcoder;
        uint64_t seed = 1000;

        ck_assert_int_eq(transcoder_new(&transcoder), 0);
        for (size_t s = 0; s < ARRAY_SIZE(SAMPLINGS); s++)
                for (size_t k = 0; k < ARRAY_SIZE(KINDS); k++)
                        for (size_t c = 0; c < ARRAY_SIZE(CODES); c++, seed++) {
                                struct jpegs_spec spec = {
                                        .width = 77,
                                        .height = 101,
                                        .quality = seed % 2 ? 92 : 100,
                                        .h = SAMPLINGS[s].h,
                                        .v = SAMPLINGS[s].v,
                                        .restart = RESTARTS[seed % ARRAY_SIZE(RESTARTS)],
                                        .content = (enum jpegs_content)(seed % N_JPEGS_CONTENTS),
                                        .codes = KINDS[k] == JPEGS_PROGRESSIVE ? JPEGS_OPTIMISED : CODES[c],
                                        .seed = seed,
                                };

                                if (KINDS[k] == JPEGS_SCANS && SAMPLINGS[s].h == 0)
                                        continue; /* grey has one component */
                                check_spec(transcoder, &spec, KINDS[k]);
                        }
        transcoder_free(transcoder);
}
END_TEST

/* Some cameras say 2 x 2 of their only component, which means nothing, but our own decoder does not take it. */
START_TEST(grey_with_needless_factors_is_taken_and_loses_them) {
        struct jpegs_spec spec = { .width = 61, .height = 45, .quality = 90, .content = JPEGS_PHOTO, .seed = 3 };
        struct file source, made = {};
        struct transcoder *transcoder;
        struct why why = {};
        const uint8_t *frame;

        source.bytes = jpegs_make(&spec, &source.n_bytes);
        frame = find_segment(&source, 0xc0, 0);
        ck_assert_ptr_nonnull(frame);
        source.bytes[frame - source.bytes + 11] = 0x22;
        ck_assert_int_eq(transcoder_new(&transcoder), 0);
        ck_assert_msg(transcode(transcoder, &source, &made, &why) == 0, "%s", why.text);
        ck_assert(has_same_pixels(&source, &made));
        check_offsets(&made, 6);
        check_form(&made, 8, false);
        file_free(&made);
        file_free(&source);
        transcoder_free(transcoder);
}
END_TEST

/* ---- metadata ------------------------------------------------------------------------------------------------ */

static const char EXIF[] = "Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x06\0\0\0\0\0\0\0";

/* Puts segments after SOI. */
static struct file with_segments(const struct file *file, const uint8_t *segments, size_t n) {
        struct file longer = { malloc(file->n_bytes + n), file->n_bytes + n };

        memcpy(longer.bytes, file->bytes, 2);
        memcpy(longer.bytes + 2, segments, n);
        memcpy(longer.bytes + 2 + n, file->bytes + 2, file->n_bytes - 2);
        return longer;
}

static size_t add_segment(uint8_t *at, uint8_t marker, const void *content, size_t n) {
        at[0] = 0xff;
        at[1] = marker;
        at[2] = (uint8_t)((n + 2) >> 8);
        at[3] = (uint8_t)(n + 2);
        memcpy(at + 4, content, n);
        return n + 4;
}

START_TEST(what_says_how_a_picture_is_shown_stays_and_other_metadata_go) {
        struct jpegs_spec spec = { .width = 40, .height = 30, .quality = 90, .h = 2, .v = 2, .seed = 4 };
        struct file plain, source, made = {};
        struct transcoder *transcoder;
        uint8_t segments[512];
        struct why why = {};
        size_t n = 0;

        n += add_segment(segments + n, 0xe1, "http://ns.adobe.com/xap/1.0/", 29);
        n += add_segment(segments + n, 0xe1, EXIF, sizeof(EXIF));
        n += add_segment(segments + n, 0xe1, "Exif\0\0 the second", 17);
        n += add_segment(segments + n, 0xe2, "ICC_PROFILE\0\x01\x01 colours", 22);
        n += add_segment(segments + n, 0xe2, "MPF\0 offsets", 12);
        n += add_segment(segments + n, 0xee, "Adobe\0\x64\0\0\0\0\x01", 12);
        n += add_segment(segments + n, 0xef, "dlprows\0 an old one", 19);
        n += add_segment(segments + n, 0xfe, "a comment", 9);
        plain.bytes = jpegs_make(&spec, &plain.n_bytes);
        source = with_segments(&plain, segments, n);
        ck_assert_int_eq(transcoder_new(&transcoder), 0);
        ck_assert_msg(transcode(transcoder, &source, &made, &why) == 0, "%s", why.text);

        ck_assert(has_same_pixels(&source, &made));
        check_offsets(&made, 2);
        ck_assert_uint_eq(exif_orientation(made.bytes, made.n_bytes), 6);
        ck_assert(memcmp(find_segment(&made, 0xe1, 0) + 4, EXIF, sizeof(EXIF)) == 0);
        ck_assert(memcmp(find_segment(&made, 0xe2, 0) + 4, "ICC_PROFILE\0\x01\x01 colours", 22) == 0);
        ck_assert(memcmp(find_segment(&made, 0xee, 0) + 4, "Adobe\0\x64\0\0\0\0\x01", 12) == 0);
        ck_assert(!find_segment(&made, 0xe1, 1) && !find_segment(&made, 0xe2, 1) && !find_segment(&made, 0xee, 1) &&
                  !find_segment(&made, 0xef, 1) && !find_segment(&made, 0xfe, 0));
        file_free(&made);
        file_free(&source);
        file_free(&plain);
        transcoder_free(transcoder);
}
END_TEST

/* ---- what stays as it is ------------------------------------------------------------------------------------- */

static void check_refusal(struct transcoder *transcoder, const struct file *source, const char *says) {
        struct file made = {};
        struct why why = {};

        ck_assert_int_eq(transcode(transcoder, source, &made, &why), TRANSCODER_CANNOT);
        ck_assert_msg(strstr(why.text, "cannot be transcoded: ") == why.text && strstr(why.text, says), "%s", why.text);
}

START_TEST(other_files_are_not_taken_and_the_reason_is_said) {
        static const struct {
                enum jpegs_kind kind;
                const char *says;
        } ROWS[] = {
                { JPEGS_ARITHMETIC, "arithmetic" },
                { JPEGS_CMYK, "4 components that are neither grey nor YCbCr" },
                { JPEGS_RGB, "3 components that are neither grey nor YCbCr" },
                { JPEGS_CHROMA_FACTORS, "unusual sampling factors" },
                { JPEGS_LUMA_411, "unusual sampling factors" },
        };
        static uint8_t PNG[] = "\x89PNG\r\n\x1a\n....";
        struct jpegs_spec spec = { .width = 50, .height = 40, .quality = 90, .h = 2, .v = 1, .seed = 4 };
        struct file source = { PNG, sizeof(PNG) };
        struct transcoder *transcoder;

        ck_assert_int_eq(transcoder_new(&transcoder), 0);
        check_refusal(transcoder, &source, "not a JPEG");
        source.n_bytes = 0;
        check_refusal(transcoder, &source, "not a JPEG");
        for (size_t i = 0; i < ARRAY_SIZE(ROWS); i++) {
                source.bytes = jpegs_make_other(&spec, ROWS[i].kind, &source.n_bytes);
                check_refusal(transcoder, &source, ROWS[i].says);
                file_free(&source);
        }
        source.bytes = jpegs_make(&spec, &source.n_bytes);
        source.bytes[find_segment(&source, 0xc0, 0) - source.bytes + 4] = 12;
        check_refusal(transcoder, &source, "precision");
        file_free(&source);
        transcoder_free(transcoder);
}
END_TEST

/* Where coefficients are missing libjpeg smooths; a file that has all of them is not smoothed. */
START_TEST(a_progressive_file_without_its_last_scans_is_not_taken) {
        struct jpegs_spec spec = { .width = 60, .height = 60, .quality = 90, .h = 2, .v = 2, .seed = 4 };
        struct transcoder *transcoder;
        struct file source;
        size_t last = 0;

        source.bytes = jpegs_make_other(&spec, JPEGS_PROGRESSIVE, &source.n_bytes);
        for (size_t at = 2; at + 1 < source.n_bytes; at++)
                if (source.bytes[at] == 0xff && source.bytes[at + 1] == 0xda)
                        last = at;
        source.bytes[last + 1] = 0xd9;
        source.n_bytes = last + 2;
        ck_assert_int_eq(transcoder_new(&transcoder), 0);
        check_refusal(transcoder, &source, "lacks coefficients");
        file_free(&source);
        transcoder_free(transcoder);
}
END_TEST

/* Whatever it takes, it takes rightly. */
static void check_damaged(struct transcoder *transcoder, const uint8_t *bytes, size_t n_bytes, unsigned *n_taken) {
        struct file exact = { malloc(n_bytes), n_bytes }, made = {};
        struct why why = {};
        int r;

        memcpy(exact.bytes, bytes, n_bytes);
        r = transcode(transcoder, &exact, &made, &why);
        if (r == 0) {
                ck_assert(has_same_pixels(&exact, &made));
                ++*n_taken;
        } else {
                ck_assert_int_eq(r, TRANSCODER_CANNOT);
                ck_assert_uint_gt(strlen(why.text), 0);
        }
        file_free(&made);
        file_free(&exact);
}

START_TEST(a_file_that_was_cut_anywhere_stays_as_it_is) {
        struct jpegs_spec spec = { .width = 40, .height = 33, .quality = 60, .h = 2, .v = 2, .seed = 9 };
        struct transcoder *transcoder;
        unsigned n_taken = 0;

        ck_assert_int_eq(transcoder_new(&transcoder), 0);
        for (unsigned progressive = 0; progressive < 2; progressive++) {
                struct file source;

                source.bytes = jpegs_make_other(&spec, progressive ? JPEGS_PROGRESSIVE : N_JPEGS_KINDS,
                                                &source.n_bytes);
                for (size_t n = 0; n < source.n_bytes; n++)
                        check_damaged(transcoder, source.bytes, n, &n_taken);
                file_free(&source);
        }
        ck_assert_uint_eq(n_taken, 0);
        transcoder_free(transcoder);
}
END_TEST

START_TEST(a_damaged_file_is_left_or_has_the_same_pixels) {
        static const enum jpegs_kind KINDS[] = { N_JPEGS_KINDS, JPEGS_PROGRESSIVE, JPEGS_SCANS };
        struct jpegs_spec spec = { .width = 40, .height = 33, .quality = 60, .restart = 2, .content = JPEGS_PHOTO };
        struct transcoder *transcoder;
        uint64_t random = 77;
        unsigned n_taken = 0;

        ck_assert_int_eq(transcoder_new(&transcoder), 0);
        for (unsigned i = 0; i < 3000; i++) {
                struct file source;

                spec.h = 1 + (int)(i % 2);
                spec.v = 1 + (int)(i / 2 % 2);
                spec.seed = i;
                source.bytes = jpegs_make_other(&spec, KINDS[i % ARRAY_SIZE(KINDS)], &source.n_bytes);
                for (uint32_t n = 1 + jpegs_random(&random, 3); n > 0; n--)
                        source.bytes[jpegs_random(&random, (uint32_t)source.n_bytes)] = (uint8_t)jpegs_random(&random,
                                                                                                              256);
                check_damaged(transcoder, source.bytes, source.n_bytes, &n_taken);
                file_free(&source);
        }
        ck_assert_uint_gt(n_taken, 100); /* damage that no decoder notices: then there are other coefficients */
        ck_assert_uint_lt(n_taken, 2900);
        transcoder_free(transcoder);
}
END_TEST

START_TEST(it_ends_when_nobody_wants_it_any_more_and_is_ready_for_the_next) {
        struct jpegs_spec spec = { .width = 40, .height = 33, .quality = 60, .h = 2, .v = 2, .seed = 9 };
        struct file source, made = {};
        struct transcoder *transcoder;
        struct block block = {};
        uint64_t need;
        size_t n_bytes;

        ck_assert_int_eq(transcoder_new(&transcoder), 0);
        source.bytes = jpegs_make(&spec, &source.n_bytes);
        ck_assert_int_eq(transcoder_open(transcoder, source.bytes, source.n_bytes, &need, NULL), 0);
        ck_assert_int_eq(transcoder_make(transcoder, always, NULL, &block, &n_bytes, NULL), -ECANCELED);
        ck_assert_ptr_null(block.bytes);
        ck_assert_int_eq(transcode(transcoder, &source, &made, NULL), 0);
        ck_assert(has_same_pixels(&source, &made));
        file_free(&made);
        ck_assert_int_eq(transcoder_open(transcoder, source.bytes, source.n_bytes, &need, NULL), 0);
        transcoder_forget(transcoder);
        file_free(&source);
        transcoder_free(transcoder);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "taken", pixels_are_the_same_whatever_the_size_and_the_sampling, 0 },
                { "taken", pixels_are_the_same_however_the_source_was_coded, 0 },
                { "taken", grey_with_needless_factors_is_taken_and_loses_them, 0 },
                { "taken", what_says_how_a_picture_is_shown_stays_and_other_metadata_go, 0 },
                { "left", other_files_are_not_taken_and_the_reason_is_said, 0 },
                { "left", a_progressive_file_without_its_last_scans_is_not_taken, 0 },
                { "left", a_file_that_was_cut_anywhere_stays_as_it_is, 0 },
                { "left", a_damaged_file_is_left_or_has_the_same_pixels, 0 },
                { "left", it_ends_when_nobody_wants_it_any_more_and_is_ready_for_the_next, 0 },
        };

        return suite_run("transcoder", rows, ARRAY_SIZE(rows));
}
