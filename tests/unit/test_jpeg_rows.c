/* unit/test_jpeg_rows.c: JPEGs in rows are read right, and whatever is damaged or different is refused: who decodes by
 * what was read never leaves the picture or the file. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/staging/prepare/transcoder.h"
#include "proto/base/cleanup.h"
#include "proto/jpeg/jpeg_rows.h"
#include "tests/support/jpeg_codes.h"
#include "tests/support/jpegs.h"
#include "tests/support/suite.h"

/* ---- codes --------------------------------------------------------------------------------------------------- */

struct definition {
        uint8_t bytes[DLP_JPEG_CODE_MAX + 256];
        size_t n;
};

/* Valid: never more codes of a length than are free. Long codes are frequent. */
static struct definition random_definition(uint64_t *random, bool is_ac) {
        struct definition definition = { .n = DLP_JPEG_CODE_MAX };
        uint32_t n_free = 1, n_most = is_ac ? 162 : 12, n_symbols = 0;

        for (uint32_t length = 1; length <= DLP_JPEG_CODE_MAX; length++) {
                uint32_t n;

                n_free *= 2;
                n = jpegs_random(random, n_free / (length < 10 ? 4 : 1) + 1);
                if (n > n_most - n_symbols)
                        n = n_most - n_symbols;
                if (length == DLP_JPEG_CODE_MAX && n_symbols == 0 && n == 0)
                        n = 1;
                definition.bytes[length - 1] = (uint8_t)n;
                n_free -= n;
                n_symbols += n;
        }
        for (uint32_t i = 0; i < n_symbols; i++) {
                uint32_t run = jpegs_random(random, 16), size = jpegs_random(random, 11);

                if (is_ac && size == 0)
                        run = run % 2 ? 15 : 0;
                definition.bytes[definition.n++] = (uint8_t)(is_ac ? run << 4 | size : jpegs_random(random, 12));
        }
        return definition;
}

/* Bit by bit, as the standard has it. */
static int look_slowly(const struct definition *definition, uint32_t bits, uint32_t *ret_n_bits) {
        uint32_t code = 0, first = 0, at = 0;

        for (uint32_t length = 1; length <= DLP_JPEG_CODE_MAX; length++) {
                uint32_t n = definition->bytes[length - 1];

                code = bits >> (DLP_JPEG_CODE_MAX - length);
                if (code < first + n) {
                        *ret_n_bits = length;
                        return definition->bytes[DLP_JPEG_CODE_MAX + at + (code - first)];
                }
                at += n;
                first = (first + n) * 2;
        }
        return -1;
}

START_TEST(every_string_of_bits_begins_with_the_code_that_the_standard_finds) {
        uint64_t random = 5;

        for (unsigned i = 0; i < 60; i++) {
                struct definition definition = random_definition(&random, i % 2);
                struct dlp_jpeg_codes codes;

                ck_assert(dlp_jpeg_codes_read(definition.bytes, definition.n, i % 2, &codes));
                for (uint32_t bits = 0; bits < 65536; bits++) {
                        uint32_t n = 0, n_expected = 0;
                        int expected = look_slowly(&definition, bits, &n_expected);

                        ck_assert_int_eq(jpeg_codes_look(&codes, bits, &n), expected);
                        ck_assert_uint_eq(n, n_expected);
                }
        }
}
END_TEST

START_TEST(codes_that_no_baseline_file_has_are_refused) {
        static const struct definition GOOD = { { 0, 2, [16] = 0, 1 }, 18 };
        static const struct {
                struct definition definition;
                bool is_ac;
        } ROWS[] = {
                { { { 3, [16] = 0, 1, 2 }, 19 }, false },       /* three codes of one bit */
                { { { 1, 3, [16] = 0, 1, 2, 3 }, 20 }, false }, /* one too many of two bits */
                { { { 0, 2, [16] = 0, 1 }, 17 }, false },       /* fewer symbols than codes */
                { { { 0, 2, [16] = 0, 1, 2 }, 19 }, false },    /* more */
                { { { 0 }, 16 }, false },                       /* none */
                { { { 0, 2, [16] = 0, 12 }, 18 }, false },      /* a difference of 12 bits */
                { { { 0, 2, [16] = 0, 0x0b }, 18 }, true },     /* a coefficient of 11 bits */
                { { { 0, 2, [16] = 0, 0x10 }, 18 }, true },     /* two zeros and no coefficient */
        };
        struct dlp_jpeg_codes codes;

        ck_assert(dlp_jpeg_codes_read(GOOD.bytes, GOOD.n, false, &codes));
        ck_assert(dlp_jpeg_codes_read(GOOD.bytes, GOOD.n, true, &codes));
        for (size_t i = 0; i < ARRAY_SIZE(ROWS); i++)
                ck_assert_msg(
                        !dlp_jpeg_codes_read(ROWS[i].definition.bytes, ROWS[i].definition.n, ROWS[i].is_ac, &codes),
                        "row %zu", i);
}
END_TEST

/* ---- files --------------------------------------------------------------------------------------------------- */

static bool never(void *userdata) {
        (void)userdata;
        return false;
}

/* A JPEG in rows, in memory that ends with its last byte; the caller frees it. */
static uint8_t *make_rows(const struct jpegs_spec *spec, size_t *ret_n_bytes) {
        struct transcoder *transcoder;
        struct block block = {};
        uint8_t *source, *exact;
        size_t n_source;
        uint64_t need;

        source = jpegs_make(spec, &n_source);
        ck_assert_int_eq(transcoder_new(&transcoder), 0);
        ck_assert_int_eq(transcoder_open(transcoder, source, n_source, &need, NULL), 0);
        ck_assert_int_eq(transcoder_make(transcoder, never, NULL, &block, ret_n_bytes, NULL), 0);
        exact = malloc(*ret_n_bytes);
        memcpy(exact, block.bytes, *ret_n_bytes);
        block_free(&block);
        transcoder_free(transcoder);
        free(source);
        return exact;
}

static const struct jpegs_spec SPEC = {
        .width = 77, .height = 101, .quality = 80, .h = 2, .v = 2, .content = JPEGS_PHOTO, .seed = 8
};

START_TEST(sizes_steps_and_rows_are_those_of_the_file) {
        static const struct {
                int h, v;
                uint32_t n_mcus_x, n_rows;
        } ROWS[] = { { 0, 0, 10, 13 }, { 1, 1, 10, 13 }, { 2, 1, 5, 13 }, { 2, 2, 5, 7 }, { 1, 2, 10, 7 } };

        for (size_t i = 0; i < ARRAY_SIZE(ROWS); i++) {
                struct jpegs_spec spec = SPEC;
                struct dlp_jpeg jpeg;
                size_t n_bytes;
                uint8_t *bytes;

                spec.h = ROWS[i].h;
                spec.v = ROWS[i].v;
                bytes = make_rows(&spec, &n_bytes);
                ck_assert_int_eq(dlp_jpeg_read(bytes, n_bytes, &jpeg, NULL), 0);
                ck_assert_uint_eq(jpeg.width, 77);
                ck_assert_uint_eq(jpeg.height, 101);
                ck_assert_uint_eq(jpeg.n_components, spec.h ? 3 : 1);
                ck_assert_uint_eq(jpeg.h, spec.h ? (uint32_t)spec.h : 1);
                ck_assert_uint_eq(jpeg.v, spec.v ? (uint32_t)spec.v : 1);
                ck_assert_uint_eq(jpeg.n_mcus_x, ROWS[i].n_mcus_x);
                ck_assert_uint_eq(jpeg.n_rows, ROWS[i].n_rows);
                ck_assert_uint_eq(jpeg.components[0].n_blocks_x, jpeg.n_mcus_x * jpeg.h);
                ck_assert_uint_eq(jpeg.components[0].n_blocks_y, jpeg.n_rows * jpeg.v);
                ck_assert_uint_eq(jpeg.scan_at + dlp_jpeg_offset(&jpeg, jpeg.n_rows), n_bytes);
                /* Annex K's steps at quality 80 are 0.4 of 16, 11, 10 (the first row) and 12 (the second). */
                ck_assert_uint_eq(jpeg.components[0].steps[0], 6);
                ck_assert_uint_eq(jpeg.components[0].steps[1], 4);
                ck_assert_uint_eq(jpeg.components[0].steps[2], 4);
                ck_assert_uint_eq(jpeg.components[0].steps[8], 5);
                ck_assert_uint_eq(jpeg.components[0].steps[63], 40);
                free(bytes);
        }
}
END_TEST

static void check_refused(const uint8_t *bytes, size_t n_bytes, const char *says) {
        struct dlp_jpeg jpeg;
        struct why why = {};

        ck_assert_int_eq(dlp_jpeg_read(bytes, n_bytes, &jpeg, &why), -EBADMSG);
        ck_assert_msg(strstr(why.text, says), "%s; expected %s", why.text, says);
}

/* The content of the n-th segment with this marker. */
static uint8_t *find(uint8_t *bytes, uint8_t marker) {
        size_t at = 2;

        while (bytes[at + 1] != marker) {
                ck_assert_uint_ne(bytes[at + 1], 0xda);
                at += 2 + (bytes[at + 2] << 8 | bytes[at + 3]);
        }
        return bytes + at + 4;
}

START_TEST(a_file_that_differs_in_one_thing_is_refused_with_what_it_is) {
        static const struct {
                uint8_t marker;
                unsigned at;
                uint8_t value;
                const char *says;
        } ROWS[] = {
                { 0xe0, 0, 'K', "JFIF" },
                { 0xef, 0, 'x', "no offsets" },
                { 0xef, 8, 2, "unknown version" },
                { 0xef, 12, 8, "another number of rows" },
                { 0xef, 16, 1, "do not begin" },
                { 0xef, 21, 0xff, "not those of the markers" },
                { 0xc0, 0, 12, "other than 8 bits" },
                { 0xc0, 2, 0, "no pixel" },
                { 0xc0, 2, 90, "offsets of other rows" },
                { 0xc0, 4, 97, "offsets of other rows" },
                { 0xc0, 5, 4, "one or three components" },
                { 0xc0, 7, 0x41, "sampling" },
                { 0xc0, 10, 0x21, "sampling" },
                { 0xc0, 8, 3, "steps of quantisation are missing" },
                { 0xdb, 0, 0x24, "quantisation" },
                { 0xc4, 0, 0x02, "two of each kind" },
                { 0xc4, 1, 9, "none of a baseline file" },
                { 0xdd, 1, 6, "offsets of other rows" },
                { 0xda, 0, 1, "not of all components" },
                { 0xda, 1, 9, "codes are missing" },
                { 0xda, 2, 0x20, "codes are missing" },
                { 0xda, 8, 62, "some coefficients" },
        };
        size_t n_bytes;
        uint8_t *bytes = make_rows(&SPEC, &n_bytes), *marker;
        struct dlp_jpeg jpeg;

        for (size_t i = 0; i < ARRAY_SIZE(ROWS); i++) {
                uint8_t *at = find(bytes, ROWS[i].marker) + ROWS[i].at, before = *at;

                *at = ROWS[i].value;
                check_refused(bytes, n_bytes, ROWS[i].says);
                *at = before;
        }
        ck_assert_int_eq(dlp_jpeg_read(bytes, n_bytes, &jpeg, NULL), 0);
        marker = bytes + jpeg.scan_at + dlp_jpeg_offset(&jpeg, 3) - 1;
        *marker ^= 1;
        check_refused(bytes, n_bytes, "not those of the markers");
        *marker ^= 1;
        find(bytes, 0xc0)[-3] = 0xc2;
        check_refused(bytes, n_bytes, "not a baseline file");
        free(bytes);

        bytes = jpegs_make(&SPEC, &n_bytes);
        check_refused(bytes, n_bytes, "no offsets");
        free(bytes);
}
END_TEST

START_TEST(a_file_that_was_cut_anywhere_is_refused) {
        size_t n_bytes;
        uint8_t *bytes = make_rows(&SPEC, &n_bytes);

        for (size_t n = 0; n < n_bytes; n++) {
                uint8_t *exact = malloc(n);

                memcpy(exact, bytes, n);
                check_refused(exact, n, "JPEG in rows");
                free(exact);
        }
        free(bytes);
}
END_TEST

/* Other programs may change what is before the scan. */
START_TEST(offsets_stay_true_when_segments_come_or_go) {
        uint8_t comment[] = { 0xff, 0xfe, 0, 6, 'a', 'b', 'c', 'd' };
        size_t n_bytes;
        uint8_t *bytes = make_rows(&SPEC, &n_bytes), *longer = malloc(n_bytes + sizeof(comment) + 5);
        struct dlp_jpeg jpeg, again;

        memcpy(longer, bytes, 2);
        memcpy(longer + 2, comment, sizeof(comment));
        memcpy(longer + 2 + sizeof(comment), bytes + 2, n_bytes - 2);
        memset(longer + n_bytes + sizeof(comment), 'x', 5); /* and something after the picture */
        ck_assert_int_eq(dlp_jpeg_read(bytes, n_bytes, &jpeg, NULL), 0);
        ck_assert_int_eq(dlp_jpeg_read(longer, n_bytes + sizeof(comment) + 5, &again, NULL), 0);
        ck_assert_uint_eq(again.scan_at, jpeg.scan_at + sizeof(comment));
        ck_assert_uint_eq(dlp_jpeg_offset(&again, 3), dlp_jpeg_offset(&jpeg, 3));
        free(longer);
        free(bytes);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "codes", every_string_of_bits_begins_with_the_code_that_the_standard_finds, 0 },
                { "codes", codes_that_no_baseline_file_has_are_refused, 0 },
                { "files", sizes_steps_and_rows_are_those_of_the_file, 0 },
                { "files", a_file_that_differs_in_one_thing_is_refused_with_what_it_is, 0 },
                { "files", a_file_that_was_cut_anywhere_is_refused, 0 },
                { "files", offsets_stay_true_when_segments_come_or_go, 0 },
        };

        return suite_run("jpeg_rows", rows, ARRAY_SIZE(rows));
}
