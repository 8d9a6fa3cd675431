/* Surveys of origins without a network: kinds, manifests, lists, folders. What real servers do with these calls is seen
 * in tests/integration/test_origins.py. */

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/fetch/fetch_http.h"
#include "daemon/fetch/origin/origin.h"
#include "daemon/store/record/origin_kind.h"
#include "proto/base/cleanup.h"
#include "tests/support/no_web.h"
#include "tests/support/suite.h"
#include "tests/support/tree.h"

/* ---- kinds --------------------------------------------------------------------------------------------------- */

static const struct {
        const char *url, *kind, *is;
} KINDS[] = {
        { "https://h/m.jsonl", "auto", "manifest" },
        { "https://h/m.NDJSON?version=2", "auto", "manifest" },
        { "https://h/urls.txt", "auto", "list" },
        { "s3://b/urls.list", "auto", "list" },
        { "s3://b", "auto", "s3" },
        { "s3://b/", "auto", "s3" },
        { "s3://b/photos/train", "auto", "s3" },
        { "s3://b/x.tar.zst", "auto", "archive" },
        { "s3://b/{000..127}.tar", "auto", "s3" },
        { "s3://b/*.jsonl", "auto", "s3" },
        { "s3://b/x?.tar", "file", "file" },
        { "gs://b/photos", "auto", "gs" },
        { "gs://b/**/*.tar", "auto", "gs" },
        { "gs://b/m.jsonl", "auto", "manifest" },
        { "gs://b/x", "s3", NULL },
        { "hf://datasets/o/n", "auto", "hf" },
        { "hf://datasets/o/n@main/train.jsonl", "auto", "hf" },
        { "hf://datasets/o/n/readme.txt", "auto", "hf" },
        { "hf://datasets/o/n/x.tar", "auto", "archive" },
        { "hf://datasets/o/n/*.tar", "auto", "hf" },
        { "https://h/a/x-{000..127}.tar", "auto", "file" },
        { "https://h/a/x.tar?sig={1}", "auto", "archive" },
        { "http://h/x.TGZ", "auto", "archive" },
        { "http://h/a/very/long/path/that/is/much/longer/than/sixty-four/bytes/altogether/x.zip", "auto", "archive" },
        { "http://h/model.bin", "auto", "file" },
        { "http://h/x.tar", "file", "file" },
        { "http://h/get?id=7", "archive", "archive" },
        { "file:///", "auto", "folder" },
        { "file:///nowhere/at/all/", "auto", "folder" },
        { "file:///nowhere/x.jsonl", "auto", "manifest" },
        { "FILE://localhost/nowhere", "auto", "file" },
        { "http://h", "auto", NULL },
        { "http://h/data/", "auto", NULL },
        { "http://h/x", "s3", NULL },
        { "http://h/x", "folder", NULL },
        { "http://h/x", "tape", NULL },
        { "http://h/x", "", NULL },
        { "gopher://h/x", "auto", NULL },
        { "/data/x", "auto", NULL },
        { "", "auto", NULL },
        { "http://me:secret@h/x", "file", NULL },
};

START_TEST(the_kind_is_seen_from_the_url_or_said) {
        const char *kind = NULL;
        struct why why = { 0 };
        int r = origin_kind(KINDS[_i].url, KINDS[_i].kind, &kind, &why);

        if (KINDS[_i].is) {
                ck_assert_msg(r == 0, "%s", why.text);
                ck_assert_str_eq(kind, KINDS[_i].is);
                return;
        }
        ck_assert_int_eq(r, -EINVAL);
        ck_assert(why.text[0] && !kind && !strstr(why.text, "secret"));
}
END_TEST

START_TEST(an_unknown_way_to_unpack_is_refused) {
        web_is("", NULL);
        refused(&(struct origin_options){ .url = "http://h/x", .kind = "file", .unpack = "perhaps" }, -EINVAL,
                "auto, yes or no");
}
END_TEST

/* ---- manifests and single files ------------------------------------------------------------------------------ */

START_TEST(files_lie_beside_the_manifest_or_where_redirects_led) {
        struct plan *plan;

        web_is("{\"path\":\"a b\",\"size\":1}\n", NULL);
        plan = survey_url("https://h/data/m.jsonl?key=1");
        is_file(plan, 0, "a b", "https://h/data/a%20b");
        plan_free(plan);
        web.led_to = "https://cdn/v2/m.jsonl?sig=2";
        plan = survey_url("https://h/data/m.jsonl");
        is_file(plan, 0, "a b", "https://cdn/v2/a%20b");
        plan_free(plan);
        web.led_to = "https://endpoint/b/data/m.jsonl"; /* how the store was asked is not how it is named */
        plan = survey_url("s3://b/data/m.jsonl");
        is_file(plan, 0, "a b", "s3://b/data/a b");
        plan_free(plan);
}
END_TEST

static const struct {
        const char *text;
        bool is_data;
} FIRST_LINES[] = {
        { "{\"path\":\"a\",\"size\":1,\"n\":2}\n", false },
        { "\xef\xbb\xbf{\"size\":1,\"path\":\"a\"}\r\n", false },
        { "{\"path\":\"a\",\"size\":1}", false }, /* its line does not end */
        { "{\"text\":\"a\",\"size\":1}\n", true },
        { "{\"path\":\"a.wav\",\"text\":\"b\"}\n{\"path\":\"a\",\"size\":1}\n", true },
        { "{\"path\":\"a\",\"Size\":1}\n", true },
        { "{}\n", true },
};

START_TEST(json_lines_are_a_manifest_if_the_first_one_has_its_keys_and_data_if_not) {
        const char *text = FIRST_LINES[_i].text;
        struct plan *plan;

        web_is(text, NULL);
        plan = survey_url("http://h/d/m.jsonl?x=1");
        if (FIRST_LINES[_i].is_data)
                is_file(plan, 0, "m.jsonl", "http://h/d/m.jsonl?x=1");
        else
                is_file(plan, 0, "a", "http://h/d/a");
        plan_free(plan);
        if (FIRST_LINES[_i].is_data) /* whoever says what it is, is told what is wrong */
                refused(&(struct origin_options){ .url = "http://h/m.jsonl", .kind = "manifest", .unpack = "no" },
                        -EINVAL, "m.jsonl:1: ");
}
END_TEST

START_TEST(a_page_in_place_of_a_manifest_is_said_to_be_one) {
        web_is("<html>log in</html>", NULL);
        refused_url("http://h/m.jsonl", -EINVAL, "http://h/m.jsonl: this is an HTML");
        refused_url("http://h/m.txt", -EINVAL, "http://h/m.txt: this is an HTML");
        web.error = -ETIMEDOUT;
        refused_url("http://h/m.jsonl", -ETIMEDOUT, "the web says no");
}
END_TEST

START_TEST(one_file_has_its_urls_name_and_what_the_server_says_of_it) {
        struct plan *plan;

        web_is("", NULL);
        plan = survey_url("http://h/x/train%20set.tar?v=1");
        is_file(plan, 0, "train set.tar", "http://h/x/train%20set.tar?v=1");
        ck_assert(plan_file(plan, 0)->unpack);
        ck_assert_str_eq(plan_file(plan, 0)->etag, "\"tag\"");
        plan_free(plan);
        plan = survey(&(struct origin_options){ .url = "http://h/x.tar", .kind = "auto", .unpack = "no" });
        ck_assert(!plan_file(plan, 0)->unpack);
        plan_free(plan);
        web.bad[1] = "page";
        refused_url("http://h/page.tar", -EINVAL, "HTML page");
        plan_free(survey_url("http://h/page.html"));
        web.bad[2] = "endless";
        refused_url("http://h/endless.bin", -EINVAL, "does not say how long it is");
        refused_url("http://h/a%2", -EINVAL, "%25");
        refused_url("http://h/a%00b", -EINVAL, "%25");
        refused_url("http://h/a%0Ab", -EINVAL, "control character");
        refused_url("http://h/x/..%2f..", -EINVAL, "\"..\"");
}
END_TEST

/* ---- lists --------------------------------------------------------------------------------------------------- */

START_TEST(a_lists_files_keep_the_folders_in_which_they_differ) {
        struct plan *plan;

        web_is("\xef\xbb\xbf# photographs\r\n"
               "\r\n"
               "  https://one/data/train/cat/1.jpg\r\n"
               "https://two/data/train/cow/a%20b.jpg?sig=x  \n"
               "s3://b/data/train/cat/100%25.tar\n"
               "https://one/data/train/cat/1.jpg.txt",
               NULL);
        plan = survey(&(struct origin_options){ .url = "s3://b/l.txt", .kind = "list", .unpack = "yes" });
        ck_assert_uint_eq(plan_n_files(plan), 4);
        is_file(plan, 0, "cat/1.jpg", "https://one/data/train/cat/1.jpg");
        is_file(plan, 1, "cat/1.jpg.txt", "https://one/data/train/cat/1.jpg.txt");
        is_file(plan, 2, "cat/100%25.tar", "s3://b/data/train/cat/100%25.tar");
        is_file(plan, 3, "cow/a b.jpg", "https://two/data/train/cow/a%20b.jpg?sig=x");
        ck_assert(plan_file(plan, 2)->unpack && !plan_file(plan, 3)->unpack);
        ck_assert_uint_eq(plan_file(plan, 0)->n_bytes, strlen("https://one/data/train/cat/1.jpg"));
        ck_assert_uint_eq(web.n_looks, 4);
        plan_free(plan);

        web_is("http://h/a/b/c.bin\n", NULL); /* of one URL the name is left */
        plan = survey_url("http://h/l.txt");
        is_file(plan, 0, "c.bin", "http://h/a/b/c.bin");
        plan_free(plan);
}
END_TEST

static const struct {
        const char *text, *says;
} NO_LISTS[] = {
        { "", "the list is empty" },
        { "# nothing\n\n", "the list is empty" },
        { "http://h/a\na.jpg\n", "l.txt:2: \"a.jpg\" is not a URL" },
        { "http://h/a\n\nhttp://h/b/\n", "l.txt:3: the URL ends in no file's name" },
        { "http://h\n", "l.txt:1: the URL ends in no file's name" },
        { "http://one/a/x.jpg\nhttp://two/a/x.jpg\n", "listed twice" },
        { "http://h/get?id=1\nhttp://h/get?id=2\n", "listed twice" },
        { "http://h/a/../b\nhttp://h/c/d", "\"..\"" },
        { "http://me:secret@h/a\n", "credentials file" },
        { "http://h/a%zz\n", "%25" },
};

START_TEST(what_is_no_list_is_refused_with_its_line) {
        web_is(NO_LISTS[_i].text, NULL);
        refused_url("http://h/l.txt", -EINVAL, NO_LISTS[_i].says);
}
END_TEST

/* http://h/0000 ... one a line. */
static char *many_urls(unsigned n) {
        char *text = malloc(n * 32 + 1), *at = text;

        for (unsigned i = 0; i < n; i++)
                at += sprintf(at, "http://h/x/%04u\n", i);
        return text;
}

static void on_progress(void *userdata, uint64_t n_files) {
        uint64_t *n_told = userdata;

        ck_assert_uint_ge(n_files, *n_told);
        *n_told = n_files;
}

START_TEST(sizes_are_asked_for_side_by_side_and_no_more_than_said) {
        _cleanup_(freep) char *text = many_urls(2000);
        uint64_t n_told = 0;
        struct plan *plan;

        web_is(text, NULL);
        web.look_us = 200;
        plan = survey(&(struct origin_options){ .url = "http://h/l.txt",
                                                .kind = "auto",
                                                .unpack = "auto",
                                                .n_connections = 5,
                                                .progress = on_progress,
                                                .userdata = &n_told });
        ck_assert_uint_eq(plan_n_files(plan), 2000);
        is_file(plan, 1999, "1999", "http://h/x/1999");
        ck_assert_uint_eq(web.n_looks, 2000);
        ck_assert_uint_gt(web.n_under_way_most, 1);
        ck_assert_uint_le(web.n_under_way_most, 5);
        ck_assert_uint_ge(n_told, 1000);
        plan_free(plan);
}
END_TEST

START_TEST(of_a_lists_bad_urls_one_is_named_and_the_rest_is_not_asked_for) {
        _cleanup_(freep) char *text = many_urls(5000);

        web_is(text, NULL);
        web.look_us = 100;
        web.bad[0] = "/x/0007";
        web.bad[3] = "/x/0003"; /* hangs until it is told to stop */
        refused_url("http://h/l.txt", -ENOENT, "http://h/x/0007: 404");
        ck_assert_uint_lt(web.n_looks, 5000);
}
END_TEST

static void *cancel_soon(void *argument) {
        usleep(20000);
        *(_Atomic bool *)argument = true;
        return NULL;
}

START_TEST(a_survey_ends_when_it_is_cancelled) {
        _Atomic bool cancel = false;
        struct origin_options options = {
                .url = "http://h/l.txt", .kind = "auto", .unpack = "auto", .cancel = &cancel
        };
        pthread_t thread;

        web_is("http://h/slow\nhttp://h/other\n", NULL);
        web.bad[3] = "slow";
        ck_assert_int_eq(pthread_create(&thread, NULL, cancel_soon, &cancel), 0);
        refused(&options, -ECANCELED, "canceled");
        pthread_join(thread, NULL);

        options.url = "file:///usr/include";
        refused(&options, -ECANCELED, "canceled");
}
END_TEST

/* ---- folders ------------------------------------------------------------------------------------------------- */

START_TEST(a_folder_is_walked_with_links_that_stay_inside) {
        char url[128], expected[192];
        struct plan *plan, *again;
        struct tree tree;

        tree_make(&tree);
        tree_file(&tree, "cat/1 %.jpg", "12345");
        tree_file(&tree, "cat/deep/er/2.jpg", "");
        tree_file(&tree, ".hidden", "x");
        tree_dir(&tree, "empty");
        tree_link(&tree, "dog.jpg", "cat/1 %.jpg");
        snprintf(expected, sizeof(expected), "%s/.hidden", tree.root);
        tree_link(&tree, "cat/absolute", expected);
        snprintf(url, sizeof(url), "file://%s", tree.root);

        web_is("", NULL);
        plan = survey_url(url);
        ck_assert_uint_eq(plan_n_files(plan), 5);
        ck_assert_str_eq(plan_file(plan, 0)->path, ".hidden");
        snprintf(expected, sizeof(expected), "%s/cat/1%%20%%25.jpg", url);
        is_file(plan, 1, "cat/1 %.jpg", expected);
        ck_assert_uint_eq(plan_file(plan, 1)->n_bytes, 5);
        ck_assert_str_eq(plan_file(plan, 2)->path, "cat/absolute");
        ck_assert_str_eq(plan_file(plan, 4)->path, "dog.jpg");
        ck_assert_uint_eq(plan_file(plan, 4)->n_bytes, 5);

        /* What changes without another length is another plan. */
        again = survey_url(url);
        ck_assert_str_eq(plan_digest(plan), plan_digest(again));
        plan_free(again);
        tree_age(&tree, "cat/1 %.jpg");
        again = survey_url(url);
        ck_assert_str_ne(plan_digest(plan), plan_digest(again));
        plan_free(again);
        plan_free(plan);
        tree_remove(&tree);
}
END_TEST

static void add_outer_link(const struct tree *tree) {
        tree_link(tree, "a", "/etc/hostname");
}

static void add_climbing_link(const struct tree *tree) {
        tree_link(tree, "d/a", "../../../../../../etc/hostname");
}

static void add_neighbours_link(const struct tree *tree) {
        char path[128];

        snprintf(path, sizeof(path), "%s-other", tree->root); /* begins as the folder does */
        ck_assert_int_ge(mkdir(path, 0755), 0);
        tree_link(tree, "a", path);
        ck_assert_int_eq(symlinkat("/etc/hostname", tree->fd, "b"), 0);
        ck_assert_int_eq(rmdir(path), 0);
}

static void add_loop(const struct tree *tree) {
        tree_link(tree, "a", "a");
}

static void add_folder_link(const struct tree *tree) {
        tree_dir(tree, "e");
        tree_link(tree, "d/a", "../e");
}

static void add_pipe(const struct tree *tree) {
        tree_fifo(tree, "d/pipe");
}

static void add_bad_name(const struct tree *tree) {
        tree_file(tree, "d/\xff.jpg", "x");
}

static void add_newline(const struct tree *tree) {
        tree_file(tree, "d/a\nb", "x");
}

static void add_cases(const struct tree *tree) {
        tree_file(tree, "X.jpg", "x");
        tree_file(tree, "x.jpg", "x");
}

static void add_depth(const struct tree *tree) {
        char path[256] = "";

        for (int i = 0; i < 70; i++)
                strcat(path, "d/");
        strcat(path, "f");
        tree_file(tree, path, "x");
}

static const struct {
        void (*add)(const struct tree *tree);
        const char *says;
} NO_FOLDERS[] = {
        { add_outer_link, "\"a\" is a link to something outside" },
        { add_climbing_link, "\"d/a\" is a link to something outside" },
        { add_neighbours_link, "is a link to something outside" },
        { add_loop, "\"a\" is a broken link" },
        { add_folder_link, "\"d/a\" is a link to something that is not" },
        { add_pipe, "\"d/pipe\" is not a file" },
        { add_bad_name, "\"d/?.jpg\" is not UTF-8" },
        { add_newline, "\"d/a?b\" has a control character" },
        { add_cases, "differ in case alone" },
        { add_depth, "deeper than 64" },
};

START_TEST(what_cannot_be_staged_of_a_folder_is_refused_by_name) {
        struct plan *plan = NULL;
        struct why why = { 0 };
        struct tree tree;
        char url[128];
        int r;

        tree_make(&tree);
        tree_file(&tree, "d/good", "x");
        NO_FOLDERS[_i].add(&tree);
        snprintf(url, sizeof(url), "file://%s", tree.root);
        r = origin_survey(NULL, &(struct origin_options){ .url = url, .kind = "auto", .unpack = "auto" }, &plan, &why);
        tree_remove(&tree);
        ck_assert_msg(r < 0 && strncmp(why.text, "file://", 7) == 0 && strstr(why.text, NO_FOLDERS[_i].says),
                      "%d: %s (not: %s)", r, why.text, NO_FOLDERS[_i].says);
}
END_TEST

START_TEST(a_folder_that_is_not_there_or_has_no_file_is_said) {
        struct tree tree;
        char url[128];

        refused_url("file:///nowhere/at/all/", -ENOENT, "file:///nowhere/at/all/: No such file");
        refused_url("file:///nowhere/at/all", -ENOENT, "No such file");
        tree_make(&tree);
        tree_dir(&tree, "d");
        snprintf(url, sizeof(url), "file://%s", tree.root);
        refused_url(url, -EINVAL, "it has no files");
        tree_remove(&tree);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "kinds", the_kind_is_seen_from_the_url_or_said, ARRAY_SIZE(KINDS) },
                { "kinds", an_unknown_way_to_unpack_is_refused },
                { "one", files_lie_beside_the_manifest_or_where_redirects_led },
                { "one", json_lines_are_a_manifest_if_the_first_one_has_its_keys_and_data_if_not,
                  ARRAY_SIZE(FIRST_LINES) },
                { "one", a_page_in_place_of_a_manifest_is_said_to_be_one },
                { "one", one_file_has_its_urls_name_and_what_the_server_says_of_it },
                { "list", a_lists_files_keep_the_folders_in_which_they_differ },
                { "list", what_is_no_list_is_refused_with_its_line, ARRAY_SIZE(NO_LISTS) },
                { "list", sizes_are_asked_for_side_by_side_and_no_more_than_said },
                { "list", of_a_lists_bad_urls_one_is_named_and_the_rest_is_not_asked_for },
                { "list", a_survey_ends_when_it_is_cancelled },
                { "folder", a_folder_is_walked_with_links_that_stay_inside },
                { "folder", what_cannot_be_staged_of_a_folder_is_refused_by_name, ARRAY_SIZE(NO_FOLDERS) },
                { "folder", a_folder_that_is_not_there_or_has_no_file_is_said },
        };

        return suite_run("origin", rows, ARRAY_SIZE(rows));
}
