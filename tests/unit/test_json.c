/* The JSON scanner and the values: what is a token, what is refused and where, pieces of any size, numbers to the last
 * bit, text, paths. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/json/decimal.h"
#include "daemon/base/json/json_value.h"
#include "proto/base/cleanup.h"
#include "tests/support/suite.h"

static struct why why;

/* The kinds of all tokens of a text, a letter each; or what json_next() returned. */
static int scan_all(const char *text, char *kinds, size_t size) {
        struct json_scan scan;
        struct json_token token;
        size_t n = 0;

        why.text[0] = '\0';
        json_scan_init(&scan, text, strlen(text));
        for (;;) {
                int r = json_next(&scan, &token, &why);

                if (r != 0)
                        return r;
                ck_assert_uint_lt(n + 1, size);
                kinds[n++] = "$nftidsk[]{}"[token.kind];
                kinds[n] = '\0';
                if (token.kind == JSON_END)
                        return 0;
        }
}

START_TEST(each_kind_of_token_is_told) {
        static const struct {
                const char *text, *kinds;
        } TEXTS[] = {
                { "null", "n$" },
                { " \t\r\n true ", "t$" },
                { "false", "f$" },
                { "0", "i$" },
                { "-0", "i$" },
                { "99999999999999999999999999", "i$" },
                { "-12.50e+3", "d$" },
                { "1E5", "d$" },
                { "NaN", "d$" },
                { "-Infinity", "d$" },
                { "[Infinity]", "[d]$" },
                { "\"\"", "s$" },
                { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00Ff\"", "s$" },
                { "\"\\ud800\"", "s$" },
                { "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"", "s$" },
                { "[]", "[]$" },
                { "{}", "{}$" },
                { "[1, [2, {}], \"x\"]", "[i[i{}]s]$" },
                { "{\"a\" : 1 , \"b\":{\"c\":[null]}}", "{kik{k[n]}}$" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(TEXTS); i++) {
                char kinds[64] = "";

                ck_assert_msg(scan_all(TEXTS[i].text, kinds, sizeof(kinds)) == 0, "%s: %s", TEXTS[i].text, why.text);
                ck_assert_str_eq(kinds, TEXTS[i].kinds);
        }
}
END_TEST

START_TEST(what_is_malformed_is_refused_with_its_place) {
        static const struct {
                const char *text, *words;
        } TEXTS[] = {
                { "", "byte 0: the text ends where a value" },
                { "[1,]", "byte 3: \"]\" where a value" },
                { "[1 2]", "byte 3: \"2]\" where \",\" or \"]\"" },
                { "{\"a\" 1}", "byte 5: \"1}\" where \":\"" },
                { "{\"a\":1,}", "byte 7: \"}\" where the name of a member" },
                { "{a:1}", "byte 1: \"a:1}\" where the name of a member" },
                { "[1}", "byte 2: \"}\" where \",\" or \"]\"" },
                { "]", "byte 0: \"]\" where a value" },
                { "[", "byte 1: the text ends where the rest of an array" },
                { "1 2", "byte 2: \"2\" where the end" },
                { "01", "byte 0: \"01\" where a number without zeros" },
                { "-", "the text ends where a digit" },
                { "1.", "the text ends where a digit" },
                { "1.e5", "byte 2: \"e5\" where a digit" },
                { "1e+", "the text ends where a digit" },
                { ".5", "byte 0: \".5\" where a value" },
                { "+5", "byte 0: \"+5\" where a value" },
                { "nul", "the text ends where null" },
                { "nuls", "byte 0: \"nuls\" where a value" },
                { "-Infinite", "byte 0: \"-Infinite\" where a value" },
                { "'a'", "byte 0: \"'a'\" where a value" },
                { "\"abc", "byte 4: the text ends where the closing" },
                { "\"abc\\", "the text ends where an escaped character" },
                { "\"a\\x\"", "byte 2: \"\\x\"\" where one of" },
                { "\"\\u12g4\"", "byte 1: \"\\u12g4\"\" where \\u with four" },
                { "\"12345678\n\"", "byte 9: a control character (10)" },
                { "\"\xc3\"", "byte 1: the string is not UTF-8" },
                { "\"a\xed\xa0\x80\"", "byte 2: the string is not UTF-8" },
                { "\"\xc0\xaf\"", "byte 1: the string is not UTF-8" },
                { "\"\xf4\x90\x80\x80\"", "byte 1: the string is not UTF-8" },
                { "\xef\xbb\xbf{}", "where a value" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(TEXTS); i++) {
                char kinds[64] = "";

                ck_assert_int_eq(scan_all(TEXTS[i].text, kinds, sizeof(kinds)), -EBADMSG);
                ck_assert_msg(strstr(why.text, TEXTS[i].words) != NULL, "%s: %s", TEXTS[i].text, why.text);
        }
}
END_TEST

START_TEST(depth_and_length_are_bounded) {
        char text[2048], kinds[2048];

        memset(text, '[', 128);
        memset(text + 128, ']', 128);
        text[256] = '\0';
        ck_assert_int_eq(scan_all(text, kinds, sizeof(kinds)), 0);
        for (size_t i = 0; i < 129; i++) /* the deepest of them is an object */
                strcpy(text + 5 * i, i < 128 ? "{\"a\":" : "{");
        ck_assert_int_eq(scan_all(text, kinds, sizeof(kinds)), -E2BIG);
        ck_assert_msg(strstr(why.text, "128") != NULL, "%s", why.text);
        memset(text, '7', 401);
        text[401] = '\0';
        ck_assert_int_eq(scan_all(text, kinds, sizeof(kinds)), -E2BIG);
        text[400] = '\0';
        ck_assert_int_eq(scan_all(text, kinds, sizeof(kinds)), 0);
}
END_TEST

/* Feeds the text in pieces of `n_piece` more bytes whenever more are wanted. Appends each token as written, with "|".
 */
static void scan_in_pieces(const char *text, size_t n_piece, char *into) {
        size_t n_text = strlen(text), n_seen = 0;
        struct json_scan scan = { .bytes = NULL };
        struct json_token token;

        *into = '\0';
        for (;;) {
                int r;

                n_seen = n_seen + n_piece < n_text ? n_seen + n_piece : n_text;
                json_scan_feed(&scan, text + json_scan_offset(&scan), n_seen - json_scan_offset(&scan),
                               n_seen == n_text);
                while ((r = json_next(&scan, &token, &why)) == 0) {
                        if (token.kind == JSON_END)
                                return;
                        into += sprintf(into, "%.*s|", (int)token.n_bytes, (const char *)token.bytes);
                        ck_assert_ptr_eq(token.bytes + token.n_bytes, text + json_scan_offset(&scan));
                }
                ck_assert_msg(r == JSON_MORE && n_seen < n_text, "%zu: %s", n_piece, why.text);
        }
}

START_TEST(pieces_of_any_size_give_the_same_tokens) {
        static const char TEXT[] =
                " {\"k\\u00e9y\" : [ -12.5e-3, 7 , true,null, \"\xe2\x82\xac\\n \xf0\x9f\x98\x80\" ], "
                "\"x\":{}, \"y\" : -Infinity }  ";
        char whole[512], pieces[512];

        scan_in_pieces(TEXT, sizeof(TEXT), whole);
        ck_assert_str_eq(whole,
                         "{|\"k\\u00e9y\"|[|-12.5e-3|7|true|null|\"\xe2\x82\xac\\n \xf0\x9f\x98\x80\"|]|\"x\"|{|}|"
                         "\"y\"|-Infinity|}|");
        for (size_t n = 1; n < sizeof(TEXT); n++) {
                scan_in_pieces(TEXT, n, pieces);
                ck_assert_str_eq(pieces, whole);
        }
}
END_TEST

START_TEST(skipping_ends_after_the_array_or_object) {
        static const char TEXT[] = "{\"a\":[1,{\"b\":[2]},3],\"c\":4}";
        struct json_scan scan;
        struct json_token token;

        json_scan_init(&scan, TEXT, strlen(TEXT));
        ck_assert_int_eq(json_next(&scan, &token, &why), 0);
        ck_assert_int_eq(json_next(&scan, &token, &why), 0);
        ck_assert_int_eq(json_value(&scan, &token, &why), 0);
        ck_assert_int_eq(token.kind, JSON_ARRAY);
        ck_assert_mem_eq(token.bytes, "[1,{\"b\":[2]},3]", token.n_bytes);
        ck_assert_int_eq(json_skip(&scan, 0, &why), 0);
        ck_assert_int_eq(json_next(&scan, &token, &why), 0);
        ck_assert_int_eq(token.kind, JSON_END);
}
END_TEST

/* ---- values ---------------------------------------------------------------------------------------------------- */

START_TEST(text_is_unescaped_into_utf_8) {
        static const struct {
                const char *literal, *text;
        } TEXTS[] = {
                { "\"\"", "" },
                { "\"plain\"", "plain" },
                { "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t" },
                { "\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00z\"", "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z" },
                { "\"\xc3\xa9\\u00e9\"", "\xc3\xa9\xc3\xa9" },
                { "\"\\uffff\\u07ff\\u0800\"", "\xef\xbf\xbf\xdf\xbf\xe0\xa0\x80" },
        };

        for (size_t i = 0; i < ARRAY_SIZE(TEXTS); i++) {
                const char *literal = TEXTS[i].literal;
                uint8_t into[64];
                size_t n = 77, n_counted = 78;

                ck_assert_int_eq(json_string_read(literal, strlen(literal), into, &n, &why), 0);
                ck_assert_int_eq(json_string_read(literal, strlen(literal), NULL, &n_counted, &why), 0);
                ck_assert_uint_eq(n, strlen(TEXTS[i].text));
                ck_assert_uint_eq(n_counted, n);
                ck_assert_mem_eq(into, TEXTS[i].text, n);
        }
}
END_TEST

START_TEST(half_a_surrogate_pair_is_no_text) {
        static const char *const TEXTS[] = { "\"\\ud800\"",       "\"\\udc00\"",        "\"\\ud800x\"",
                                             "\"\\ud800\\n\"",    "\"\\ud800\\ud800\"", "\"a\\udfff\"",
                                             "\"\\ud83d\\u0041\"" };

        for (size_t i = 0; i < ARRAY_SIZE(TEXTS); i++) {
                uint8_t into[64];
                size_t n;

                ck_assert_int_eq(json_string_read(TEXTS[i], strlen(TEXTS[i]), into, &n, &why), -EILSEQ);
                ck_assert_msg(strstr(why.text, "\\ud") != NULL, "%s", why.text);
        }
        ck_assert_int_eq(json_string_read("17", 2, NULL, &(size_t){ 0 }, &why), -EINVAL);
        ck_assert_int_eq(json_string_read("\"a", 2, NULL, &(size_t){ 0 }, &why), -EBADMSG);
        ck_assert_int_eq(json_string_read("\"a\"x", 4, NULL, &(size_t){ 0 }, &why), -EBADMSG);
}
END_TEST

START_TEST(whole_numbers_are_exact_or_refused) {
        static const struct {
                const char *text;
                int r;
                int64_t number;
        } NUMBERS[] = {
                { "0", 0, 0 },
                { "-0", 0, 0 },
                { "9007199254740993", 0, 9007199254740993 },
                { "9223372036854775807", 0, INT64_MAX },
                { "-9223372036854775808", 0, INT64_MIN },
                { "9223372036854775808", -ERANGE, 0 },
                { "-9223372036854775809", -ERANGE, 0 },
                { "123456789012345678901234567890123456789012345678901234567890", -ERANGE, 0 },
                { "1.0", -EINVAL, 0 },
                { "\"1\"", -EINVAL, 0 },
                { "1 2", -EBADMSG, 0 },
        };

        for (size_t i = 0; i < ARRAY_SIZE(NUMBERS); i++) {
                int64_t number = 0;

                ck_assert_int_eq(json_integer_read(NUMBERS[i].text, strlen(NUMBERS[i].text), &number, &why),
                                 NUMBERS[i].r);
                ck_assert_int_eq(number, NUMBERS[i].number);
        }
}
END_TEST

START_TEST(floats_are_those_of_strtod_to_the_last_bit) {
        static const char *const NUMBERS[] = {
                "0.1",
                "-0.3",
                "1.5",
                "123456789.12345",
                "0.000000000000001",
                "-0.0",
                "1e22",
                "1e23",
                "3.141592653589793",
                "2.2250738585072011e-308",
                "5e-324",
                "9007199254740993",
                "9007199254740993.0",
                "473.07",
                "98765432101.5",
                "1E-10",
                "179769313486231580793",
                "0.30000000000000004",
                "1234567",
                "8.5e+3",
        };
        static const char *const INFINITE[] = { "NaN", "Infinity", "-Infinity", "1e999", "-1.5E+309", "2e308" };
        char text[64];
        double number;

        for (size_t i = 0; i < ARRAY_SIZE(NUMBERS); i++) {
                double wanted = strtod(NUMBERS[i], NULL);

                ck_assert_int_eq(json_float_read(NUMBERS[i], strlen(NUMBERS[i]), &number, &why), 0);
                ck_assert_msg(memcmp(&number, &wanted, sizeof(number)) == 0, "%s: %a", NUMBERS[i], number);
        }
        for (unsigned i = 0; i < 200000; i++) { /* as COCO writes them, and longer */
                double wanted;

                snprintf(text, sizeof(text), "%.*f", (int)(i % 17), (double)(i * 2654435761u) / 7321);
                wanted = strtod(text, NULL);
                ck_assert(json_float_read(text, strlen(text), &number, &why) == 0);
                if (memcmp(&number, &wanted, sizeof(number)) != 0)
                        ck_abort_msg("%s: %a", text, number);
        }
        for (uint64_t i = 1, random = 7; i < 200000; i++) { /* as Python writes a double, and ties between two */
                uint64_t digits, tie;
                double wanted;

                random = random * 6364136223846793005u + 1442695040888963407u;
                digits = random >> (i % 11), tie = (1ull << 53 | random >> 11) * 2 + 1;
                if (i % 3 == 0)
                        snprintf(text, sizeof(text), "%llu.%s", (unsigned long long)tie, i % 2 ? "0" : "01");
                else
                        snprintf(text, sizeof(text), "%s%llu.%0*llu", i % 2 ? "-" : "",
                                 (unsigned long long)(i % 7 ? 0 : digits % 1000), (int)(i % 5),
                                 (unsigned long long)(digits / (i % 7 ? 10 : 10000)));
                wanted = strtod(text, NULL);
                ck_assert(json_float_read(text, strlen(text), &number, &why) == 0);
                if (memcmp(&number, &wanted, sizeof(number)) != 0)
                        ck_abort_msg("%s: %a", text, number);
        }
        for (size_t i = 0; i < ARRAY_SIZE(INFINITE); i++) {
                number = 7;
                ck_assert_int_eq(json_float_read(INFINITE[i], strlen(INFINITE[i]), &number, &why), -ERANGE);
                ck_assert_msg(strstr(why.text, INFINITE[i]), "%s", why.text);
                ck_assert(number == 7);
        }
        ck_assert_int_eq(json_float_read("true", 4, &number, &why), -EINVAL);
}
END_TEST

START_TEST(decimals_are_read_by_themselves_or_not_at_all) {
        static const char *const READ[] = { "0",
                                            "+1.5",
                                            ".5",
                                            "5.",
                                            "-0",
                                            "-0.0",
                                            "00012.500",
                                            "9223372036854775807",
                                            "4503599627370496.5",
                                            "4503599627370497.5",
                                            "9999999999999999999",
                                            "0.9999999999999999999",
                                            "0.0000000000000000001",
                                            "184467440737095516.5" },
                                 *const LEFT[] = { "",
                                                   ".",
                                                   "-",
                                                   "+",
                                                   "-.",
                                                   "1e5",
                                                   "1.5.5",
                                                   "--1",
                                                   "0x1",
                                                   "1 ",
                                                   " 1.",
                                                   "1,",
                                                   "/",
                                                   ":",
                                                   "99999999999999999999",
                                                   "0.00000000000000000001",
                                                   "nan" };
        double number, wanted;

        for (size_t i = 0; i < ARRAY_SIZE(READ); i++) {
                wanted = strtod(READ[i], NULL);
                ck_assert_msg(decimal_read((const uint8_t *)READ[i], strlen(READ[i]), &number), "%s", READ[i]);
                ck_assert_msg(memcmp(&number, &wanted, sizeof(number)) == 0, "%s: %a", READ[i], number);
        }
        for (size_t i = 0; i < ARRAY_SIZE(LEFT); i++)
                ck_assert_msg(!decimal_read((const uint8_t *)LEFT[i], strlen(LEFT[i]), &number), "%s", LEFT[i]);
}
END_TEST

START_TEST(arrays_have_a_shape_and_a_kind) {
        static const struct {
                const char *text;
                enum json_kind kind;
                uint32_t n_dims;
                uint64_t shape[3];
        } ARRAYS[] = {
                { "5", JSON_INTEGER, 0, { 0 } },
                { "2.5", JSON_FLOAT, 0, { 0 } },
                { "true", JSON_TRUE, 0, { 0 } },
                { "[]", JSON_INTEGER, 1, { 0 } },
                { "[1,2,3]", JSON_INTEGER, 1, { 3 } },
                { "[1,2.0,3]", JSON_FLOAT, 1, { 3 } },
                { "[true,false]", JSON_TRUE, 1, { 2 } },
                { "[[1,2],[3,4],[5,6]]", JSON_INTEGER, 2, { 3, 2 } },
                { "[[],[]]", JSON_INTEGER, 2, { 2, 0 } },
                { "[[[1],[2]],[[3],[4]]]", JSON_INTEGER, 3, { 2, 2, 1 } },
                { "[1.5,99999999999999999999]", JSON_FLOAT, 1, { 2 } },
                { "[1.5e308,1e-999,-2E5]", JSON_FLOAT, 1, { 3 } },
        };
        static const struct {
                const char *text;
                int r;
        } WRONG[] = {
                { "[1,[2]]", -EINVAL },
                { "[[1],2]", -EINVAL },
                { "[[1],[2,3]]", -EINVAL },
                { "[\"a\"]", -EINVAL },
                { "[null]", -EINVAL },
                { "{}", -EINVAL },
                { "[1,true]", -EINVAL },
                { "[[[[1]]]]", -EINVAL },
                { "[[],[1]]", -EINVAL },
                { "[[[]],[]]", -EINVAL },
                { "[[],[[1]]]", -EINVAL },
                { "[9223372036854775808]", -ERANGE },
                { "[1", -EBADMSG },
                { "[{\"a\":1}]", -EINVAL },
                { "[[],1]", -EINVAL },
                { "[1,NaN]", -ERANGE },
                { "[[1],[-Infinity]]", -ERANGE },
                { "[1e999]", -ERANGE },
                { "NaN", -ERANGE },
                { "[1.0,2.5E400]", -ERANGE },
        };
        struct json_numbers numbers;

        for (size_t i = 0; i < ARRAY_SIZE(ARRAYS); i++) {
                ck_assert_int_eq(json_numbers_measure(ARRAYS[i].text, strlen(ARRAYS[i].text), &numbers, &why), 0);
                ck_assert_int_eq(numbers.kind, ARRAYS[i].kind);
                ck_assert_uint_eq(numbers.n_dims, ARRAYS[i].n_dims);
                ck_assert_mem_eq(numbers.shape, ARRAYS[i].shape, sizeof(numbers.shape));
        }
        for (size_t i = 0; i < ARRAY_SIZE(WRONG); i++)
                ck_assert_msg(json_numbers_measure(WRONG[i].text, strlen(WRONG[i].text), &numbers, &why) == WRONG[i].r,
                              "%s: %s", WRONG[i].text, why.text);
}
END_TEST

START_TEST(arrays_are_read_in_c_order) {
        static const char INTEGERS[] = "[[1,-2],[3,9223372036854775807]]", FLOATS[] = "[1,0.1,-1e300]";
        int64_t integers[4] = { 0 };
        double floats[3] = { 0 };

        ck_assert_int_eq(json_numbers_read(INTEGERS, strlen(INTEGERS), false, integers, 4, &why), 0);
        ck_assert_mem_eq(integers, ((const int64_t[]){ 1, -2, 3, INT64_MAX }), sizeof(integers));
        ck_assert_int_eq(json_numbers_read(FLOATS, strlen(FLOATS), true, floats, 3, &why), 0);
        ck_assert(floats[0] == 1.0 && floats[1] == 0.1 && floats[2] == -1e300);
        ck_assert_int_eq(json_numbers_read("[true,false]", 12, false, integers, 2, &why), 0);
        ck_assert_mem_eq(integers, ((const int64_t[]){ 1, 0 }), 16);
        ck_assert_int_eq(json_numbers_read("7", 1, true, floats, 1, &why), 0);
        ck_assert(floats[0] == 7.0);
        ck_assert_int_eq(json_numbers_read(FLOATS, strlen(FLOATS), false, integers, 3, &why), -EINVAL);
        ck_assert_int_eq(json_numbers_read(INTEGERS, strlen(INTEGERS), false, integers, 3, &why), -EINVAL);
        ck_assert_int_eq(json_numbers_read("[1]", 3, false, integers, 2, &why), -EINVAL);
}
END_TEST

START_TEST(a_path_finds_the_value_that_python_would_find) {
        static const char TEXT[] = "{\"a\":{\"b\":[10,{\"c\":\"found\"}],\"b.c\":5},\"caf\\u00e9\":6,\"twice\":1,"
                                   "\"n\":null, \"twice\":[2]}";
        static const struct {
                const char *path, *value;
        } PATHS[] = {
                { "a.b[0]", "10" },
                { "a.b[1].c", "\"found\"" },
                { "a.b[1]", "{\"c\":\"found\"}" },
                { "a[\"b.c\"]", "5" },
                { "caf\xc3\xa9", "6" },
                { "twice", "[2]" },
                { "twice[0]", "2" },
                { "n", "null" },
                { "", TEXT },
                { "a.b[2]", NULL },
                { "a.x", NULL },
                { "a.b.c", NULL },
                { "n.x", NULL },
                { "[0]", NULL },
                { "twice[00000000000000000001]", NULL },
        };
        struct json_token value;

        for (size_t i = 0; i < ARRAY_SIZE(PATHS); i++) {
                ck_assert_int_eq(json_path_check(PATHS[i].path, &why), 0);
                ck_assert_int_eq(json_find(TEXT, strlen(TEXT), PATHS[i].path, &value, &why),
                                 PATHS[i].value ? 0 : JSON_ABSENT);
                if (!PATHS[i].value)
                        continue;
                ck_assert_uint_eq(value.n_bytes, strlen(PATHS[i].value));
                ck_assert_mem_eq(value.bytes, PATHS[i].value, value.n_bytes);
        }
        ck_assert_int_eq(json_find("[[1,2],[3]]", 11, "[1][0]", &value, &why), 0);
        ck_assert_int_eq(value.bytes[0], '3');
        ck_assert_int_eq(json_find("{\"a\":1,}", 8, "a", &value, &why), -EBADMSG);
}
END_TEST

START_TEST(a_wrong_path_is_refused) {
        static const char *const PATHS[] = {
                ".a", "a.", "a..b", "a[", "a[]", "a[x]", "a[1", "a[1]b", "a[-1]", "a[\"b]", "a[99999999999999999999]"
        };

        for (size_t i = 0; i < ARRAY_SIZE(PATHS); i++) {
                why.text[0] = '\0';
                ck_assert_msg(json_path_check(PATHS[i], &why) == -EINVAL, "%s", PATHS[i]);
                ck_assert_msg(strstr(why.text, PATHS[i]) != NULL, "%s", why.text);
        }
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "scan", each_kind_of_token_is_told },
                { "scan", what_is_malformed_is_refused_with_its_place },
                { "scan", depth_and_length_are_bounded },
                { "scan", pieces_of_any_size_give_the_same_tokens },
                { "scan", skipping_ends_after_the_array_or_object },
                { "value", text_is_unescaped_into_utf_8 },
                { "value", half_a_surrogate_pair_is_no_text },
                { "value", whole_numbers_are_exact_or_refused },
                { "value", floats_are_those_of_strtod_to_the_last_bit },
                { "value", decimals_are_read_by_themselves_or_not_at_all },
                { "value", arrays_have_a_shape_and_a_kind },
                { "value", arrays_are_read_in_c_order },
                { "path", a_path_finds_the_value_that_python_would_find },
                { "path", a_wrong_path_is_refused },
        };

        return suite_run("json", rows, ARRAY_SIZE(rows));
}
