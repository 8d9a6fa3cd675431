/* How far long work is: rates and times from what is done and when, and the words and the line that a person reads. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/work/work.h"
#include "proto/base/shown/amounts.h"
#include "proto/base/shown/progress.h"
#include "proto/base/utf8.h"

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define SECOND              1000000000ull
#define GIB                 (1ull << 30)

static char line[DLP_PROGRESS_LINE_MAX];

static struct dlp_progress indexing(void) {
        return (struct dlp_progress){ .phase = "indexing",
                                      .unit = "B",
                                      .done = 12 * GIB,
                                      .total = 29 * GIB,
                                      .seconds = 11,
                                      .per_second = (double)(GIB + GIB / 8),
                                      .seconds_left = 15 };
}

static unsigned columns_of_line(void) {
        const char *at = line;
        unsigned n = 0;

        while (*at) {
                uint32_t point = 0;
                size_t n_bytes = utf8_decode(at, SIZE_MAX, &point);

                if (n_bytes == 0 || point < ' ') /* whole characters, whatever was cut */
                        ck_abort_msg("not shown: %s", at);
                n += utf8_columns(point);
                at += n_bytes;
        }
        return n;
}

/* ---- numbers ------------------------------------------------------------------------------------------------- */

START_TEST(numbers_of_things_are_short) {
        static const struct {
                uint64_t n;
                const char *text;
        } CASES[] = { { 0, "0" },
                      { 99999, "99999" },
                      { 100000, "100 k" },
                      { 999999, "999 k" },
                      { 1000000, "1.0 M" },
                      { 123456789, "123.4 M" },
                      { 1000000000, "1.0 G" },
                      { UINT64_MAX, "18446744073.7 G" } };
        char text[COUNT_TEXT_MAX];

        for (size_t i = 0; i < ARRAY_LENGTH(CASES); i++)
                ck_assert_str_eq(format_count(text, CASES[i].n), CASES[i].text);
}
END_TEST

START_TEST(rate_and_time_left_follow_what_was_done) {
        struct dlp_progress progress = { .phase = "indexing" };
        struct dlp_pace pace;

        dlp_pace_begin(&pace, 100 * SECOND);
        dlp_pace_add(&pace, 100 * SECOND + SECOND / 2, 500, 10000);
        dlp_pace_read(&pace, 100 * SECOND + SECOND / 2, &progress);
        ck_assert_double_eq(progress.seconds, 0.5);
        ck_assert_double_eq(progress.per_second, 0); /* the first moment says little */
        ck_assert_double_lt(progress.seconds_left, 0);
        for (uint64_t t = 1; t <= 4; t++)
                dlp_pace_add(&pace, (100 + t) * SECOND, t * 1000, 10000);
        dlp_pace_read(&pace, 104 * SECOND, &progress);
        ck_assert_double_eq(progress.per_second, 1000);
        ck_assert_double_eq_tol(progress.seconds_left, 6, 1);

        dlp_pace_read(&pace, 120 * SECOND, &progress); /* nothing was told for long */
        ck_assert_double_eq(progress.per_second, 0);
        ck_assert_double_lt(progress.seconds_left, 0);
        ck_assert_double_eq(progress.seconds, 20);

        dlp_pace_add(&pace, 121 * SECOND, 0, 10000); /* another pass */
        dlp_pace_add(&pace, 123 * SECOND, 1000, 10000);
        dlp_pace_read(&pace, 123 * SECOND, &progress);
        ck_assert_double_eq(progress.per_second, 500);
        dlp_pace_add(&pace, 125 * SECOND, 2000, 0); /* whose end is not known */
        dlp_pace_read(&pace, 125 * SECOND, &progress);
        ck_assert_double_lt(progress.seconds_left, 0);
}
END_TEST

START_TEST(work_is_read_while_it_is_under_way) {
        struct dlp_progress progress;
        struct work work;

        work_init(&work);
        ck_assert(!work_read(&work, &progress));
        ck_assert_str_eq(progress.phase, "");
        work_tell(&work, 5, 10, "files"); /* of nothing */
        ck_assert(!work_read(&work, &progress));
        work_begin(&work, "indexing", "");
        work_tell(&work, 7, 0, "files");
        ck_assert(work_read(&work, &progress));
        ck_assert_str_eq(progress.phase, "indexing");
        ck_assert_str_eq(progress.unit, "files");
        ck_assert_uint_eq(progress.done, 7);
        ck_assert_double_lt(progress.seconds_left, 0);
        work_tell(&work, 90, 80, "B"); /* an estimate that was too low */
        ck_assert(work_read(&work, &progress));
        ck_assert_str_eq(progress.unit, "B");
        ck_assert_uint_eq(progress.done, 80);
        ck_assert_uint_eq(progress.total, 80);
        work_end(&work);
        ck_assert(!work_read(&work, &progress));
        work_fini(&work);
}
END_TEST

/* ---- words --------------------------------------------------------------------------------------------------- */

START_TEST(a_sentence_says_what_is_known) {
        static const struct {
                struct dlp_progress progress;
                const char *text;
        } CASES[] = {
                { { .phase = "indexing",
                    .unit = "B",
                    .done = 3 << 20,
                    .total = 12 << 20,
                    .per_second = 1 << 20,
                    .seconds_left = 9 },
                  "indexing, 3.0 MiB of 12.0 MiB (25 %), 1.0 MiB/s, 9 s left" },
                { { .phase = "indexing", .unit = "files", .done = 120000, .seconds_left = -1 },
                  "indexing, 120 k files so far" },
                { { .phase = "making the order", .unit = "samples", .done = 7, .total = 100000000, .seconds_left = -1 },
                  "making the order, 7 of 100.0 M samples (0 %)" },
                { { .phase = "indexing", .seconds_left = -1 }, "indexing" },
                { { .unit = "files", .done = 12, .seconds_left = -1 }, "12 files so far" },
                { { .phase = "indexing", .unit = "B", .done = 5, .total = 5, .seconds_left = 0 },
                  "indexing, 5 bytes of 5 bytes (100 %)" },
        };
        char text[DLP_TEXT_MAX];

        for (size_t i = 0; i < ARRAY_LENGTH(CASES); i++)
                ck_assert_str_eq(dlp_progress_sentence(&CASES[i].progress, text), CASES[i].text);
}
END_TEST

START_TEST(a_line_has_a_bar_and_all_that_is_known) {
        struct dlp_progress progress = indexing();

        dlp_progress_line(&progress, "photos", 100, true, line);
        ck_assert_str_eq(
                line,
                "photos: indexing █████████████▏░░░░░░░░░░░░░░░░░░  41 %  12.0 GiB of 29.0 GiB  1.1 GiB/s  15 s left");
        ck_assert_uint_eq(columns_of_line(), 99);
        dlp_progress_line(&progress, "photos", 100, false, line);
        ck_assert_str_eq(
                line,
                "photos: indexing =============-------------------  41 %  12.0 GiB of 29.0 GiB  1.1 GiB/s  15 s left");
        progress.total = 0;
        dlp_progress_line(&progress, "photos", 100, true, line);
        ck_assert_str_eq(line, "photos: indexing  12.0 GiB  1.1 GiB/s  11 s");
        dlp_progress_line(&progress, "", 100, true, line);
        ck_assert_str_eq(line, "indexing  12.0 GiB  1.1 GiB/s  11 s");
}
END_TEST

START_TEST(what_does_not_fit_is_left_out_as_a_whole) {
        struct dlp_progress progress = indexing();

        dlp_progress_line(&progress, "photos", 80, true, line);
        ck_assert_str_eq(line, "photos: indexing ████▉░░░░░░░  41 %  12.0 GiB of 29.0 GiB  1.1 GiB/s  15 s left");
        dlp_progress_line(&progress, "photos", 60, true, line);
        ck_assert_str_eq(line, "photos: indexing  41 %  12.0 GiB of 29.0 GiB  15 s left");
        dlp_progress_line(&progress, "photos", 40, true, line);
        ck_assert_str_eq(line, "photos: indexing  41 %  15 s left");
        dlp_progress_line(&progress, "photos", 20, true, line);
        ck_assert_str_eq(line, "photos: indexing");
}
END_TEST

START_TEST(a_line_fits_whatever_the_terminal_and_the_name_are) {
        static const char *const NAMES[] = {
                "",
                "a",
                "/scratch/users/somebody/datasets/photos of birds/2026-11/train",
                "日本語のデータセットの長い名前です日本語のデータセット",
                "n\xcc\x81"
                "a\xcc\x81"
                "m\xcc\x81"
                "e",
                "\033[2J\r\n\t\x7f\xff\xc3",
                "\xe2\x80\xae"
                "reversed\xe2\x80\xac",
                "👩‍🚀👩‍🚀👩‍🚀👩‍🚀👩‍🚀👩‍🚀👩‍🚀👩‍🚀👩‍🚀"
        };
        char long_name[DLP_DATASET_MAX];
        struct dlp_progress progress = indexing();

        memset(long_name, 'x', sizeof(long_name) - 1);
        long_name[sizeof(long_name) - 1] = '\0';
        for (unsigned width = 0; width < 300; width += width < 50 ? 1 : 17)
                for (size_t i = 0; i <= ARRAY_LENGTH(NAMES); i++)
                        for (int k = 0; k < 4; k++) {
                                const char *name = i < ARRAY_LENGTH(NAMES) ? NAMES[i] : long_name;
                                bool utf8 = k & 1;

                                progress.total = k & 2 ? 29 * GIB : 0;
                                dlp_progress_line(&progress, name, width, utf8, line);
                                ck_assert_uint_le(columns_of_line(), width > 1 ? width - 1 : 1);
                                if (!utf8)
                                        ck_assert_uint_eq(strlen(line), columns_of_line());
                                ck_assert_ptr_null(strstr(line, "\xe2\x80\xae"));
                                dlp_progress_text(name, width, utf8, line);
                                ck_assert_uint_le(columns_of_line(), width > 1 ? width - 1 : 1);
                        }
}
END_TEST

START_TEST(a_long_name_keeps_its_end) {
        struct dlp_progress progress = indexing();

        dlp_progress_line(&progress, "/scratch/users/somebody/datasets/birds/train", 80, true, line);
        ck_assert_ptr_nonnull(strstr(line, "birds/train: indexing"));
        ck_assert_int_eq(strncmp(line, "/scratch", 8), 0);
        ck_assert_ptr_nonnull(strstr(line, "…"));
        ck_assert_ptr_nonnull(strstr(line, "15 s left"));
        dlp_progress_text("dataset photos: it is not staged yet; begin with: dlctl stage photos", 30, true, line);
        ck_assert_str_eq(line, "dataset photos: it is not st…");
}
END_TEST

int main(void) {
        Suite *suite = suite_create("progress line");
        TCase *numbers = tcase_create("numbers"), *words = tcase_create("words");
        SRunner *runner;
        int n_failed;

        tcase_add_test(numbers, numbers_of_things_are_short);
        tcase_add_test(numbers, rate_and_time_left_follow_what_was_done);
        tcase_add_test(numbers, work_is_read_while_it_is_under_way);
        suite_add_tcase(suite, numbers);
        tcase_add_test(words, a_sentence_says_what_is_known);
        tcase_add_test(words, a_line_has_a_bar_and_all_that_is_known);
        tcase_add_test(words, what_does_not_fit_is_left_out_as_a_whole);
        tcase_add_test(words, a_line_fits_whatever_the_terminal_and_the_name_are);
        tcase_add_test(words, a_long_name_keeps_its_end);
        suite_add_tcase(suite, words);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_NORMAL);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
