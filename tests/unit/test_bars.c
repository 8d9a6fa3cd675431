/* Frames of the progress on a terminal: what they say, and that they fit whatever the terminal and the names are; and
 * the rates that they show. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/staging/run/bars.h"
#include "proto/base/shown/rate.h"

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define SECOND              1000000000ull

static struct bars_frame frame;

/* Node i of n has i/n of a GiB. */
static struct node_progress *make_nodes(uint32_t n, struct progress *ret_progress) {
        struct node_progress *nodes = calloc(n, sizeof(*nodes));

        for (uint32_t i = 0; i < n; i++) {
                snprintf(nodes[i].node, sizeof(nodes[i].node), "node%u", i);
                snprintf(nodes[i].doing, sizeof(nodes[i].doing), "writing file%u", i);
                nodes[i].n_bytes_total = 1 << 30;
                nodes[i].n_bytes_done = (uint64_t)(1 << 30) * i / n;
        }
        *ret_progress = (struct progress){
                .dataset = "photos",
                .phase = "transferring",
                .n_bytes_total = (uint64_t)n << 30,
                .n_bytes_done = 5 << 20,
                .seconds_left = 61,
                .bytes_per_second = 1 << 20,
                .n_nodes = n,
                .n_listed = n,
                .nodes = nodes,
        };
        return nodes;
}

/* Columns of each line as a terminal counts them: no character here is wide, and no escape has any. */
static void check_widths(const struct bars_look *look) {
        const char *at = frame.text;

        ck_assert_uint_le(frame.n_lines, look->n_rows > 1 ? look->n_rows - 1 : 1);
        for (uint32_t i = 0; i < frame.n_lines; i++) {
                uint32_t n = 0;

                for (; *at != '\n'; at++) {
                        if (*at == '\033')
                                at = strchr(at, 'm');
                        else
                                n += ((unsigned char)*at & 0xc0) != 0x80;
                }
                at++;
                ck_assert_uint_eq(frame.widths[i], n);
                ck_assert_msg(n < look->n_columns || look->n_columns <= 1, "%u columns of %u in line %u", n,
                              look->n_columns, i);
        }
        ck_assert_ptr_eq(at, frame.text + frame.n_bytes);
}

static const char *draw(const struct bars_look *look, const struct progress *progress) {
        bars_draw(look, progress, NULL, &frame);
        frame.text[frame.n_bytes] = '\0';
        check_widths(look);
        return frame.text;
}

START_TEST(a_frame_has_a_line_about_all_and_a_bar_for_each_node) {
        struct bars_look look = { .n_columns = 60, .n_rows = 10, .utf8 = true };
        struct progress progress;
        struct node_progress *nodes = make_nodes(2, &progress);

        ck_assert_str_eq(draw(&look, &progress), "photos  0 %  transferring  5.0 MiB of 2.0 GiB  1.0 MiB/s\n"
                                                 "node0  ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░   0 %     0 bytes/s\n"
                                                 "node1  ████████████████░░░░░░░░░░░░░░░░  50 %     0 bytes/s\n");
        look.utf8 = false;
        nodes[1].n_errors = 1;
        ck_assert_str_eq(draw(&look, &progress), "photos  0 %  transferring  5.0 MiB of 2.0 GiB  1.0 MiB/s\n"
                                                 "node0  --------------------------------   0 %     0 bytes/s\n"
                                                 "node1  ================----------------  50 %     0 bytes/s\n");
        look.n_columns = 110;
        ck_assert_ptr_nonnull(strstr(draw(&look, &progress), "1 errors  writing file1"));
        ck_assert_ptr_nonnull(strstr(frame.text, "1 min left"));
        ck_assert_ptr_null(strchr(frame.text, '\033'));
        look.colours = true;
        ck_assert_ptr_nonnull(strstr(draw(&look, &progress), "\033[31m  1 errors\033[0m"));
        free(nodes);
}
END_TEST

START_TEST(twenty_columns_are_enough) {
        struct bars_look look = { .n_columns = 20, .n_rows = 10, .utf8 = true };
        struct progress progress;
        struct node_progress *nodes = make_nodes(2, &progress);

        ck_assert_str_eq(draw(&look, &progress), "photos  0 %\n"
                                                 "node0  ░░░░░░   0 %\n"
                                                 "node1  ███░░░  50 %\n");
        free(nodes);
}
END_TEST

START_TEST(of_a_thousand_nodes_those_furthest_behind_are_shown) {
        struct bars_look look = { .n_columns = 80, .n_rows = 8, .utf8 = true };
        struct progress progress;
        struct node_progress *nodes = make_nodes(1000, &progress);
        const char *text;

        nodes[777].n_bytes_done = 0;
        text = draw(&look, &progress);
        ck_assert_uint_eq(frame.n_lines, 7);
        for (uint32_t i = 0; i < 4; i++) {
                char name[16];

                snprintf(name, sizeof(name), "\nnode%u ", i);
                ck_assert_msg(strstr(text, name) != NULL, "%s in %s", name, text);
        }
        ck_assert_ptr_nonnull(strstr(text, "\nnode777 ")); /* in their own order: bars do not jump */
        ck_assert(strstr(text, "\nnode777 ") > strstr(text, "\nnode3 "));
        ck_assert_ptr_nonnull(strstr(text, "and 995 nodes more: 0 % to 99 %"));

        for (uint32_t i = 0; i < 1000; i++) /* all alike: as many as there is room for */
                nodes[i].n_bytes_done = 1 << 29;
        text = draw(&look, &progress);
        ck_assert_ptr_nonnull(strstr(text, "\nnode4 "));
        ck_assert_ptr_nonnull(strstr(text, "and 995 nodes more: 50 % to 50 %"));
        free(nodes);
}
END_TEST

/* Every size of terminal, and news as a broken node might send them. */
START_TEST(frames_fit_any_terminal) {
        static const char *const NAMES[] = { "n",           "a-node-with-a-name-of-many-letters.example.org",
                                             "n\303\266de", "\033[2J\n\r\t",
                                             "\377\376",    "" };
        struct progress progress;
        struct node_progress *nodes = make_nodes(7, &progress);

        for (size_t i = 0; i < 7; i++) {
                snprintf(nodes[i].node, sizeof(nodes[i].node), "%s", NAMES[i % ARRAY_LENGTH(NAMES)]);
                memset(nodes[i].doing, 'x', sizeof(nodes[i].doing) - 1);
                nodes[i].n_errors = nodes[i].n_retries = UINT64_MAX;
        }
        nodes[2].n_bytes_done = UINT64_MAX;
        nodes[3].n_bytes_total = UINT64_MAX;
        nodes[4].n_bytes_total = 0;
        memset(progress.dataset, 'd', sizeof(progress.dataset) - 1);
        progress.n_bytes_total = UINT64_MAX;
        progress.seconds_left = UINT64_MAX - 1;
        for (uint32_t n_columns = 1; n_columns <= 250; n_columns++)
                for (uint32_t n_rows = 1; n_rows <= 60; n_rows += n_rows < 12 ? 1 : 16)
                        for (int look_bits = 0; look_bits < 4; look_bits++)
                                draw(&(struct bars_look){ n_columns, n_rows, look_bits & 1, look_bits & 2 }, &progress);
        ck_assert_ptr_null(strstr(frame.text, "\033[2J"));
        free(nodes);
}
END_TEST

START_TEST(wide_characters_take_two_columns) {
        struct bars_look look = { .n_columns = 110, .n_rows = 10, .utf8 = true };
        struct progress progress;
        struct node_progress *nodes = make_nodes(1, &progress);
        uint32_t n_ascii;

        snprintf(nodes[0].doing, sizeof(nodes[0].doing), "abcd");
        bars_draw(&look, &progress, NULL, &frame);
        n_ascii = frame.widths[1];
        snprintf(nodes[0].doing, sizeof(nodes[0].doing), "猫犬");
        bars_draw(&look, &progress, NULL, &frame);
        ck_assert_uint_eq(frame.widths[1], n_ascii);
        look.utf8 = false;
        bars_draw(&look, &progress, NULL, &frame);
        frame.text[frame.n_bytes] = '\0';
        ck_assert_ptr_nonnull(strstr(frame.text, "  ??\n"));
        free(nodes);
}
END_TEST

START_TEST(a_look_survives_as_text) {
        static const char *const NONE[] = { "", "x", "100", "0x24", "100x0", "ax b" };
        struct bars_look look = { 132, 50, true, false }, read;
        char text[64];

        bars_look_write(&look, text);
        ck_assert(bars_look_read(text, &read));
        ck_assert(read.n_columns == 132 && read.n_rows == 50 && read.utf8 && !read.colours);
        for (size_t i = 0; i < ARRAY_LENGTH(NONE); i++)
                ck_assert_msg(!bars_look_read(NONE[i], &read), "%s", NONE[i]);
}
END_TEST

/* ---- rates --------------------------------------------------------------------------------------------------- */

START_TEST(a_rate_is_that_of_the_last_ten_seconds) {
        struct rate rate;
        uint64_t count = 0;

        rate_reset(&rate);
        ck_assert_uint_eq(rate_per_second(&rate), 0);
        ck_assert_uint_eq(rate_seconds_left(&rate, 0), UINT64_MAX);
        for (uint64_t t = 1; t < 600; t++) /* a minute, ten times a second */
                rate_add(&rate, t * SECOND / 10, count += 100, 1000000);
        ck_assert_uint_eq(rate_per_second(&rate), 1000);
        ck_assert_uint_eq(rate_seconds_left(&rate, 60 * SECOND), 940);

        for (uint64_t t = 600; t <= 720; t++) /* then five times as fast: twelve seconds later nothing else counts */
                rate_add(&rate, t * SECOND / 10, count += 500, 1000000);
        ck_assert_uint_eq(rate_per_second(&rate), 5000);

        for (uint64_t t = 721; t <= 840; t++) /* and nothing at all */
                rate_add(&rate, t * SECOND / 10, count, 1000000);
        ck_assert_uint_eq(rate_per_second(&rate), 0);
        ck_assert_uint_eq(rate_seconds_left(&rate, 84 * SECOND), UINT64_MAX);
}
END_TEST

START_TEST(the_time_left_is_smooth_and_comes_to_nothing) {
        uint64_t count = 0, before = UINT64_MAX, left;
        struct rate rate;

        rate_reset(&rate);
        for (uint64_t t = 1; t <= 100; t++) { /* a chunk each half second, and now and then none */
                if (t % 7)
                        count += 1000;
                rate_add(&rate, t * SECOND / 2, count, 86000);
                left = rate_seconds_left(&rate, t * SECOND / 2);
                if (t > 30) {
                        ck_assert_uint_ne(left, UINT64_MAX);
                        ck_assert_msg(left <= before + 1, "%llu after %llu", (unsigned long long)left,
                                      (unsigned long long)before);
                }
                before = left;
        }
        ck_assert_uint_le(left, 1);
}
END_TEST

START_TEST(bytes_that_count_as_missing_again_make_no_nonsense) {
        struct rate rate;

        rate_reset(&rate);
        for (uint64_t t = 1; t <= 10; t++)
                rate_add(&rate, t * SECOND, 1000 - t * 50, 1000);
        ck_assert_uint_eq(rate_per_second(&rate), 0);
        ck_assert_uint_eq(rate_seconds_left(&rate, 10 * SECOND), UINT64_MAX);
        rate_reset(&rate);
        for (uint64_t t = 1; t <= 10; t++)
                rate_add(&rate, t * SECOND, t, UINT64_MAX); /* ages: nobody knows */
        ck_assert_uint_eq(rate_seconds_left(&rate, 10 * SECOND), UINT64_MAX);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("bars");
        TCase *bars = tcase_create("bars"), *rates = tcase_create("rates");
        SRunner *runner = srunner_create(suite);
        int n_failed;

        tcase_add_test(bars, a_frame_has_a_line_about_all_and_a_bar_for_each_node);
        tcase_add_test(bars, twenty_columns_are_enough);
        tcase_add_test(bars, of_a_thousand_nodes_those_furthest_behind_are_shown);
        tcase_add_test(bars, frames_fit_any_terminal);
        tcase_add_test(bars, wide_characters_take_two_columns);
        tcase_add_test(bars, a_look_survives_as_text);
        suite_add_tcase(suite, bars);
        tcase_add_test(rates, a_rate_is_that_of_the_last_ten_seconds);
        tcase_add_test(rates, the_time_left_is_smooth_and_comes_to_nothing);
        tcase_add_test(rates, bytes_that_count_as_missing_again_make_no_nonsense);
        suite_add_tcase(suite, rates);
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed != 0;
}
