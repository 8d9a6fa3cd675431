/* The plan of a staging: its text as users write it, what is refused of it and with which words, and how much time and
 * memory a million files take. */

#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/store/plan/plan.h"
#include "daemon/store/record/origin_kind.h"
#include "daemon/store/record/url.h"
#include "proto/base/cleanup.h"
#include "tests/support/suite.h"

#define BASE  "https://origin.example/data/manifest.jsonl"
#define SHA_A "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define SHA_B "00112233445566778899AABBCCDDEEFF00112233445566778899AABBCCDDEEFF"

static struct plan *parse_as(const char *text, size_t n_bytes, bool unpack) {
        struct plan *plan = NULL;
        struct why why = { 0 };
        int r = plan_parse(text, n_bytes, "m.jsonl", BASE, unpack, &plan, &why);

        ck_assert_msg(r == 0, "%d: %s", r, why.text);
        return plan;
}

static struct plan *parse(const char *text) {
        return parse_as(text, strlen(text), false);
}

/* A manifest of one file whose path, as bytes in JSON, is this. */
static int parse_path(const char *path, struct why *why) {
        static char text[4 * PATH_MAX];
        struct plan *plan = NULL;
        int r;

        snprintf(text, sizeof(text), "{\"path\":\"%s\",\"size\":1}\n", path);
        r = plan_parse(text, strlen(text), "m.jsonl", BASE, false, &plan, why);
        plan_free(plan);
        return r;
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

START_TEST(a_manifest_is_read_whatever_editor_wrote_it) {
        static const char TEXT[] = "\xef\xbb\xbf{\"path\":\"b.jpg\",\"size\":5}\r\n"
                                   "\r\n"
                                   "  \t\n"
                                   " { \"size\" : 1e3 , \"path\" : \"a/\\u00e9.jpg\", \"colour\": [1, {\"x\": null}],"
                                   " \"sha256\": \"" SHA_B "\", \"etag\": null } \n"
                                   "{\"path\":\"c.tar\",\"size\":0,\"urls\":[\"s3://bucket/c\",\"http://h/c?v=1\"],"
                                   "\"etag\":\"\\\"x\\\"\"}"; /* and no newline at the end */
        _cleanup_(plan_freep) struct plan *plan = parse_as(TEXT, sizeof(TEXT) - 1, true);
        const struct plan_file *file = plan_file(plan, 0);

        ck_assert_uint_eq(plan_n_files(plan), 3);
        ck_assert_uint_eq(plan_n_bytes(plan), 1005);
        ck_assert_str_eq(file->path, "a/\xc3\xa9.jpg");
        ck_assert_uint_eq(file->n_bytes, 1000);
        ck_assert_uint_eq(file->sha256[15], 0xff);
        ck_assert_uint_eq(file->sha256[17], 0x11);
        ck_assert_ptr_null(file->etag);
        ck_assert_uint_eq(file->n_urls, 1);
        ck_assert_str_eq(file->urls[0], "https://origin.example/data/a/%C3%A9.jpg");
        ck_assert(!file->unpack);
        file = plan_file(plan, 2);
        ck_assert_uint_eq(file->n_urls, 2);
        ck_assert_str_eq(file->urls[1], "http://h/c?v=1");
        ck_assert_str_eq(file->etag, "\"x\"");
        ck_assert(file->unpack);
        ck_assert_int_eq(plan_find(plan, "b.jpg"), 1);
        ck_assert_int_eq(plan_find(plan, "b.jp"), -1);
        ck_assert_int_eq(plan_find(plan, "zzz"), -1);
}
END_TEST

START_TEST(a_plan_is_written_and_read_again_as_the_same_bytes) {
        _cleanup_(plan_freep) struct plan *plan = parse(
                "{\"path\":\"z/quote\\\"back\\\\slash\",\"size\":9007199254740991,\"etag\":\"\\\"a\\\"\"}\n"
                "{\"path\":\"a.zip\",\"size\":1,\"unpack\":false,\"sha256\":\"" SHA_A "\"}\n"
                "{\"path\":\"b.tgz\",\"size\":2,\"unpack\":true}\n"
                "{\"path\":\"c\",\"size\":3,\"urls\":[\"file:///x/%20y\",\"s3://b/k\"],"
                "\"http_last_modified\":\"Sun, 06 Nov 1994 08:49:37 GMT\"}\n");
        _cleanup_(plan_freep) struct plan *again = NULL;
        _cleanup_(freep) char *text = NULL, *text_again = NULL;
        size_t n_bytes, n_again;

        ck_assert_int_eq(plan_write(plan, &text, &n_bytes), 0);
        again = parse_as(text, n_bytes, true); /* what is not to be unpacked says so itself */
        ck_assert_int_eq(plan_write(again, &text_again, &n_again), 0);
        ck_assert_uint_eq(n_bytes, n_again);
        ck_assert_str_eq(text, text_again);
        ck_assert_str_eq(plan_digest(plan), plan_digest(again));
        ck_assert_uint_eq(strlen(plan_digest(plan)), 64);
        ck_assert_str_eq(plan_state(plan), plan_state(again));
}
END_TEST

START_TEST(a_date_changes_the_state_of_a_plan_and_not_its_digest) {
        _cleanup_(plan_freep) struct plan *none = parse("{\"path\":\"a\",\"size\":1}\n");
        _cleanup_(plan_freep) struct plan *one = parse("{\"path\":\"a\",\"size\":1,\"http_last_modified\":\"x\"}\n");
        _cleanup_(plan_freep) struct plan *other = parse("{\"path\":\"a\",\"size\":1,\"http_last_modified\":\"y\"}\n");

        ck_assert_str_eq(plan_digest(one), plan_digest(none));
        ck_assert_str_eq(plan_digest(one), plan_digest(other));
        ck_assert_str_eq(plan_state(none), plan_digest(none));
        ck_assert_str_ne(plan_state(one), plan_state(none));
        ck_assert_str_ne(plan_state(one), plan_state(other));
}
END_TEST

static const struct {
        const char *text;
        bool is_same;
} DIGESTS[] = {
        { "{\"path\":\"b\",\"size\":2}\n{\"path\":\"a\",\"size\":1,\"etag\":\"e\"}\n", true },
        { "{\"path\":\"a\",\"size\":1,\"etag\":\"e\",\"urls\":[\"http://mirror/a\"]}\n{\"path\":\"b\",\"size\":2}\n",
          true },
        { "{\"path\":\"a\",\"size\":1,\"etag\":\"f\"}\n{\"path\":\"b\",\"size\":2}\n", false },
        { "{\"path\":\"a\",\"size\":1,\"etag\":\"e\"}\n{\"path\":\"b\",\"size\":3}\n", false },
        { "{\"path\":\"a\",\"size\":1,\"etag\":\"e\"}\n{\"path\":\"c\",\"size\":2}\n", false },
        { "{\"path\":\"a\",\"size\":1,\"etag\":\"e\"}\n", false },
        { "{\"path\":\"a\",\"size\":1,\"etag\":\"e\",\"unpack\":true}\n{\"path\":\"b\",\"size\":2}\n", false },
        { "{\"path\":\"a\",\"size\":1,\"etag\":\"e\",\"sha256\":\"" SHA_A "\"}\n{\"path\":\"b\",\"size\":2}\n", false },
};

START_TEST(the_digest_is_of_the_content_not_of_where_it_comes_from) {
        _cleanup_(plan_freep) struct plan *first = parse(
                "{\"path\":\"a\",\"size\":1,\"etag\":\"e\"}\n{\"path\":\"b\",\"size\":2}\n");
        _cleanup_(plan_freep) struct plan *other = parse(DIGESTS[_i].text);

        ck_assert_int_eq(strcmp(plan_digest(first), plan_digest(other)) == 0, DIGESTS[_i].is_same);
}
END_TEST

/* ---- refusing ------------------------------------------------------------------------------------------------ */

static const struct {
        const char *text, *says;
} NO_MANIFESTS[] = {
        { "", "no file" },
        { "\n \r\n", "no file" },
        { "<!DOCTYPE html><html>", "HTML" },
        { "\xef\xbb\xbf\r\n <?xml version='1.0'?>", "HTML" },
        { "{\"path\":\"a\",\"size\":1}\nsurprise\n", "m.jsonl:2: \"surprise\" is not a JSON object" },
        { "[{\"path\":\"a\",\"size\":1}]", "not a JSON object" },
        { "{", "not a JSON object" },
        { "{\"path\":\"a\",\"size\":1} {\"path\":\"b\",\"size\":1}", "not a JSON object" },
        { "{\"path\":\"a\",\"size\":1},", "not a JSON object" },
        { "{\"path\":\"a\"}", "\"size\"" },
        { "{\"path\":\"a\",\"size\":\"1\"}", "\"size\"" },
        { "{\"path\":\"a\",\"size\":-1}", "\"size\"" },
        { "{\"path\":\"a\",\"size\":1.5}", "\"size\"" },
        { "{\"path\":\"a\",\"size\":1e400}", "\"size\"" },
        { "{\"path\":\"a\",\"size\":9007199254740993}", "2^53" },
        { "{\"size\":1}", "no \"path\"" },
        { "{\"path\":7,\"size\":1}", "\"path\" must be a text" },
        { "{\"path\":\"a\",\"path\":\"b\",\"size\":1}", "\"path\" is there twice" },
        { "{\"path\":\"a\",\"size\":1,\"size\":1}", "\"size\" is there twice" },
        { "{\"path\":\"a\\u0000b\",\"size\":1}", "NUL" },
        { "{\"path\":\"a\",\"size\":1,\"sha256\":\"12\"}", "64 hexadecimal digits" },
        { "{\"path\":\"a\",\"size\":1,\"sha256\":\"x0112233445566778899aabbccddeeff00112233445566778899aabbccddeeff\"}",
          "64 hexadecimal digits" },
        { "{\"path\":\"a\",\"size\":1,\"sha256\":17}", "64 hexadecimal digits" },
        { "{\"path\":\"a\",\"size\":1,\"urls\":\"http://h/a\"}", "must be a list" },
        { "{\"path\":\"a\",\"size\":1,\"urls\":[]}", "\"urls\" is empty" },
        { "{\"path\":\"a\",\"size\":1,\"urls\":[1]}", "list of 1 to 16 texts" },
        { "{\"path\":\"a\",\"size\":1,\"urls\":[\"http://h\",\"http://h\",\"http://h\",\"http://h\",\"http://h\","
          "\"http://h\",\"http://h\",\"http://h\",\"http://h\",\"http://h\",\"http://h\",\"http://h\",\"http://h\","
          "\"http://h\",\"http://h\",\"http://h\",\"http://h\"]}",
          "list of 1 to 16 texts" },
        { "{\"path\":\"a\",\"size\":1,\"urls\":[\"gopher://h/a\"]}", "it must be http" },
        { "{\"path\":\"a\",\"size\":1,\"urls\":[\"a.jpg\"]}", "not a URL" },
        { "{\"path\":\"a\",\"size\":1,\"urls\":[\"http://h/a\\nb\"]}", "control characters" },
        { "{\"path\":\"a\",\"size\":1,\"urls\":[\"http:///a\"]}", "no host" },
        { "{\"path\":\"a\",\"size\":1,\"urls\":[\"s3:///a\"]}", "no bucket" },
        { "{\"path\":\"a\",\"size\":1,\"urls\":[\"file://h/a\"]}", "another host" },
        { "{\"path\":\"a\",\"size\":1,\"etag\":5}", "\"etag\"" },
        { "{\"path\":\"a\",\"size\":1,\"etag\":\"\"}", "ETag" },
        { "{\"path\":\"a\",\"size\":1,\"etag\":\"a\\nb\"}", "ETag" },
        { "{\"path\":\"a\",\"size\":1,\"unpack\":\"yes\"}", "\"unpack\"" },
        { "{\"path\":\"a\",\"size\":1}\n{\"path\":\"b\",\"size\":1}\n{\"path\":\"a\",\"size\":1}\n",
          "\"a\" is listed twice" },
        { "{\"path\":\"x/Cat.jpg\",\"size\":1}\n{\"path\":\"x/cAT.jpg\",\"size\":1}\n", "differ in case alone" },
        { "{\"path\":\"\\u00c9t\\u00e9\",\"size\":1}\n{\"path\":\"\\u00e9T\\u00c9\",\"size\":1}\n",
          "differ in case alone" },
        { "{\"path\":\"a/b\",\"size\":1}\n{\"path\":\"a/b.c\",\"size\":1}\n{\"path\":\"a/b/c\",\"size\":1}\n",
          "\"a/b\" is a file, but \"a/b/c\" needs a folder" },
        { "{\"path\":\"A\",\"size\":1}\n{\"path\":\"a/b/c/d\",\"size\":1}\n", "\"A\" is a file" },
};

START_TEST(what_is_no_manifest_is_refused_with_its_line_and_the_reason) {
        struct plan *plan = NULL;
        struct why why = { 0 };

        ck_assert_int_eq(
                plan_parse(NO_MANIFESTS[_i].text, strlen(NO_MANIFESTS[_i].text), "m.jsonl", BASE, false, &plan, &why),
                -EINVAL);
        ck_assert_msg(strncmp(why.text, "m.jsonl:", 8) == 0 && strstr(why.text, NO_MANIFESTS[_i].says), "%s (not: %s)",
                      why.text, NO_MANIFESTS[_i].says);
        ck_assert_ptr_null(plan);
}
END_TEST

static const char *const NO_PATHS[] = { "",
                                        "/etc/passwd",
                                        "../a",
                                        "a/../b",
                                        "a/..",
                                        "./a",
                                        "a/./b",
                                        ".",
                                        "a//b",
                                        "a/",
                                        "a\x01",
                                        "a\\nb",
                                        "a\\u007f",
                                        "a\\u0085b",
                                        "a\xff",
                                        "a\xc0\xaf",
                                        "a\xe0\x80\xaf",
                                        "a\xf0\x80\x80\xaf",
                                        "a\xf0\x8f\xbf\xbf",
                                        "\xe2\x82",
                                        "a\xed\xa0\x80",
                                        "a\xf4\x90\x80\x80",
                                        PLAN_UNFINISHED "a",
                                        PLAN_UNFINISHED "a/b" };

START_TEST(a_path_that_may_not_be_is_refused_by_name) {
        struct why why = { 0 };

        ck_assert_int_eq(parse_path(NO_PATHS[_i], &why), -EINVAL);
        ck_assert_msg(strncmp(why.text, "m.jsonl:1: path \"", 17) == 0, "%s", why.text);
}
END_TEST

START_TEST(unusual_paths_that_may_be_are_allowed) {
        static const char *const PATHS[] = {
                "..a",        "a..", "...", "a b", ".hidden", "a/" PLAN_UNFINISHED "b", "\\\\", "\xf0\x9f\x90\x88.jpg",
                "a\\\\u0000b"
        };
        struct why why = { 0 };

        for (size_t i = 0; i < ARRAY_SIZE(PATHS); i++)
                ck_assert_msg(parse_path(PATHS[i], &why) == 0, "%s", why.text);
}
END_TEST

START_TEST(long_paths_and_names_are_bounded_and_the_reason_still_shows) {
        char path[PATH_MAX + 8];
        struct why why = { 0 };

        memset(path, 'n', sizeof(path));
        path[255] = '\0';
        ck_assert_int_eq(parse_path(path, &why), 0);
        path[255] = 'n';
        path[256] = '\0';
        ck_assert_int_eq(parse_path(path, &why), -EINVAL);
        ck_assert_ptr_nonnull(strstr(why.text, "255 bytes"));

        for (size_t i = 0; i < sizeof(path); i++)
                path[i] = i % 100 == 99 ? '/' : 'n';
        path[PATH_MAX - 1] = '\0';
        ck_assert_int_eq(parse_path(path, &why), 0);
        path[PATH_MAX - 1] = 'n';
        path[PATH_MAX] = '\0';
        ck_assert_int_eq(parse_path(path, &why), -EINVAL);
        ck_assert_ptr_nonnull(strstr(why.text, "longer than paths may be"));
}
END_TEST

START_TEST(no_password_and_no_signature_gets_into_a_message_or_a_plan) {
        static const char *const URLS[] = { "https://me:s3cret@h/a",
                                            "https://s3cret@h/a",
                                            "ftp://h/a?token=s3cret",
                                            "http:///?X-Amz-Signature=s3cret",
                                            "nothing?s3cret",
                                            "https://me:s3cret@h/a\nb",
                                            "me:x@s3cret" };
        struct url address;

        for (size_t i = 0; i < ARRAY_SIZE(URLS); i++) {
                struct why why = { 0 };

                ck_assert_int_eq(url_parse(URLS[i], &address, &why), -EINVAL);
                ck_assert_msg(why.text[0] && !strstr(why.text, "s3cret"), "%s", why.text);
        }
}
END_TEST

START_TEST(an_endless_line_is_refused_and_depth_is_bounded) {
        const size_t n_bytes = 8u << 20;
        _cleanup_(freep) char *text = malloc(n_bytes);
        struct plan *plan = NULL;
        struct why why = { 0 };

        ck_assert_ptr_nonnull(text);
        memset(text, 'x', n_bytes);
        ck_assert_int_eq(plan_parse(text, n_bytes, "m", BASE, false, &plan, &why), -EINVAL);
        ck_assert_ptr_nonnull(strstr(why.text, "m:1: the line is longer"));
        memset(text, '[', n_bytes);
        ck_assert_int_eq(plan_parse(text, PLAN_LINE_MAX, "m", BASE, false, &plan, &why), -EINVAL);
        memset(text, '\n', n_bytes);
        ck_assert_int_eq(plan_parse(text, n_bytes, "m", BASE, false, &plan, &why), -EINVAL);
        memset(text, '\0', n_bytes);
        ck_assert_int_eq(plan_parse(text, 100, "m", BASE, false, &plan, &why), -EINVAL);
}
END_TEST

START_TEST(without_a_base_each_line_says_where_its_file_lies) {
        static const char WITH[] = "{\"path\":\"a\",\"size\":1,\"urls\":[\"http://h/a\"]}\n";
        static const char WITHOUT[] = "{\"path\":\"b\",\"size\":1}\n";
        struct plan *plan = NULL;
        struct why why = { 0 };

        ck_assert_int_eq(plan_parse(WITHOUT, strlen(WITHOUT), "m", NULL, false, &plan, &why), -EINVAL);
        ck_assert_ptr_nonnull(strstr(why.text, "where the file is"));
        ck_assert_int_eq(plan_parse(WITH, strlen(WITH), "m", NULL, false, &plan, &why), 0);
        plan_free(plan);
        ck_assert_int_eq(plan_parse(WITHOUT, strlen(WITHOUT), "m", "http://h", false, &plan, &why), 0);
        ck_assert_str_eq(plan_file(plan, 0)->urls[0], "http://h/b");
        plan_free(plan);
        ck_assert_int_eq(plan_parse(WITHOUT, strlen(WITHOUT), "m", "http://h/x/y?list=/1", false, &plan, &why), 0);
        ck_assert_str_eq(plan_file(plan, 0)->urls[0], "http://h/x/b");
        plan_free(plan);
        ck_assert_int_eq(
                plan_parse("{\"path\":\"b +%?\",\"size\":1}", 25, "m", "s3://bucket/x?/m.jsonl", false, &plan, &why),
                0);
        ck_assert_str_eq(plan_file(plan, 0)->urls[0], "s3://bucket/x?/b +%?"); /* keys are as they are */
        plan_free(plan);
}
END_TEST

START_TEST(a_builder_refuses_sizes_and_urls_that_cannot_be_and_is_empty_after_it_finished) {
        const char *urls[PLAN_URLS_MAX + 1] = { "http://h/a" };
        struct plan_file file = { .path = "a", .n_bytes = PLAN_SIZE_UNKNOWN, .urls = urls, .n_urls = 1 };
        _cleanup_(plan_freep) struct plan *begun = NULL;
        struct plan *plan = NULL;
        struct why why = { 0 };

        ck_assert_int_eq(plan_finish(&begun, &plan, &why), -EINVAL);
        ck_assert_int_eq(plan_add(&begun, &file, &why), 0);
        ck_assert_int_eq(plan_finish(&begun, &plan, &why), -EINVAL);
        ck_assert_str_eq(why.text, "path \"a\" has no size");
        ck_assert_int_eq(plan_finish(&begun, &plan, &why), -EINVAL);
        ck_assert_str_eq(why.text, "it has no files");
        file.n_bytes = PLAN_BYTES_MAX;
        ck_assert_int_eq(plan_add(&begun, &file, &why), -EINVAL);
        file.n_bytes = 1;
        file.n_urls = 0;
        ck_assert_int_eq(plan_add(&begun, &file, &why), -EINVAL);
        file.n_urls = PLAN_URLS_MAX + 1;
        ck_assert_int_eq(plan_add(&begun, &file, &why), -EINVAL);
        file.n_urls = 1;
        ck_assert_int_eq(plan_add(&begun, &file, &why), 0);
        ck_assert_int_eq(plan_finish(&begun, &plan, &why), 0);
        plan_free(plan);
}
END_TEST

START_TEST(archives_are_known_by_their_names) {
        ck_assert(origin_is_archive("a/b.TAR.Gz") && origin_is_archive("x.zip") && origin_is_archive("x.tar.zst"));
        ck_assert(!origin_is_archive("a.tar/b") && !origin_is_archive(".zip") && !origin_is_archive("a/.tar") &&
                  !origin_is_archive("tar") && !origin_is_archive("a.jpg") && !origin_is_archive(""));
}
END_TEST

START_TEST(any_text_survives_encoding_and_decoding) {
        char plain[256], encoded[3 * 256], again[3 * 256];

        for (int i = 0; i < 255; i++)
                plain[i] = (char)(i + 1);
        plain[255] = '\0';
        ck_assert_int_eq(url_decode(encoded, url_encode_value(plain, encoded), again), 255);
        ck_assert_str_eq(plain, again);
        ck_assert_int_eq(url_decode("a%2", 3, again), -EINVAL);
        ck_assert_int_eq(url_decode("a%", 2, again), -EINVAL);
        ck_assert_int_eq(url_decode("%zz", 3, again), -EINVAL);
        ck_assert_int_eq(url_decode("%00", 3, again), -EINVAL);
        ck_assert_int_eq(url_decode("%41+", 4, again), 2);
        ck_assert_str_eq(again, "A+");
}
END_TEST

/* ---- many ---------------------------------------------------------------------------------------------------- */

static char *many_lines(uint64_t n_files, size_t *ret_n_bytes) {
        char *text = NULL;
        FILE *out = open_memstream(&text, ret_n_bytes);

        ck_assert_ptr_nonnull(out);
        for (uint64_t i = 0; i < n_files; i++) /* shuffled: 7919 has no divisor in common with a power of ten */
                fprintf(out,
                        "{\"path\":\"train/class%03llu/image%08llu.jpg\",\"size\":%llu,\"sha256\":\"" SHA_A "\"}\n",
                        (unsigned long long)(i * 7919 % n_files % 1000), (unsigned long long)(i * 7919 % n_files),
                        (unsigned long long)i);
        fclose(out);
        return text;
}

START_TEST(many_files_take_their_texts_and_little_more) {
        const uint64_t n_files = 100000;
        size_t n_bytes = 0, n_before, n_after, n_texts = 0;
        _cleanup_(freep) char *text = many_lines(n_files, &n_bytes);
        _cleanup_(plan_freep) struct plan *plan = NULL;

        n_before = mallinfo2().uordblks + mallinfo2().hblkhd;
        plan = parse_as(text, n_bytes, false);
        n_after = mallinfo2().uordblks + mallinfo2().hblkhd;
        ck_assert_uint_eq(plan_n_files(plan), n_files);
        for (uint64_t i = 0; i < n_files; i++) {
                n_texts += strlen(plan_file(plan, i)->path) + strlen(plan_file(plan, i)->urls[0]) + 2;
                if (i > 0)
                        ck_assert_int_lt(strcmp(plan_file(plan, i - 1)->path, plan_file(plan, i)->path), 0);
        }
        /* Not under the sanitizers, whose malloc counts elsewhere. */
        ck_assert_uint_lt(n_after - n_before, n_texts + n_files * 110 + (4u << 20));
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "reading", a_manifest_is_read_whatever_editor_wrote_it },
                { "reading", a_plan_is_written_and_read_again_as_the_same_bytes },
                { "reading", the_digest_is_of_the_content_not_of_where_it_comes_from, ARRAY_SIZE(DIGESTS) },
                { "reading", a_date_changes_the_state_of_a_plan_and_not_its_digest },
                { "reading", without_a_base_each_line_says_where_its_file_lies },
                { "refusing", what_is_no_manifest_is_refused_with_its_line_and_the_reason, ARRAY_SIZE(NO_MANIFESTS) },
                { "refusing", a_path_that_may_not_be_is_refused_by_name, ARRAY_SIZE(NO_PATHS) },
                { "refusing", unusual_paths_that_may_be_are_allowed },
                { "refusing", long_paths_and_names_are_bounded_and_the_reason_still_shows },
                { "refusing", no_password_and_no_signature_gets_into_a_message_or_a_plan },
                { "refusing", an_endless_line_is_refused_and_depth_is_bounded },
                { "refusing", a_builder_refuses_sizes_and_urls_that_cannot_be_and_is_empty_after_it_finished },
                { "names", archives_are_known_by_their_names },
                { "names", any_text_survives_encoding_and_decoding },
                { "many", many_files_take_their_texts_and_little_more },
        };

        return suite_run("plan", rows, ARRAY_SIZE(rows));
}
