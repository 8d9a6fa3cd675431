/* The progress file: what is written is read again, and what strangers write harms nobody. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/store/record/record_progress.h"
#include "proto/base/shown/amounts.h"
#include "tests/support/tree.h"

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static struct tree tree;
static struct place place;

static void setup(void) {
        char path[128];
        struct why why;

        tree_make(&tree);
        tree_dir(&tree, ".d.staged");
        snprintf(path, sizeof(path), "%s/d", tree.root);
        if (place_init(&place, path, &why) < 0)
                ck_abort_msg("%s", why.text);
}

static int read_text(const char *text, struct progress *progress) {
        struct why why;

        tree_file(&tree, ".d.staged/progress", text);
        return progress_read(&place, progress, NULL, &why);
}

START_TEST(what_is_written_is_read_again) {
        struct node_progress nodes[] = {
                { .node = "n1", .doing = "writing \"a\".jpg", .n_bytes_total = 1ull << 52, .n_bytes_done = 1 },
                { .node = "n2", .last_error = "4 \u00e4 5", .n_errors = 2 },
        };
        struct progress written = { .dataset = "d",
                                    .phase = "transferring",
                                    .n_bytes_total = 1ull << 53,
                                    .n_bytes_done = 1,
                                    .n_bytes_origin = 3,
                                    .n_files_total = 4,
                                    .bytes_per_second = 5,
                                    .seconds_left = 6,
                                    .seconds = 7,
                                    .n_nodes = 1000,
                                    .n_listed = 2,
                                    .nodes = nodes };
        struct progress read;
        uint64_t mark, next;
        struct why why;

        setup();
        ck_assert_int_eq(progress_read(&place, &read, NULL, &why), PROGRESS_ABSENT);
        ck_assert_int_eq(progress_write(&place, &written, &why), 0);
        ck_assert_int_eq(progress_read(&place, &read, &mark, &why), 0);
        ck_assert_str_eq(read.dataset, "d");
        ck_assert_str_eq(read.phase, "transferring");
        ck_assert_str_eq(read.result, "");
        ck_assert_uint_eq(read.n_bytes_total, 1ull << 53);
        ck_assert_uint_eq(read.n_bytes_origin, 3);
        ck_assert_uint_eq(read.seconds_left, 6);
        ck_assert_uint_eq(read.n_nodes, 1000);
        ck_assert_uint_eq(read.n_listed, 2);
        ck_assert_str_eq(read.nodes[0].doing, "writing \"a\".jpg");
        ck_assert_uint_eq(read.nodes[0].n_bytes_total, 1ull << 52);
        ck_assert_str_eq(read.nodes[1].last_error, nodes[1].last_error);
        progress_fini(&read);

        written.seconds_left = UINT64_MAX;
        ck_assert_int_eq(progress_write(&place, &written, &why), 0);
        ck_assert_int_eq(progress_read(&place, &read, &next, &why), 0);
        ck_assert_uint_ne(mark, next);
        ck_assert_uint_eq(read.seconds_left, UINT64_MAX);
        progress_fini(&read);
        progress_fini(&read); /* takes an empty one */
        tree_remove(&tree);
}
END_TEST

START_TEST(what_is_no_progress_is_refused) {
        static const char *const TEXTS[] = { "", "{", "[]", "null", "7", "\"x\"", "{\"phase\":}", "\xff\xfe" };
        char *deep = malloc(60001), path[160];
        struct progress progress;
        struct why why;

        setup();
        for (size_t i = 0; i < ARRAY_LENGTH(TEXTS); i++)
                ck_assert_msg(read_text(TEXTS[i], &progress) == -EBADMSG, "\"%s\" was taken", TEXTS[i]);
        memset(deep, '[', 60000);
        deep[60000] = '\0';
        ck_assert_int_eq(read_text(deep, &progress), -EBADMSG);
        free(deep);

        snprintf(path, sizeof(path), "%s/.d.staged/progress", tree.root);
        remove(path);
        ck_assert_int_eq(mkfifo(path, 0600), 0);
        ck_assert_int_eq(progress_read(&place, &progress, NULL, &why), -EBADMSG); /* and it did not hang */
        remove(path);
        tree_remove(&tree);
}
END_TEST

START_TEST(numbers_texts_and_lists_are_bounded) {
        static const char TEXT[] =
                "{\"phase\":\"\\u001b[31m\",\"n_bytes_total\":10,\"n_bytes_done\":11,\"n_files_total\":-1,"
                "\"seconds_left\":1e300,\"seconds\":\"soon\",\"n_nodes\":1e12,\"n_retries\":{},\"nodes\":[";
        struct progress progress;
        char *text = malloc(50000), buffer[DLP_TEXT_MAX];
        size_t n = sizeof(TEXT) - 1;

        setup();
        memcpy(text, TEXT, sizeof(TEXT));
        for (int i = 0; i < 100; i++)
                n += (size_t)sprintf(text + n, "%s{\"node\":\"%0300d\",\"n_bytes_done\":5}", i ? "," : "7,", i);
        strcpy(text + n, "]}");
        ck_assert_int_eq(read_text(text, &progress), 0);
        ck_assert_str_eq(progress.phase, "?[31m");
        ck_assert_uint_eq(progress.n_bytes_done, 10);
        ck_assert_uint_eq(progress.n_files_total, 0);
        ck_assert_uint_eq(progress.seconds, 0);
        ck_assert_uint_eq(progress.n_nodes, 0);
        ck_assert_uint_eq(progress.n_listed, PROGRESS_NODES_MAX);
        ck_assert_uint_eq(strlen(progress.nodes[1].node), sizeof(progress.nodes[1].node) - 1);
        ck_assert_ptr_nonnull(progress_sentence(&progress, buffer));
        progress_fini(&progress);
        free(text);
        tree_remove(&tree);
}
END_TEST

START_TEST(a_sentence_says_what_is_known_and_no_more) {
        static const struct {
                struct progress progress;
                const char *says;
        } ROWS[] = {
                { { .phase = "surveying", .seconds_left = UINT64_MAX }, "surveying" },
                { { .phase = "surveying", .n_files_total = 5000, .seconds_left = UINT64_MAX },
                  "surveying, 5000 files so far" },
                { { .phase = "transferring",
                    .n_bytes_total = 3ull << 40,
                    .n_bytes_done = (3ull << 40) - 1,
                    .bytes_per_second = 1 << 20,
                    .seconds_left = 1 },
                  "transferring, 3.0 TiB of 3.0 TiB (99 %), 1.0 MiB/s, 1 s left" },
                { { .phase = "publishing", .n_bytes_total = 5, .n_bytes_done = 5, .seconds_left = 0, .n_nodes = 4 },
                  "publishing, 5 bytes of 5 bytes (100 %), 4 nodes" },
        };
        static const struct {
                uint64_t seconds;
                const char *says;
        } DURATIONS[] = { { 0, "0 s" },       { 59, "59 s" },          { 60, "1 min" },
                          { 3599, "60 min" }, { 12000, "3 h 20 min" }, { 353000, "4 d 2 h" } };
        char buffer[DLP_TEXT_MAX], duration[32];

        for (size_t i = 0; i < ARRAY_LENGTH(ROWS); i++)
                ck_assert_str_eq(progress_sentence(&ROWS[i].progress, buffer), ROWS[i].says);
        for (size_t i = 0; i < ARRAY_LENGTH(DURATIONS); i++)
                ck_assert_str_eq(format_duration(duration, DURATIONS[i].seconds), DURATIONS[i].says);
        ck_assert_uint_eq(percent_of(0, 0), 100);
        ck_assert_uint_eq(percent_of(UINT64_MAX - 1, UINT64_MAX), 99);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("progress");
        TCase *tcase = tcase_create("progress");
        SRunner *runner = srunner_create(suite);
        int n_failed;

        tcase_add_test(tcase, what_is_written_is_read_again);
        tcase_add_test(tcase, what_is_no_progress_is_refused);
        tcase_add_test(tcase, numbers_texts_and_lists_are_bounded);
        tcase_add_test(tcase, a_sentence_says_what_is_known_and_no_more);
        suite_add_tcase(suite, tcase);
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed != 0;
}
