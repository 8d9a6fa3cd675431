/* Fields that are not pictures: text, numbers in JSON and other codings, numbers of another dtype. */
#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/codec/codec_choose.h"
#include "daemon/codec/codec_tools.h"
#include "daemon/codec/convert.h"
#include "daemon/tokenize/at_hand.h"
#include "proto/base/cleanup.h"
#include "proto/base/texts.h"
#include "tests/support/suite.h"

static struct codec_tools *tools;

static void begin(void) {
        const struct decode_limits limits = { .max_pixels = 1 << 20, .max_scans = 100 };
        struct why why;

        ck_assert_msg(codec_tools_new(&limits, DECODE_JPEG_AUTO, &tools, &why) == 0, "%s", why.text);
}

static void end(void) {
        codec_tools_free(tools);
}

/* Serves the bytes as this field with these steps. Returns the number of bytes written to `out`, or the error. */
static int64_t serve(const struct schema_field *field, const char *steps, const char *bytes, size_t n_bytes, void *out,
                     struct codec_opened *ret_opened, struct why *why) {
        static struct source source;
        struct codec_input input = { .bytes = (const uint8_t *)bytes, .n_bytes = n_bytes, .source = &source };
        struct codec *codec = NULL;
        int r;

        source.schema = (struct schema){ .n_fields = 1, .fields = { *field } };
        r = codec_new(&source, 0, 0, steps, NULL, &codec, why);
        if (r == 0)
                r = codec_open(codec, tools, &input, ret_opened, why);
        if (r == 0 && !ret_opened->is_absent)
                r = codec_render(codec, tools, &input, out, why);
        if (codec)
                codec_close(tools);
        codec_free(codec);
        return r < 0 ? r : (int64_t)ret_opened->n_bytes;
}

static struct schema_field stored(enum field_kind kind, enum field_coding coding, uint32_t dtype, int64_t rows) {
        return (struct schema_field){ .name = "f",
                                      .kind = kind,
                                      .is_stored = true,
                                      .coding = coding,
                                      .dtype = dtype,
                                      .n_dims = rows != 0,
                                      .shape = { rows } };
}

/* ---- text ------------------------------------------------------------------------------------------------------ */

START_TEST(text_is_what_its_coding_holds) {
        static const struct {
                enum field_coding coding;
                const char *steps, *stored, *text;
        } rows[] = {
                { CODING_PLAIN, NULL, "caf\xc3\xa9", "caf\xc3\xa9" },
                { CODING_PLAIN, NULL, "", "" },
                { CODING_JSON, NULL, "\"a\\n\\u00e9\\\"\"", "a\n\xc3\xa9\"" },
                { CODING_JSON, "text", "\"\"", "" },
                { CODING_JSON, "raw", "\"a\\n\"", "\"a\\n\"" },
                { CODING_CSV, NULL, "\"say \"\"x\"\"\"", "say \"x\"" },
                { CODING_CSV, NULL, "plain", "plain" },
                { CODING_CSV, NULL, "\"\"", "" },
                { CODING_CSV, NULL, "\"\"\"\"", "\"" },
                { CODING_PLAIN, "json(a.b) text", "{\"a\": {\"b\": \"x\\ty\"}}", "x\ty" },
                { CODING_PLAIN, "json(a)", "{\"a\": {\"b\": 1}}", "{\"b\": 1}" },
                { CODING_PLAIN, "json(a[1]) text", "{\"a\": [1, 2.50]}", "2.50" },
        };
        struct codec_opened opened;
        char out[64];
        struct why why;

        begin();
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct schema_field field = stored(FIELD_TEXT, rows[i].coding, 0, 0);
                int64_t n = serve(&field, rows[i].steps, rows[i].stored, strlen(rows[i].stored), out, &opened, &why);

                ck_assert_msg(n == (int64_t)strlen(rows[i].text), "row %zu: %lld: %s", i, (long long)n,
                              n < 0 ? why.text : "");
                ck_assert_mem_eq(out, rows[i].text, strlen(rows[i].text));
        }
        end();
}
END_TEST

START_TEST(text_that_is_not_utf8_is_damaged) {
        static const struct {
                enum field_coding coding;
                const char *steps, *stored, *said;
        } rows[] = {
                { CODING_PLAIN, NULL, "ab\xff", "byte 2 is not UTF-8" },
                { CODING_CSV, NULL, "\xc3", "byte 0 is not UTF-8" },
                { CODING_PLAIN, NULL, "\xed\xa0\x80", "byte 0" }, /* half of a surrogate pair */
                { CODING_JSON, NULL, "\"\\ud800\"", "" },
                { CODING_JSON, NULL, "17", "" },
                { CODING_PLAIN, "json(a) text", "{\"a\": ", "" },
        };
        struct codec_opened opened;
        struct why why;
        char out[64];

        begin();
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct schema_field field = stored(FIELD_TEXT, rows[i].coding, 0, 0);

                ck_assert_int_eq(
                        serve(&field, rows[i].steps, rows[i].stored, strlen(rows[i].stored), out, &opened, &why),
                        -EBADMSG);
                ck_assert_ptr_nonnull(strstr(why.text, rows[i].said));
        }
        end();
}
END_TEST

/* The texts of a list, each with a "|" after it. */
static void join(const char *bytes, uint64_t n_bytes, char *into) {
        struct texts texts;
        uint64_t n;

        ck_assert(texts_open(bytes, n_bytes, &texts));
        for (uint64_t i = 0; i < texts.n; i++) {
                const uint8_t *text = texts_at(&texts, i, &n);

                memcpy(into, text, n);
                into += n;
                *into++ = '|';
        }
        *into = '\0';
}

START_TEST(an_array_of_strings_is_a_list_of_texts) {
        static const char *const rows[][2] = {
                { "[]", "" },
                { " [ ] ", "" },
                { "[\"\"]", "|" },
                { "[\"a\", \"b\\n\\u00e9\",\"\"]", "a|b\n\xc3\xa9||" },
                { "[\"\",\"\",\"\",\"\"]", "||||" },
        };
        struct schema_field field = stored(FIELD_TEXTS, CODING_JSON, 0, 0);
        struct codec_opened opened;
        char out[128], joined[64];
        struct why why;

        begin();
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                int64_t n = serve(&field, NULL, rows[i][0], strlen(rows[i][0]), out, &opened, &why);

                ck_assert_msg(n > 0, "row %zu: %s", i, why.text);
                ck_assert_uint_le((uint64_t)n, 4 * strlen(rows[i][0])); /* the room that the form asks for */
                join(out, (uint64_t)n, joined);
                ck_assert_str_eq(joined, rows[i][1]);
        }
        ck_assert_int_eq(serve(&field, "raw", "[\"a\"]", 5, out, &opened, &why), 5);
        ck_assert_mem_eq(out, "[\"a\"]", 5);
        ck_assert_int_eq(serve(&field, "text", "[\"a\"]", 5, out, &opened, &why), 17);
        end();
}
END_TEST

START_TEST(what_is_not_an_array_of_strings_is_damaged_and_takes_no_steps) {
        static const char *const rows[][2] = {
                { "[\"a\", 1]", "element 1 is not a string" },
                { "[\"a\", null]", "element 1 is not a string" },
                { "[[\"a\"]]", "element 0" },
                { "\"a\"", "not an array" },
                { "[\"a\"", "" },
                { "[\"a\"] x", "" },
                { "[\"a\", \"\\ud800\"]", "element 1: " },
                { "[\"\xff\"]", "" },
                { "", "" },
        };
        struct schema_field field = stored(FIELD_TEXTS, CODING_JSON, 0, 0);
        struct codec_opened opened;
        struct why why;
        char out[128];

        begin();
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                ck_assert_int_eq(serve(&field, NULL, rows[i][0], strlen(rows[i][0]), out, &opened, &why), -EBADMSG);
                ck_assert_msg(strstr(why.text, rows[i][1]) != NULL, "%s", why.text);
        }
        ck_assert_int_eq(serve(&field, "to(int64)", "[]", 2, out, &opened, &why), -EINVAL);
        ck_assert_ptr_nonnull(strstr(why.text, "list of texts: only text and raw apply"));
        ck_assert_int_eq(serve(&field, "decode()", "[]", 2, out, &opened, &why), -EINVAL);
        end();
}
END_TEST

struct list_row {
        enum field_coding coding;
        const char *stored;
        size_t n_stored;
        const char *told; /* the texts, each with a "|" after it; or what the error says */
};

#define LIST(bytes, told)                                                                                              \
        { CODING_LIST, bytes, sizeof(bytes) - 1, told }
#define STEPS(bytes, told)                                                                                             \
        { CODING_STEPS, bytes, sizeof(bytes) - 1, told }

START_TEST(a_message_of_texts_is_a_list_of_texts) {
        static const struct list_row rows[] = {
                LIST("", ""),
                LIST("\n\0", "|"),
                LIST("\n\1a\n\3b\xc3\xa9\n\0", "a|b\xc3\xa9||"),
                LIST("\n\0\n\0\n\0\n\0\n\0", "|||||"),
                LIST("\x10\5\n\1a\x1d\1\2\3\4", "a|"), /* fields of other numbers are passed over */
                STEPS("", ""),
                STEPS("\n\4\n\2\n\0", "|"),
                STEPS("\n\5\n\3\n\1a\n\7\n\5\n\3b\xc3\xa9", "a|b\xc3\xa9|"),
        };
        struct codec_opened opened;
        char out[128], joined[64];
        struct why why;

        begin();
        for (size_t i = 0; i < 2 * ARRAY_SIZE(rows); i++) {
                const struct list_row *row = &rows[i / 2];
                /* The same of bytes, in some of which there is no text. */
                struct schema_field field = stored(i % 2 ? FIELD_BYTES : FIELD_TEXTS, row->coding, 0, 0);
                int64_t n = serve(&field, i % 2 ? "text" : NULL, row->stored, row->n_stored, out, &opened, &why);

                ck_assert_msg(n > 0, "row %zu: %s", i / 2, why.text);
                ck_assert_uint_le((uint64_t)n, 8 + 4 * row->n_stored); /* the room that the form asks for */
                join(out, (uint64_t)n, joined);
                ck_assert_str_eq(joined, row->told);
                ck_assert_int_eq(serve(&field, "raw", row->stored, row->n_stored, out, &opened, &why), row->n_stored);
                ck_assert_mem_eq(out, row->stored, row->n_stored);
        }
        end();
}
END_TEST

START_TEST(a_message_that_does_not_hold_texts_is_damaged) {
        static const struct list_row rows[] = {
                LIST("\n\1a\n\1\xff", "text 1 of its list is not UTF-8"),
                LIST("\n\2a", "its list of texts is damaged"),
                LIST("\n", "damaged"),
                LIST("\x08\1", "damaged"),
                STEPS("\n\0", "a step of its list does not hold one text"),
                STEPS("\n\2\n\0", "does not hold one text"),
                STEPS("\n\7\n\5\n\1a\n\0", "does not hold one text"),
                STEPS("\n\4\x12\2\n\0", "does not hold one text"),
                STEPS("\n\5\n\3\n\2a", "does not hold one text"),
                STEPS("\n\5\n\3\n\1\xff", "text 0 of its list is not UTF-8"),
                STEPS("\n\5\n\3\n\1", "its list of texts is damaged"),
        };
        struct codec_opened opened;
        struct why why;
        char out[128];

        begin();
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct schema_field field = stored(FIELD_TEXTS, rows[i].coding, 0, 0);

                ck_assert_int_eq(serve(&field, NULL, rows[i].stored, rows[i].n_stored, out, &opened, &why), -EBADMSG);
                ck_assert_msg(strstr(why.text, rows[i].told) != NULL, "row %zu: %s", i, why.text);
        }
        end();
}
END_TEST

START_TEST(a_list_of_texts_whose_parts_do_not_fit_is_not_opened) {
        static const struct {
                uint64_t words[4]; /* and 5 bytes of text */
                uint64_t n_words;
                bool is_fine;
        } rows[] = {
                { { 2, 3, 5 }, 3, true },     { { 3, 0, 0, 5 }, 4, true },     { { 2, 3, 4 }, 3, false },
                { { 2, 3, 6 }, 3, false },    { { 2, 6, 5 }, 3, false },       { { 0 }, 1, false },
                { { UINT64_MAX }, 1, false }, { { 3, 1, 2 }, 3, false },       { { 1ull << 61, 0, 5 }, 3, false },
                { { 0 }, 0, false },          { { 1, UINT64_MAX }, 2, false },
        };
        uint8_t bytes[64];
        struct texts texts;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                memcpy(bytes + 1, rows[i].words, 8 * rows[i].n_words); /* not aligned */
                memcpy(bytes + 1 + 8 * rows[i].n_words, "hello", 5);
                ck_assert_msg(texts_open(bytes + 1, 8 * rows[i].n_words + 5, &texts) == rows[i].is_fine, "row %zu", i);
        }
}
END_TEST

START_TEST(a_member_that_is_not_there_is_absent) {
        struct schema_field field = stored(FIELD_BYTES, CODING_PLAIN, 0, 0);
        struct codec_opened opened;
        struct why why;
        char out[8];

        begin();
        serve(&field, "json(b) text", "{\"a\":1}", 7, out, &opened, &why);
        ck_assert(opened.is_absent);
        serve(&field, "json(a) text", "{\"a\":null}", 10, out, &opened, &why);
        ck_assert(opened.is_absent);
        ck_assert_int_eq(serve(&field, "json(b) to(int64)", "{\"a\":1}", 7, out, &opened, &why), -EBADMSG);
        ck_assert_str_eq(why.text, "has no member \"b\"");
        end();
}
END_TEST

/* ---- numbers --------------------------------------------------------------------------------------------------- */

START_TEST(numbers_come_out_of_every_coding) {
        static const uint8_t varints[] = { 1, 0xac, 2, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1 };
        struct schema_field ints = stored(FIELD_VALUE, CODING_JSON, DLP_DTYPE_INT64, -1);
        struct schema_field packed = stored(FIELD_VALUE, CODING_VARINTS, DLP_DTYPE_INT64, -1);
        struct schema_field tokens = stored(FIELD_VALUE, CODING_PLAIN, DLP_DTYPE_UINT16, -1);
        struct schema_field bytes = stored(FIELD_BYTES, CODING_PLAIN, 0, 0);
        struct codec_opened opened;
        struct why why;
        int64_t out[8];
        float real[8];

        begin();
        ck_assert_int_eq(serve(&ints, NULL, "[3, -4]", 7, out, &opened, &why), 16);
        ck_assert(opened.shape[0] == 2 && out[0] == 3 && out[1] == -4);
        ck_assert_int_eq(serve(&ints, NULL, "[]", 2, out, &opened, &why), 0);
        ck_assert_int_eq(opened.shape[0], 0);
        ck_assert_int_eq(serve(&ints, "to(float32)", "[3, 9007199254740993]", 21, real, &opened, &why), 8);
        ck_assert(real[0] == 3.0f && real[1] == 9007199254740992.0f);
        ck_assert_int_eq(serve(&packed, NULL, (const char *)varints, sizeof(varints), out, &opened, &why), 24);
        ck_assert(out[0] == 1 && out[1] == 300 && out[2] == -1);
        ck_assert_int_eq(serve(&tokens, "to(int64)", "\x01\x00\xff\xff", 4, out, &opened, &why), 16);
        ck_assert(out[0] == 1 && out[1] == 65535);
        ck_assert_int_eq(serve(&bytes, "json(width) to(int64)", "{\"width\": 640}", 14, out, &opened, &why), 8);
        ck_assert_int_eq(out[0], 640);
        ck_assert_int_eq(serve(&bytes, "to(float32)", " 0.5\n", 5, real, &opened, &why), 4);
        ck_assert(real[0] == 0.5f);
        ck_assert_int_eq(
                serve(&bytes, "json(b) to(float32, shape=-1:2)", "{\"b\":[[1,2],[3,4]]}", 19, real, &opened, &why), 16);
        ck_assert(opened.shape[0] == 2 && opened.shape[1] == 2 && real[3] == 4.0f);
        end();
}
END_TEST

/* Version 1 of the format, without padding. Returns the length. */
static size_t npy_file(char *into, const char *descr, const char *shape, const void *data, size_t n_data) {
        int n = sprintf(into + 10, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", descr, shape);

        memcpy(into, "\x93NUMPY\x01", 8);
        into[8] = (char)n;
        into[9] = 0;
        memcpy(into + 10 + n, data, n_data);
        return 10 + (size_t)n + n_data;
}

START_TEST(a_npy_file_is_its_array) {
        struct schema_field known = stored(FIELD_VALUE, CODING_NPY, DLP_DTYPE_INT16, -1);
        struct schema_field bytes = stored(FIELD_BYTES, CODING_PLAIN, 0, 0);
        static const char little[] = { 1, 0, 0xfe, 0xff }, big[] = { 0, 1, 0xff, 0xfe };
        struct codec_opened opened;
        char file[256], out[256];
        struct why why;
        int16_t *small = (void *)out;
        float *real = (void *)out;
        size_t n;

        begin();
        n = npy_file(file, "<i2", "(2,)", little, 4);
        ck_assert_int_eq(serve(&known, NULL, file, n, out, &opened, &why), 4);
        ck_assert(opened.shape[0] == 2 && small[0] == 1 && small[1] == -2);
        ck_assert_int_eq(serve(&known, "npy", file, n, out, &opened, &why), 4);
        ck_assert_int_eq(serve(&known, "to(float32)", file, n, out, &opened, &why), 8);
        ck_assert(real[0] == 1.0f && real[1] == -2.0f);
        ck_assert_int_eq(serve(&known, "raw", file, n, out, &opened, &why), (int64_t)n);
        ck_assert_mem_eq(out, file, n);
        ck_assert_int_eq(serve(&bytes, "npy to(float32, shape=-1)", file, n, out, &opened, &why), 8);
        ck_assert(real[0] == 1.0f && real[1] == -2.0f);
        n = npy_file(file, ">i2", "(2,)", big, 4);
        ck_assert_int_eq(serve(&known, NULL, file, n, out, &opened, &why), 4);
        ck_assert(small[0] == 1 && small[1] == -2);
        ck_assert_int_eq(serve(&known, "npy to(float32)", file, n, out, &opened, &why), 8);
        ck_assert(real[0] == 1.0f && real[1] == -2.0f);
        n = npy_file(file, "<i2", "(0,)", "", 0);
        ck_assert_int_eq(serve(&known, NULL, file, n, out, &opened, &why), 0);
        ck_assert_int_eq(opened.shape[0], 0);
        n = npy_file(file, "<i2", "()", little, 2);
        ck_assert_int_eq(serve(&bytes, "npy to(float32)", file, n, out, &opened, &why), 4);
        ck_assert(real[0] == 1.0f);
        end();
}
END_TEST

START_TEST(a_npy_file_of_another_shape_or_length_is_damaged) {
        struct schema_field known = stored(FIELD_VALUE, CODING_NPY, DLP_DTYPE_INT16, 2);
        struct schema_field bytes = stored(FIELD_BYTES, CODING_PLAIN, 0, 0);
        const struct {
                const struct schema_field *field;
                const char *steps, *descr, *shape, *said;
                size_t n_data;
        } rows[] = {
                { &known, NULL, "<i4", "(2,)", "is an array of int32, int16 is expected", 8 },
                { &known, NULL, "<i2", "(3,)", "the shape [3], [2] is expected", 6 },
                { &known, NULL, "<i2", "(1, 2)", "the shape [1 x 2], [2] is expected", 4 },
                { &known, NULL, "<i2", "(2,)", "ends at byte", 3 },
                { &known, NULL, "<i2", "(2,)", "ends at byte", 5 },
                { &known, NULL, "|O", "(2,)", "Python objects", 8 },
                { &bytes, "npy to(int8)", "<i2", "(2,)", "name its shape", 4 },
                { &bytes, "npy to(uint8, shape=2)", "<i2", "(2,)", "257 does not fit uint8", 4 },
        };
        struct codec_opened opened;
        char file[256], out[64];
        struct why why;

        begin();
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                size_t n = npy_file(file, rows[i].descr, rows[i].shape, "\1\1\1\1\1\1\1\1", rows[i].n_data);

                ck_assert_int_eq(serve(rows[i].field, rows[i].steps, file, n, out, &opened, &why), -EBADMSG);
                ck_assert_msg(strstr(why.text, rows[i].said) != NULL, "row %zu: %s", i, why.text);
        }
        ck_assert_int_eq(serve(&bytes, "npy to(int8)", "", 0, out, &opened, &why), -EBADMSG);
        end();
}
END_TEST

START_TEST(numbers_that_do_not_fit_are_damaged) {
        struct schema_field ints = stored(FIELD_VALUE, CODING_JSON, DLP_DTYPE_INT64, -1);
        struct schema_field pair = stored(FIELD_VALUE, CODING_JSON, DLP_DTYPE_INT64, 2);
        struct schema_field packed = stored(FIELD_VALUE, CODING_VARINTS, DLP_DTYPE_INT64, -1);
        struct schema_field tokens = stored(FIELD_VALUE, CODING_PLAIN, DLP_DTYPE_UINT16, -1);
        const struct {
                const struct schema_field *field;
                const char *steps, *stored, *said;
        } rows[] = {
                { &ints, NULL, "[1, \"2\"]", "" },
                { &ints, NULL, "{}", "" },
                { &ints, NULL, "[99999999999999999999]", "" },
                { &ints, "to(uint8)", "[1, 256]", "256 does not fit uint8" },
                { &ints, "to(uint64)", "[-1]", "-1 does not fit uint64" },
                { &pair, NULL, "[1]", "has the shape [1], [2] is expected" },
                { &packed, NULL, "\xff", "cut off" },
                { &packed, NULL, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "more than 64 bits" },
                { &tokens, "to(int64)", "abc", "not a whole number of uint16" },
                { &tokens, NULL, "abc", "a multiple of 2" },
        };
        struct codec_opened opened;
        struct why why;
        int64_t out[8];

        begin();
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                int64_t n = serve(rows[i].field, rows[i].steps, rows[i].stored, strlen(rows[i].stored), out, &opened,
                                  &why);

                ck_assert_msg(n == -EBADMSG, "row %zu: %lld", i, (long long)n);
                ck_assert_msg(strstr(why.text, rows[i].said) != NULL, "row %zu: %s", i, why.text);
        }
        end();
}
END_TEST

/* ---- steps ----------------------------------------------------------------------------------------------------- */

START_TEST(a_step_that_does_not_fit_its_field_is_refused_with_its_column) {
        struct schema_field text = stored(FIELD_TEXT, CODING_JSON, 0, 0), bytes = stored(FIELD_BYTES, 0, 0, 0);
        struct schema_field number = stored(FIELD_VALUE, CODING_PLAIN, DLP_DTYPE_INT32, 3);
        const struct {
                const struct schema_field *field;
                const char *steps, *said;
        } rows[] = {
                { &text, "hflip(0.5)", "column 1: this field has no step \"hflip\"; expected json(PATH), npy, text" },
                { &text, "txet", "no step \"txet\" (did you mean \"text\"?); expected json(PATH)" },
                { &text, "text to(int64)", "column 6: to cannot follow here" },
                { &text, "to(int64)", "field f is text in a file of JSON or CSV" },
                { &bytes, "json(a", "\")\"" },
                { &bytes, "json([)", "" },
                { &bytes, "  to(int65)",
                  "column 6: dtype: \"int65\" is not allowed (did you mean \"int64\"?); expected bool" },
                { &bytes, "to(int64, shape=2:-1)", "only the first dimension" },
                { &bytes, "to(int64, size=2)", "column 11: to has no argument \"size\"; it has dtype, shape" },
                { &bytes, "text(1)", "has no arguments" },
                { &bytes, "text raw", "raw stands alone" },
                { &bytes, "npy", "name them, as in npy to(float32, shape=-1:4)" },
                { &bytes, "npy text", "text does not follow npy" },
                { &bytes, "json(a) npy to(int8)", "npy cannot follow here" },
                { &text, "npy", "leave npy out" },
                { &number, "npy", "leave npy out" },
                { &number, "json(a)", "field f is a number" },
                { &number, "to(int64, shape=3)", "has a shape of its own" },
        };
        struct codec_opened opened;
        struct why why;
        char out[8];

        begin();
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                ck_assert_int_eq(serve(rows[i].field, rows[i].steps, "", 0, out, &opened, &why), -EINVAL);
                ck_assert_msg(strstr(why.text, rows[i].said) != NULL, "row %zu: %s", i, why.text);
        }
        end();
}
END_TEST

/* ---- dtypes ---------------------------------------------------------------------------------------------------- */

/* Small numbers survive the way through any two dtypes and back. */
START_TEST(small_numbers_are_the_same_in_every_dtype) {
        static const int64_t numbers[] = { 0, 1, 2, 3, 17, 100, 127 };
        uint8_t one[8 * ARRAY_SIZE(numbers)], other[8 * ARRAY_SIZE(numbers)];
        int64_t back[ARRAY_SIZE(numbers)];
        size_t n = ARRAY_SIZE(numbers);

        for (uint32_t a = DLP_DTYPE_UINT8; a < DLP_DTYPE_TEXT; a++)
                for (uint32_t b = DLP_DTYPE_UINT8; b < DLP_DTYPE_TEXT; b++) {
                        bool as_bool = a == DLP_DTYPE_BOOL || b == DLP_DTYPE_BOOL;

                        ck_assert_int_eq(convert(DLP_DTYPE_INT64, numbers, a, one, n, NULL), 0);
                        ck_assert_int_eq(convert(a, one, b, other, n, NULL), 0);
                        ck_assert_int_eq(convert(b, other, DLP_DTYPE_INT64, back, n, NULL), 0);
                        for (size_t i = 0; i < n; i++)
                                ck_assert_int_eq(back[i], as_bool ? numbers[i] != 0 : numbers[i]);
                }
}
END_TEST

START_TEST(the_limits_of_each_dtype_are_kept) {
        static const struct {
                uint32_t dtype;
                int64_t least, most;
        } rows[] = {
                { DLP_DTYPE_UINT8, 0, UINT8_MAX },   { DLP_DTYPE_INT8, INT8_MIN, INT8_MAX },
                { DLP_DTYPE_UINT16, 0, UINT16_MAX }, { DLP_DTYPE_INT16, INT16_MIN, INT16_MAX },
                { DLP_DTYPE_UINT32, 0, UINT32_MAX }, { DLP_DTYPE_INT32, INT32_MIN, INT32_MAX },
                { DLP_DTYPE_UINT64, 0, INT64_MAX },
        };
        uint64_t huge = UINT64_MAX, wide;
        double reals[] = { -2.9, 2.9, NAN, 1e19, -0x1p63 };
        int64_t whole;
        float real;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                int64_t beyond = rows[i].most < INT64_MAX ? rows[i].most + 1 : 0;
                int64_t numbers[] = { rows[i].least, rows[i].most, rows[i].least - 1, beyond };
                uint8_t out[16];

                ck_assert_int_eq(convert(DLP_DTYPE_INT64, numbers, rows[i].dtype, out, 2, NULL), 0);
                ck_assert_int_eq(convert(DLP_DTYPE_INT64, numbers + 2, rows[i].dtype, out, 1, NULL), -ERANGE);
                if (rows[i].dtype != DLP_DTYPE_UINT64)
                        ck_assert_int_eq(convert(DLP_DTYPE_INT64, numbers + 3, rows[i].dtype, out, 1, NULL), -ERANGE);
        }
        ck_assert_int_eq(convert(DLP_DTYPE_UINT64, &huge, DLP_DTYPE_INT64, &whole, 1, NULL), -ERANGE);
        ck_assert_int_eq(convert(DLP_DTYPE_UINT64, &huge, DLP_DTYPE_UINT64, &wide, 1, NULL), 0);
        ck_assert(wide == UINT64_MAX);
        ck_assert_int_eq(convert(DLP_DTYPE_UINT64, &huge, DLP_DTYPE_FLOAT32, &real, 1, NULL), 0);
        ck_assert(real == 0x1p64f);
        ck_assert_int_eq(convert(DLP_DTYPE_FLOAT64, &reals[0], DLP_DTYPE_INT64, &whole, 1, NULL), 0);
        ck_assert_int_eq(whole, -2);
        ck_assert_int_eq(convert(DLP_DTYPE_FLOAT64, &reals[1], DLP_DTYPE_INT64, &whole, 1, NULL), 0);
        ck_assert_int_eq(whole, 2);
        ck_assert_int_eq(convert(DLP_DTYPE_FLOAT64, &reals[2], DLP_DTYPE_INT64, &whole, 1, NULL), -ERANGE);
        ck_assert_int_eq(convert(DLP_DTYPE_FLOAT64, &reals[3], DLP_DTYPE_INT64, &whole, 1, NULL), -ERANGE);
        ck_assert_int_eq(convert(DLP_DTYPE_FLOAT64, &reals[4], DLP_DTYPE_INT64, &whole, 1, NULL), 0);
        ck_assert(whole == INT64_MIN);
}
END_TEST

/* More elements than a block has, with the one that does not fit in the last one. */
START_TEST(the_number_that_does_not_fit_is_named) {
        int64_t numbers[1000] = { 0 };
        uint8_t out[1000];
        struct why why;

        numbers[999] = 300;
        ck_assert_int_eq(convert(DLP_DTYPE_INT64, numbers, DLP_DTYPE_UINT8, out, 999, &why), 0);
        ck_assert_int_eq(convert(DLP_DTYPE_INT64, numbers, DLP_DTYPE_UINT8, out, 1000, &why), -ERANGE);
        ck_assert_str_eq(why.text, "300 does not fit uint8");
}
END_TEST

/* ---- tokens ---------------------------------------------------------------------------------------------------- */

static bool lasts(const void *userdata) {
        unsigned *n_left = (unsigned *)(uintptr_t)userdata;

        return *n_left > 0 && (*n_left)-- > 0;
}

START_TEST(a_cut_text_that_is_left_is_counted_when_it_is_rendered_whole) {
        enum {
                N_WORDS = 1 << 18
        };
        static const char json[] =
                "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"u\",\"vocab\":{\"u\":0,\"a\":1}},"
                "\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"}}";
        _cleanup_(freep) char *text = malloc(2 * N_WORDS);
        struct source source = { .schema = { .n_fields = 1, .fields = { stored(FIELD_TEXT, CODING_PLAIN, 0, 0) } } };
        struct codec_input input = { .bytes = (const uint8_t *)text, .n_bytes = 2 * N_WORDS, .source = &source };
        struct at_hand tokenizers = { 0 };
        struct codec_named named = { .tokenizers = &tokenizers };
        struct codec_opened opened;
        struct codec_counts counts;
        struct tokenizer *tokenizer;
        struct codec *codec = NULL;
        unsigned n_left = 1;
        struct why why;
        int64_t out[4];

        for (size_t i = 0; i < N_WORDS; i++)
                memcpy(text + 2 * i, "a ", 2);
        begin();
        ck_assert_msg(tokenizer_new(json, strlen(json), &tokenizer, &why) == 0, "%s", why.text);
        strcpy(tokenizers.missing, "t");
        at_hand_put(&tokenizers, 0, tokenizer, NULL);
        ck_assert_msg(codec_new(&source, 0, 0, "tokens(t, max_length=4)", &named, &codec, &why) == 0, "%s", why.text);
        ck_assert_int_eq(codec_open(codec, tools, &input, &opened, &why), 0);
        codec_tools_set_wanted(tools, lasts, &n_left); /* it ends while the rest of the text is counted */
        ck_assert_int_eq(codec_render(codec, tools, &input, (uint8_t *)out, &why), -ECANCELED);
        counts = codec_tools_take_counts(tools);
        ck_assert_uint_eq(counts.n_texts_cut, 0);
        ck_assert_uint_eq(counts.n_tokens_cut, 0);

        codec_tools_set_wanted(tools, NULL, NULL);
        ck_assert_int_eq(codec_render(codec, tools, &input, (uint8_t *)out, &why), 0);
        counts = codec_tools_take_counts(tools);
        ck_assert_uint_eq(counts.n_texts_cut, 1);
        ck_assert_uint_eq(counts.n_tokens_cut, N_WORDS - 4);
        codec_close(tools);
        codec_free(codec);
        at_hand_fini(&tokenizers);
        end();
}
END_TEST

/* Each try has what the one before it asked for, and takes no more. */
static int open_with(struct codec *codec, struct codec_input *input, unsigned *ret_n_tries) {
        struct codec_opened opened;
        struct why why;
        int r;

        *ret_n_tries = 0;
        do {
                r = codec_open(codec, tools, input, &opened, &why);
                ck_assert_uint_le(codec_tools_bytes(tools), input->allowed_bytes);
                ++*ret_n_tries;
                if (r == CODEC_NEEDS_MORE) {
                        ck_assert_uint_gt(opened.need_bytes, input->allowed_bytes);
                        ck_assert_uint_le(opened.need_bytes, input->most_bytes);
                        input->allowed_bytes = opened.need_bytes;
                }
        } while (r == CODEC_NEEDS_MORE);
        if (r == 0)
                ck_assert_uint_eq(opened.made_bytes, codec_tools_bytes(tools));
        if (r == -EFBIG)
                ck_assert_msg(strstr(why.text, "is a text of ") && strstr(why.text, "cut it into shorter texts"), "%s",
                              why.text);
        return r;
}

/* U+FDFA becomes 18 characters. */
START_TEST(tokens_are_made_with_the_memory_that_is_allowed) {
        enum {
                OWN = 2 << 20,
                MOST = 256 << 20,
                N = 1 << 20
        };
        static const char plain[] = "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"u\",\"vocab\":{\"u\":0}},"
                                    "\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"}}";
        static const char forms[] =
                "{\"model\":{\"type\":\"WordPiece\",\"unk_token\":\"u\",\"vocab\":{\"u\":0}},"
                "\"normalizer\":{\"type\":\"NFKC\"},\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"}}";
        static const struct {
                const char *json, *steps, *part;
                size_t n;
                uint64_t most;
                unsigned n_tries; /* 0: there is not enough */
        } rows[] = {
                { plain, "tokens(t, max_length=4)", "a ", 10000, MOST, 1 },
                { plain, "tokens(t, truncation=none)", "a ", 10000, MOST, 1 },
                { plain, "tokens(t, truncation=none)", "a ", N, MOST, 2 },
                { plain, "tokens(t, truncation=none)", "a ", N, 4 << 20, 0 },
                { plain, "tokens(t, max_length=4)", "a ", N, 4 << 20, 2 }, /* it needs less than is usual */
                { plain, "tokens(t, max_length=4)", "a ", N, N, 0 },
                { forms, "tokens(t, max_length=4)", "\xef\xb7\xba", N, MOST, 5 },
                { forms, "tokens(t, max_length=4)", "\xef\xb7\xba", N, 16 << 20, 0 },
        };
        struct source source = { .schema = { .n_fields = 1, .fields = { stored(FIELD_TEXT, CODING_PLAIN, 0, 0) } } };
        _cleanup_(freep) char *text = malloc(N);

        begin();
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                size_t n_part = strlen(rows[i].part), n = rows[i].n / n_part * n_part;
                struct codec_input input = { .bytes = (const uint8_t *)text, .n_bytes = n, .source = &source };
                struct at_hand tokenizers = { .missing = "t" };
                struct codec_named named = { .tokenizers = &tokenizers };
                struct tokenizer *tokenizer;
                struct codec *codec = NULL;
                unsigned n_tries;
                struct why why;

                for (size_t k = 0; k < n; k++)
                        text[k] = rows[i].part[k % n_part];
                ck_assert_msg(tokenizer_new(rows[i].json, strlen(rows[i].json), &tokenizer, &why) == 0, "%s", why.text);
                at_hand_put(&tokenizers, 0, tokenizer, NULL);
                ck_assert_msg(codec_new(&source, 0, 0, rows[i].steps, &named, &codec, &why) == 0, "%s", why.text);
                input.most_bytes = rows[i].most;
                input.allowed_bytes = rows[i].most < OWN ? rows[i].most : OWN;
                ck_assert_msg(open_with(codec, &input, &n_tries) == (rows[i].n_tries > 0 ? 0 : -EFBIG), "row %zu", i);
                if (rows[i].n_tries > 0) { /* what was learned of these texts lasts when the memory is given back */
                        ck_assert_msg(n_tries == rows[i].n_tries, "row %zu: %u tries", i, n_tries);
                        codec_tools_trim(tools);
                        input.allowed_bytes = OWN;
                        ck_assert_int_eq(open_with(codec, &input, &n_tries), 0);
                        ck_assert_uint_le(n_tries, 2);
                }
                codec_free(codec);
                at_hand_fini(&tokenizers);
                codec_tools_trim(tools);
        }
        end();
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "text", text_is_what_its_coding_holds, 0 },
                { "text", text_that_is_not_utf8_is_damaged, 0 },
                { "text", an_array_of_strings_is_a_list_of_texts, 0 },
                { "text", what_is_not_an_array_of_strings_is_damaged_and_takes_no_steps, 0 },
                { "text", a_message_of_texts_is_a_list_of_texts, 0 },
                { "text", a_message_that_does_not_hold_texts_is_damaged, 0 },
                { "text", a_list_of_texts_whose_parts_do_not_fit_is_not_opened, 0 },
                { "text", a_member_that_is_not_there_is_absent, 0 },
                { "numbers", numbers_come_out_of_every_coding, 0 },
                { "numbers", a_npy_file_is_its_array, 0 },
                { "numbers", a_npy_file_of_another_shape_or_length_is_damaged, 0 },
                { "numbers", numbers_that_do_not_fit_are_damaged, 0 },
                { "steps", a_step_that_does_not_fit_its_field_is_refused_with_its_column, 0 },
                { "dtypes", small_numbers_are_the_same_in_every_dtype, 0 },
                { "dtypes", the_limits_of_each_dtype_are_kept, 0 },
                { "dtypes", the_number_that_does_not_fit_is_named, 0 },
                { "tokens", a_cut_text_that_is_left_is_counted_when_it_is_rendered_whole, 0 },
                { "tokens", tokens_are_made_with_the_memory_that_is_allowed, 0 },
        };

        return suite_run("codec", rows, ARRAY_SIZE(rows));
}
