/* Listings of object stores and of a hub, and patterns of their names, without a network. Real ones are asked in
 * tests/integration/test_origins.py and test_hub.py. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "tests/support/no_web.h"
#include "tests/support/suite.h"

/* ---- object stores ------------------------------------------------------------------------------------------- */

#define XML        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
#define RESULT     XML "<ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
#define ENCODED    "<EncodingType>url</EncodingType>"
#define WHOLE      "<IsTruncated>false</IsTruncated>"
#define END_RESULT "</ListBucketResult>"
#define OBJECT(key, size)                                                                                              \
        "<Contents><Key>" key "</Key><LastModified>2026-01-01</LastModified><ETag>&quot;e&quot;</ETag><Size>" size     \
        "</Size><Owner><ID>x</ID><DisplayName>Key</DisplayName></Owner></Contents>"

START_TEST(an_object_stores_listing_is_read_to_its_end) {
        struct plan *plan;

        web_is(RESULT ENCODED
               "<IsTruncated>true</IsTruncated><NextContinuationToken>1/+ a=</NextContinuationToken>" OBJECT(
                       "train/a%2Fb+c%2B.jpg", "12") OBJECT("train/cat/", "0") END_RESULT,
               /* and here the encoding is said after the keys */
               RESULT WHOLE OBJECT("train/zebra%25.tar", "9007199254740991") ENCODED END_RESULT);
        plan = survey(&(struct origin_options){ .url = "s3://b/train", .kind = "auto", .unpack = "yes" });
        ck_assert_uint_eq(plan_n_files(plan), 2);
        is_file(plan, 0, "a/b c+.jpg", "s3://b/train/a/b c+.jpg");
        is_file(plan, 1, "zebra%.tar", "s3://b/train/zebra%.tar");
        ck_assert_str_eq(plan_file(plan, 0)->etag, "\"e\"");
        ck_assert_uint_eq(plan_file(plan, 0)->n_bytes, 12);
        ck_assert(!plan_file(plan, 0)->unpack && plan_file(plan, 1)->unpack);
        ck_assert_uint_eq(web.n_asked, 2);
        ck_assert_str_eq(web.asked[0], "s3://b?encoding-type=url&list-type=2&max-keys=1000&prefix=train%2F");
        ck_assert_str_eq(web.asked[1], "s3://b?continuation-token=1%2F%2B%20a%3D&encoding-type=url&list-type=2"
                                       "&max-keys=1000&prefix=train%2F");
        plan_free(plan);

        web_is(RESULT WHOLE OBJECT("100%+.jpg", "1") END_RESULT, NULL); /* a store that does not encode */
        plan = survey_url("s3://b");
        is_file(plan, 0, "100%+.jpg", "s3://b/100%+.jpg");
        ck_assert_str_eq(web.asked[0], "s3://b?encoding-type=url&list-type=2&max-keys=1000");
        plan_free(plan);
}
END_TEST

static const struct {
        const char *xml;
        int error;
        const char *says;
} NO_LISTINGS[] = {
        { "", -EINVAL, "not valid XML" },
        { "hello", -EINVAL, "not valid XML" },
        { "<html><body/></html>", -EINVAL, "<html> instead" },
        { "<!DOCTYPE html><html></html>", -EINVAL, "document type" },
        { XML "<!DOCTYPE l [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;&a;&a;&a;&a;\">]>"
              "<ListBucketResult><Contents><Key>&b;</Key></Contents></ListBucketResult>",
          -EINVAL, "document type" },
        { XML "<!DOCTYPE l SYSTEM \"file:///etc/passwd\"><ListBucketResult/>", -EINVAL, "document type" },
        { XML "<Error><Code>NoSuchBucket</Code><Message>The bucket is gone</Message></Error>", -ENOENT,
          "NoSuchBucket: The bucket is gone" },
        { XML "<Error><Code>SignatureDoesNotMatch</Code></Error>", -EACCES, "secret key" },
        { XML "<Error><Code>SlowDown</Code></Error>", -EPROTO, "SlowDown" },
        { XML "<Error/>", -EPROTO, "an error without code" },
        { RESULT WHOLE END_RESULT, -EINVAL, "nothing below it" },
        { RESULT WHOLE OBJECT("p/", "0") END_RESULT, -EINVAL, "nothing below it" },
        { RESULT WHOLE OBJECT("p/a", "1") "</Wrong>", -EINVAL, "not valid XML" },
        { RESULT WHOLE OBJECT("p/a", "1"), -EINVAL, "not valid XML" },
        { RESULT "<IsTruncated>true</IsTruncated>" OBJECT("p/a", "1") END_RESULT, -EPROTO, "goes on after 1 files" },
        { RESULT "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>" OBJECT("p/a", "1")
                  END_RESULT,
          -EPROTO, "begins again at \"p/a\"" },
        { RESULT "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>" END_RESULT, -EPROTO,
          "goes on after 0 files" },
        { RESULT WHOLE OBJECT("q/a", "1") END_RESULT, -EINVAL, "not below it" },
        { RESULT WHOLE OBJECT("p/../../etc/passwd", "1") END_RESULT, -EINVAL, "\"..\"" },
        { RESULT WHOLE OBJECT("p//etc/passwd", "1") END_RESULT, -EINVAL, "absolute" },
        { RESULT WHOLE OBJECT("p/a", "-1") END_RESULT, -EINVAL, "as the size" },
        { RESULT WHOLE OBJECT("p/a", "99999999999999999999999") END_RESULT, -EINVAL, "as the size" },
        { RESULT WHOLE OBJECT("p/a", "9007199254740992") END_RESULT, -EINVAL, "8 PiB" },
        { RESULT WHOLE OBJECT("p/a", "") END_RESULT, -EINVAL, "no size" },
        { RESULT WHOLE OBJECT("", "1") END_RESULT, -EINVAL, "an empty or too long key" },
        { RESULT WHOLE ENCODED OBJECT("p/a%2", "1") END_RESULT, -EINVAL, "not encoded as it says" },
        { RESULT WHOLE ENCODED OBJECT("p/a%00", "1") END_RESULT, -EINVAL, "not encoded as it says" },
        { RESULT WHOLE ENCODED OBJECT("p/a%FF", "1") END_RESULT, -EINVAL, "not UTF-8" },
        { RESULT WHOLE OBJECT("p/A", "1") OBJECT("p/a", "1") END_RESULT, -EINVAL, "differ in case alone" },
        { RESULT "<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a>", -EINVAL, "nested" },
};

START_TEST(what_is_no_listing_is_refused_in_a_sentence) {
        web_is(NO_LISTINGS[_i].xml, NULL);
        refused_url("s3://b/p/", NO_LISTINGS[_i].error, NO_LISTINGS[_i].says);
        ck_assert_uint_le(web.n_asked, 2);
}
END_TEST

START_TEST(a_text_without_end_in_a_listing_is_refused) {
        _cleanup_(freep) char *xml = malloc(1u << 20);
        size_t n = (size_t)sprintf(xml, "%s", RESULT "<NextContinuationToken>");

        memset(xml + n, 'x', (1u << 20) - 1 - n);
        xml[(1u << 20) - 1] = '\0';
        web_is(xml, NULL);
        refused_url("s3://b/p", -EINVAL, "more than 4096 bytes");
        web.error = -ENOENT;
        refused_url("s3://b/p", -ENOENT, "s3://b/p: there is no such bucket");
        web.error = -EACCES;
        refused_url("s3://b/p/", -EACCES, "may these credentials list");
}
END_TEST

START_TEST(a_key_that_nothing_is_below_is_an_object_even_if_the_bucket_may_not_be_listed) {
        struct plan *plan;

        web_is(RESULT "</ListBucketResult>", NULL);
        for (int i = 0; i < 2; i++) {
                plan = survey_url("s3://b/d/x.parquet");
                ck_assert_uint_eq(plan_n_files(plan), 1);
                is_file(plan, 0, "x.parquet", "s3://b/d/x.parquet");
                plan_free(plan);
                web.error = -EACCES;
        }
        web.bad[0] = "x.parquet";
        refused_url("s3://b/d/x.parquet", -EACCES, "may these credentials list");
        web.error = 0;
        refused_url("s3://b/d/x.parquet", -EINVAL, "no such object, and nothing below it");
        refused(&(struct origin_options){ .url = "s3://b/d/y.parquet", .kind = "s3", .unpack = "no" }, -EINVAL,
                "nothing below it");
}
END_TEST

/* ---- patterns ------------------------------------------------------------------------------------------------ */

#define SHARDS OBJECT("p/x-000.tar", "1") OBJECT("p/x-001.tar", "1") OBJECT("p/x-002.tar", "1")
#define OTHERS OBJECT("p/x?.txt", "1") OBJECT("p/xd/", "0") OBJECT("p/xd/deep/a.tar", "1")

static const struct {
        const char *url, *prefix;
        const char *paths[6]; /* in the plan */
        const char *says;     /* instead */
} PATTERNS[] = {
        { "s3://b/p/x-{000..001}.tar", "p%2Fx-", { "x-000.tar", "x-001.tar" }, NULL },
        { "s3://b/p/x-{000..001}.tar{,}", "p%2Fx-", { "x-000.tar", "x-001.tar" }, NULL },
        { "s3://b/p/x*.tar", "p%2Fx", { "x-000.tar", "x-001.tar", "x-002.tar" }, NULL },
        { "s3://b/p/x-00?.tar", "p%2Fx-00", { "x-000.tar", "x-001.tar", "x-002.tar" }, NULL },
        { "s3://b/p/**/*.tar", "p%2F", { "x-000.tar", "x-001.tar", "x-002.tar", "xd/deep/a.tar" }, NULL },
        { "s3://b/p/{x-000,xd/**/*}.tar", "p%2F", { "x-000.tar", "xd/deep/a.tar" }, NULL },
        { "gs://b/**", "", { "p/x-000.tar", "p/x-001.tar", "p/x-002.tar", "p/x?.txt", "p/xd/deep/a.tar" }, NULL },
        { "s3://b/p/x-{001..003}.tar", "p%2Fx-", { NULL }, "there is no object \"p/x-003.tar\"" },
        { "s3://b/p/{x*.tar,x*.zip}", "p%2F", { NULL }, "\"p/x*.zip\": nothing matches it" },
        { "s3://b/p/x-{1..", "p%2Fx-", { NULL }, "a brace is not closed" },
        { "s3://b/p/{000..999}{0..9}*", "p%2F", { NULL }, "more than 1000 patterns" },
};

START_TEST(a_pattern_takes_what_it_stands_for_of_a_listing) {
        char query[256];
        struct plan *plan;
        uint64_t n = 0;

        web_is(strncmp(PATTERNS[_i].prefix, "p%2Fx-", 6) == 0 ? RESULT WHOLE SHARDS END_RESULT
                                                              : RESULT WHOLE SHARDS OTHERS END_RESULT,
               NULL);
        if (PATTERNS[_i].says) {
                struct why why = { 0 };
                struct origin_options options = { .url = PATTERNS[_i].url, .kind = "auto", .unpack = "auto" };

                ck_assert_int_lt(origin_survey(NULL, &options, &plan, &why), 0);
                ck_assert_msg(strstr(why.text, PATTERNS[_i].says) != NULL, "%s", why.text);
                return;
        }
        plan = survey_url(PATTERNS[_i].url);
        for (; n < 6 && PATTERNS[_i].paths[n]; n++)
                ck_assert_str_eq(plan_file(plan, n)->path, PATTERNS[_i].paths[n]);
        ck_assert_uint_eq(plan_n_files(plan), n);
        ck_assert(!plan_file(plan, 0)->unpack);
        snprintf(query, sizeof(query), "%.6s?encoding-type=url&list-type=2&max-keys=1000%s%s", PATTERNS[_i].url,
                 PATTERNS[_i].prefix[0] ? "&prefix=" : "", PATTERNS[_i].prefix);
        ck_assert_str_eq(web.asked[0], query);
        plan_free(plan);
}
END_TEST

START_TEST(braces_in_a_web_servers_path_are_files_whose_sizes_are_asked_for) {
        struct plan *plan;

        web_is("", NULL);
        plan = survey_url("https://h/a/{train,val}/x-{08..10}.tar?sig={1}");
        ck_assert_uint_eq(plan_n_files(plan), 6);
        is_file(plan, 0, "train/x-08.tar", "https://h/a/train/x-08.tar?sig={1}");
        is_file(plan, 5, "val/x-10.tar", "https://h/a/val/x-10.tar?sig={1}");
        ck_assert(!plan_file(plan, 0)->unpack);
        ck_assert_uint_eq(web.n_looks, 6);
        ck_assert_uint_eq(web.n_asked, 0);
        plan_free(plan);
        web.bad[0] = "x-09";
        refused_url("https://h/a/x-{08..10}.tar", -ENOENT, "x-09.tar: 404");
        refused_url("https://h/a/x-{08.tar", -EINVAL, "a brace is not closed");
        refused_url("https://h/{a,a}.tar", -EINVAL, "listed twice");
        refused_url("https://h/{0..2000000}", -E2BIG, "smaller range");
}
END_TEST

/* ---- the hub ------------------------------------------------------------------------------------------------- */

#define COMMIT           "0123456789abcdef0123456789abcdef01234567"
#define INFO             "{\"id\":\"o/n\",\"sha\":\"" COMMIT "\"}"
#define DIGEST           "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define BLOB(path, size) "{\"type\":\"file\",\"oid\":\"b10b\",\"size\":" size ",\"path\":\"" path "\"}"
#define LARGE(path, size)                                                                                              \
        "{\"type\":\"file\",\"oid\":\"b10b\",\"size\":134,\"path\":\"" path "\",\"lfs\":{\"oid\":\"" DIGEST            \
        "\",\"size\":" size ",\"pointerSize\":134}}"
#define FOLDER(path) "{\"type\":\"directory\",\"oid\":\"x\",\"size\":0,\"path\":\"" path "\"}"

START_TEST(a_hubs_files_are_of_the_commit_that_the_branch_is_at) {
        struct plan *plan;

        web_is(INFO, "[" FOLDER("d") "," BLOB("d/a b?.txt", "3") "," LARGE("d/e/x.parquet", "7000") "]");
        plan = survey_url("hf://datasets/o/n@refs/pr/7/d");
        ck_assert_uint_eq(plan_n_files(plan), 2);
        is_file(plan, 0, "a b?.txt", "hf://datasets/o/n@" COMMIT "/d/a b?.txt");
        ck_assert_str_eq(plan_file(plan, 0)->etag, "\"b10b\"");
        ck_assert_ptr_null(plan_file(plan, 0)->sha256);
        is_file(plan, 1, "e/x.parquet", "hf://datasets/o/n@" COMMIT "/d/e/x.parquet");
        ck_assert_uint_eq(plan_file(plan, 1)->n_bytes, 7000);
        ck_assert_ptr_null(plan_file(plan, 1)->etag);
        ck_assert_uint_eq(plan_file(plan, 1)->sha256[31], 0x55);
        ck_assert_str_eq(web.asked[0], "hf://api/datasets/o/n/revision/refs%2Fpr%2F7?expand=sha");
        ck_assert_str_eq(web.asked[1], "hf://api/datasets/o/n/tree/" COMMIT "/d?recursive=true&expand=false");
        plan_free(plan);

        web_is(INFO, "[" BLOB("m.jsonl", "3") "]");
        plan = survey_url("hf://datasets/o/n");
        is_file(plan, 0, "m.jsonl", "hf://datasets/o/n@" COMMIT "/m.jsonl");
        plan_free(plan);

        web_is(INFO, "{\"path\":\"a\",\"size\":1}\n"); /* a manifest is of that commit, and what lies beside it */
        plan = survey(
                &(struct origin_options){ .url = "hf://datasets/o/n/d/m.jsonl", .kind = "manifest", .unpack = "no" });
        is_file(plan, 0, "a", "hf://datasets/o/n@" COMMIT "/d/a");
        ck_assert_str_eq(web.asked[1], "hf://datasets/o/n@" COMMIT "/d/m.jsonl");
        plan_free(plan);
}
END_TEST

static const struct {
        const char *info, *tree;
        int error;
        const char *says;
} NO_HUBS[] = {
        { "", "", -EPROTO, "does not say which commit" },
        { "{\"sha\":\"main\"}", "", -EPROTO, "does not say which commit" },
        { "{\"sha\":7}", "", -EPROTO, "does not say which commit" },
        { "{\"id\":\"p/m\",\"sha\":\"" COMMIT "\"}", "", -ENOENT, "is called \"p/m\" now: write hf://datasets/p/m" },
        { INFO, "", -EINVAL, "not valid JSON" },
        { INFO, "{}", -EINVAL, "a JSON array" },
        { INFO, "[]", -ENOENT, "no such file or folder" },
        { INFO, "[" FOLDER("d") "]", -ENOENT, "no such file or folder" },
        { INFO, "[" BLOB("d/a", "1"), -EINVAL, "not valid JSON" },
        { INFO, "[" BLOB("d/a", "1") "] x", -EINVAL, "not valid JSON" },
        { INFO, "[7]", -EINVAL, "an entry without type or path" },
        { INFO, "[{\"type\":\"file\"}]", -EINVAL, "an entry without type or path" },
        { INFO, "[{\"type\":\"file\",\"path\":\"d/a\\u0000b\"}]", -EINVAL, "an entry without type or path" },
        { INFO, "[" BLOB("d/a", "-1") "]", -EINVAL, "\"d/a\" is a file without size" },
        { INFO, "[{\"type\":\"file\",\"path\":\"d/a\",\"size\":1,\"lfs\":{\"oid\":\"abc\",\"size\":1}}]", -EINVAL,
          "without SHA-256" },
        { INFO, "[" BLOB("d/../../a", "1") "]", -EINVAL, "\"..\"" },
        { INFO, "[" BLOB("d/a\\nb", "1") "]", -EINVAL, "control character" },
        { INFO, "[" BLOB("d/a", "1") "," BLOB("d/a/b", "1") "]", -EINVAL, "needs a folder there" },
        { INFO, "[" BLOB("d/b", "1") "," BLOB("d/c", "1") "," BLOB("d/b", "1") "]", -EPROTO,
          "begins again at \"d/b\"" },
};

START_TEST(what_no_hub_says_is_refused_in_a_sentence) {
        web_is(NO_HUBS[_i].info, NO_HUBS[_i].tree);
        refused_url("hf://datasets/o/n/d", NO_HUBS[_i].error, NO_HUBS[_i].says);
        ck_assert_uint_le(web.n_asked, 3);
}
END_TEST

static const struct {
        const char *url, *says;
} NO_DATASETS[] = {
        { "hf://o/n/a", "write hf://datasets/ORG/NAME" },
        { "hf://models/o/n/a", "write hf://datasets/ORG/NAME" },
        { "hf://api/datasets/o/n", "write hf://datasets/ORG/NAME" },
        { "hf://datasets/n", "does not say whose it is" },
        { "hf://datasets/o/n o", "that the hub does not allow" },
        { "hf://datasets/o/n@/a", "no revision after its '@'" },
        { "hf://", "has no repository" },
};

START_TEST(what_names_no_dataset_is_not_asked_for) {
        web_is(INFO, "[]");
        refused_url(NO_DATASETS[_i].url, -EINVAL, NO_DATASETS[_i].says);
        ck_assert_uint_eq(web.n_asked, 0);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "s3", an_object_stores_listing_is_read_to_its_end },
                { "s3", what_is_no_listing_is_refused_in_a_sentence, ARRAY_SIZE(NO_LISTINGS) },
                { "s3", a_text_without_end_in_a_listing_is_refused },
                { "s3", a_key_that_nothing_is_below_is_an_object_even_if_the_bucket_may_not_be_listed },
                { "patterns", a_pattern_takes_what_it_stands_for_of_a_listing, ARRAY_SIZE(PATTERNS) },
                { "patterns", braces_in_a_web_servers_path_are_files_whose_sizes_are_asked_for },
                { "hub", a_hubs_files_are_of_the_commit_that_the_branch_is_at },
                { "hub", what_no_hub_says_is_refused_in_a_sentence, ARRAY_SIZE(NO_HUBS) },
                { "hub", what_names_no_dataset_is_not_asked_for, ARRAY_SIZE(NO_DATASETS) },
        };

        return suite_run("origin_listings", rows, ARRAY_SIZE(rows));
}
