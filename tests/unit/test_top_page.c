/* dlctl top: whole windows, and what keys change. */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/dlctl/top/top_page.h"
#include "tests/support/glances.h"
#include "tests/support/suite.h"

static struct told earlier, now;
static struct top_state state;
static char drawn[1 << 20];
static char chosen[LINE_BYTES_MAX]; /* the line that is marked */
static unsigned n_drawn;

static void take(void *arg, const struct line *line) {
        size_t n = strlen(drawn), n_line = line->text.n;

        ck_assert_uint_le(line->text.n_columns, line->n_columns);
        for (const char *c = line->bytes; *c; c++)
                ck_assert((unsigned char)*c >= ' ' && *c != 0x7f);
        while (n_line > 0 && line->bytes[n_line - 1] == ' ')
                n_line--;
        snprintf(drawn + n, sizeof(drawn) - n, "%.*s\n", (int)n_line, line->bytes);
        if (line->is_chosen)
                snprintf(chosen, sizeof(chosen), "%.*s", (int)n_line, line->bytes);
        n_drawn++;
}

/* Draws a window and then presses the keys: characters, and u d l r (arrows), e (Enter), x (Esc), b (backspace) after a
 * '^'. */
static const char *window(unsigned n_columns, unsigned n_rows, const char *keys) {
        static const char NAMES[] = "udlrexb346";
        static const enum press PRESSES[] = { PRESS_UP,     PRESS_DOWN,      PRESS_LEFT, PRESS_RIGHT, PRESS_ENTER,
                                              PRESS_ESCAPE, PRESS_BACKSPACE, PRESS_F3,   PRESS_F4,    PRESS_F6 };
        const struct glance *const glances[] = { &earlier.glance, &now.glance };
        struct rates rates;

        rates_make(glances, 2, &rates);
        for (bool more = true; more; keys++) {
                struct view view = { n_columns, true, "node1", NULL, &rates, &now.glance, state.sorting };
                struct items items;

                items_make(&rates, state.sorting, state.filter, top_state_opens, &state, &items);
                drawn[0] = chosen[0] = '\0';
                n_drawn = 0;
                page_draw(&view, &state, &items, n_rows, take, NULL);
                ck_assert_uint_le(n_drawn, n_rows);
                more = *keys;
                if (more && *keys == '^')
                        top_state_press(&state, PRESSES[strchr(NAMES, *++keys) - NAMES], 0, &items);
                else if (more)
                        top_state_press(&state, PRESS_CHARACTER, *keys, &items);
                items_free(&items);
        }
        rates_free(&rates);
        return drawn;
}

/* Line by line: Check cannot print two whole windows. */
static void expect_lines(const char *text, const char *expected) {
        while (*text || *expected) {
                int n = (int)strcspn(text, "\n"), n_expected = (int)strcspn(expected, "\n");

                ck_assert_msg(n == n_expected && strncmp(text, expected, (size_t)n) == 0,
                              "\"%.*s\" instead of \"%.*s\"", n, text, n_expected, expected);
                text += n + (text[n] == '\n');
                expected += n_expected + (expected[n_expected] == '\n');
        }
}

static void tell_jobs(void) {
        tell(&earlier, 10 * SECOND);
        tell(&now, 11 * SECOND);
        for (unsigned i = 0; i < 2; i++) {
                struct told *told = i == 0 ? &earlier : &now;
                Dlp__Job *job = tell_job(told, "train", "photos", i * 100);

                job->pipeline =
                        (char *)"random_resized_crop(224) hflip(0.5) color_jitter(0.4, 0.4, 0.4, 0.1) to(float32)";
                job->worker_ns = i * SECOND;
                tell_stage(told, 0, "decode", i * 3 * SECOND / 4);
                tell_stage(told, 1, "color_jitter", i * SECOND / 4);
                tell_rank(told, 0, (2 + i) * SECOND, 0, (2 + i) * SECOND);
                tell_rank(told, 1, (2 + i) * SECOND, i * SECOND / 2, 2 * SECOND + i * SECOND / 2);
                tell_job(told, "test", "sound", i * 7);
                tell_rank(told, 0, (2 + i) * SECOND, 0, (2 + i) * SECOND);
        }
        top_state_init(&state, (struct sorting){ COLUMN_WAIT, false }, 1, "", false);
}

START_TEST(a_window_has_head_table_and_keys) {
        tell_jobs();
        expect_lines(window(72, 12, ""), "dataloaderd on node1, up 12 s: 2 jobs, 3 ranks, 0 samples/s\n"
                                         "Workers  [                   0 %] 0.0 of 4 at work, on 0.0 of 4 CPUs\n"
                                         "Memory   [||||||            25 %] 2.0 GiB of 8.0 GiB\n"
                                         "Reads    [||||||            25 %] 16 of 64 under way, 0 B/s\n"
                                         "JOB      DATASET  RANKS SAMPLES/S WAIT% READY% WORK% STATUS\n"
                                         "train    photos     2/8       100    50      0   100 too few batches ah…\n"
                                         "test     sound      1/8       7.0     0    100     0 training\n"
                                         "\n\n\n\n"
                                         "F1Help   F3Search F4Filter F5Ranks  F6Sort   EnterJob    F10Quit\n");
}
END_TEST

START_TEST(small_windows_show_the_table_first) {
        tell_jobs();
        expect_lines(window(20, 5, "t"), "dataloaderd on node1\nJOB      WAIT% WORK%\ntrain       50   100\n"
                                         " ├─ rank 0     0\nF1Help   F3Search\n");
        expect_lines(window(20, 2, ""), "JOB      WAIT% WORK%\ntrain       50   100\n");
        for (unsigned n_columns = 0; n_columns < 40; n_columns += 3)
                for (unsigned n_rows = 0; n_rows < 14; n_rows++) {
                        static const char *const MODES[] = { "", "h", "^6", "/", "\\", "d", "^e" };

                        for (size_t i = 0; i < sizeof(MODES) / sizeof(MODES[0]); i++) {
                                window(n_columns, n_rows, MODES[i]);
                                window(n_columns, n_rows, "^x");
                        }
                }
}
END_TEST

START_TEST(arrows_choose_and_open_and_the_choice_stays_with_its_job) {
        tell_jobs();
        window(72, 12, "");
        ck_assert_str_eq(chosen, "");
        window(72, 12, "^d");
        ck_assert_int_eq(strncmp(chosen, "train", 5), 0);
        window(72, 12, "^d^d");
        ck_assert_int_eq(strncmp(chosen, "test", 4), 0);
        window(72, 12, "S"); /* train has more samples, too */
        window(72, 12, "I");
        ck_assert_int_eq(strncmp(chosen, "test", 4), 0);
        ck_assert_uint_eq(state.place, 0);
        window(72, 12, "^r^d");
        ck_assert_ptr_nonnull(strstr(chosen, "└─ rank 0"));
        window(72, 12, "^l");
        ck_assert_int_eq(strncmp(chosen, "test", 4), 0);
        ck_assert_ptr_null(strstr(drawn, "rank 0"));
        window(72, 12, "t");
        ck_assert_ptr_nonnull(strstr(drawn, "rank 1"));
        window(72, 12, "-");
        ck_assert_ptr_nonnull(strstr(drawn, "rank 1"));
        now.glance.n_jobs = 1; /* the chosen job has ended */
        window(72, 12, "");
        ck_assert_int_eq(strncmp(chosen, "train", 5), 0);
        now.glance.n_jobs = 0;
        ck_assert_ptr_nonnull(strstr(window(72, 12, "^d^u^r^e"), "no jobs: nobody is attached"));
}
END_TEST

START_TEST(a_long_table_scrolls_to_what_is_chosen) {
        char names[40][8];

        tell_jobs();
        top_state_init(&state, (struct sorting){ COLUMN_JOB, false }, 1, "", false);
        tell(&now, 12 * SECOND);
        for (unsigned i = 0; i < 40; i++) {
                snprintf(names[i], sizeof(names[i]), "job%02u", i);
                tell_job(&now, names[i], "photos", 0);
        }
        window(60, 10, "^d^d^d^d^d^d^d^d^d^d^d^d^d");
        ck_assert_int_eq(strncmp(chosen, "job12", 5), 0);
        ck_assert_ptr_null(strstr(drawn, "job07"));
        window(60, 30, "");
        ck_assert_ptr_nonnull(strstr(drawn, "job25"));
        window(60, 5, "");
        ck_assert_int_eq(strncmp(chosen, "job12", 5), 0);
}
END_TEST

START_TEST(a_typed_filter_works_at_once_and_escape_clears_it) {
        tell_jobs();
        window(72, 12, "\\SOx");
        ck_assert_ptr_nonnull(strstr(drawn, "Filter: SOx_"));
        ck_assert_ptr_nonnull(strstr(drawn, "no job has that"));
        window(72, 12, "^b");
        ck_assert_ptr_null(strstr(drawn, "photos"));
        ck_assert_ptr_nonnull(strstr(drawn, "sound"));
        window(72, 12, "^e");
        ck_assert_str_eq(state.filter, "SO");
        ck_assert_ptr_nonnull(strstr(drawn, "filter SO"));
        window(72, 12, "^4^x");
        ck_assert_str_eq(state.filter, "");
        for (int i = 0; i < 200; i++)
                window(72, 12, i == 0 ? "\\q" : "q");
        ck_assert_uint_eq(strlen(state.filter), FILTER_MAX - 1);
        ck_assert(!state.quits);
}
END_TEST

START_TEST(a_search_chooses_job_after_job_and_says_that_there_is_none) {
        tell_jobs();
        tell_job(&now, "second train", "photos", 0);
        window(72, 12, "J/TRAI"); /* J means nothing */
        ck_assert_ptr_nonnull(strstr(drawn, "Search: TRAI_  F3 goes on"));
        ck_assert_ptr_nonnull(strstr(drawn, "test")); /* nothing is hidden */
        ck_assert_int_eq(strncmp(chosen, "train", 5), 0);
        window(72, 12, "^3");
        ck_assert_int_eq(strncmp(chosen, "second train", 12), 0);
        window(72, 12, "^3"); /* and from the top again */
        ck_assert_int_eq(strncmp(chosen, "train", 5), 0);
        window(72, 12, "x");
        ck_assert_ptr_nonnull(strstr(drawn, "no job has that"));
        ck_assert_int_eq(strncmp(chosen, "train", 5), 0);
        window(72, 12, "^b");
        ck_assert_ptr_nonnull(strstr(drawn, "F3 goes on"));
        window(72, 12, "^e^3sound^x"); /* a dataset has it */
        ck_assert_uint_eq(state.mode, MODE_TABLE);
        ck_assert_int_eq(strncmp(chosen, "test", 4), 0);
        window(72, 12, "^r^3rank"); /* ranks are passed over */
        ck_assert_ptr_nonnull(strstr(drawn, "no job has that"));
        now.glance.n_jobs = 0;
        ck_assert_ptr_nonnull(strstr(window(72, 12, "^3"), "no job has that"));
}
END_TEST

START_TEST(a_delay_is_typed_within_bounds) {
        tell_jobs();
        window(72, 12, "d^b2.5^e");
        ck_assert_double_eq(state.delay, 2.5);
        window(72, 12, "d^b^b^b0^e");
        ck_assert_double_eq(state.delay, DELAY_LEAST);
        window(72, 12, "d^b^b^bnan^e");
        ck_assert_double_eq(state.delay, DELAY_LEAST);
        window(72, 12, "d^b^b^b9999999^e");
        ck_assert_double_eq(state.delay, DELAY_MOST);
        window(72, 12, "d^b^b^b^bx^e");
        window(72, 12, "d1^x");
        ck_assert_double_eq(state.delay, DELAY_MOST);
}
END_TEST

START_TEST(a_column_to_sort_by_is_chosen_from_all) {
        tell_jobs();
        ck_assert_ptr_nonnull(strstr(window(72, 20, "^6"), "Sort by\n  JOB\n  USER\n"));
        ck_assert_str_eq(chosen, "  WAIT%");
        window(72, 20, "^u^u^u^u^u^u^u^u^u^u^u^u^e");
        ck_assert_uint_eq(state.sorting.column, COLUMN_JOB);
        window(72, 20, "^6^d^d^d^d^d^d^d^d^d^d^d^d^d^d^d^d^d^d^e");
        ck_assert_uint_eq(state.sorting.column, COLUMN_DAMAGED);
        window(72, 20, ">");
        ck_assert_uint_eq(state.sorting.column, COLUMN_DAMAGED);
        window(72, 20, "<");
        ck_assert_uint_eq(state.sorting.column, COLUMN_RING);
        window(72, 20, "^6^x");
        ck_assert_uint_eq(state.sorting.column, COLUMN_RING);
}
END_TEST

START_TEST(enter_shows_all_of_a_job) {
        tell_jobs();
        window(80, 60, "^e");
        ck_assert_int_eq(strncmp(drawn, "job train of alice\nverdict     highly input-bound: ", 52 - 1), 0);
        ck_assert_ptr_nonnull(strstr(drawn, "\nadvice      "));
        ck_assert_ptr_nonnull(strstr(drawn, "\nrate "));
        ck_assert_ptr_nonnull(strstr(drawn, "process 1001\n"));
        ck_assert_ptr_nonnull(strstr(drawn, "\nEscBack\n"));
        strstr(drawn, "process 1001\n")[13] = '\0'; /* blank lines follow */
        expect_lines(strstr(drawn, "\nrate ") + 1,
                     "rate        100 samples/s, read 0 B/s, each read -\n"
                     "waits       50 % of the time of the rank that waits most; a batch was ready 0 %\n"
                     "            of the time\n"
                     "dataset     photos\n"
                     "pipeline    random_resized_crop(224) hflip(0.5) color_jitter(0.4, 0.4, 0.4, 0.1)\n"
                     "            to(float32)\n"
                     "ranks       2 on this node of 8, batches of 0\n"
                     "order       in sequence, , , seed 0\n"
                     "damaged     0 samples, any number is allowed; on_error\n"
                     "\n"
                     "Where the workers' time goes\n"
                     "decode         75 % ███████████████████▌░░░░░░ 7.5 ms a sample, 0.75 workers\n"
                     "color_jitter   25 % ██████▌░░░░░░░░░░░░░░░░░░░ 2.5 ms a sample, 0.25 workers\n"
                     "\n"
                     "Ranks\n"
                     "JOB           DATASET          SAMPLES/S WAIT% READY%   SLOTS STATUS\n"
                     " ├─ rank 0    epoch 0, step 0        100     0    100     3/4 process 1000\n"
                     " └─ rank 1    epoch 0, step 0        100    50      0     3/4 process 1001\n");
        window(80, 6, "^d^d^d");
        ck_assert_int_ne(strncmp(drawn, "job train", 9), 0); /* scrolled */
        now.glance.n_jobs = 0;
        ck_assert_ptr_nonnull(strstr(window(80, 6, ""), "the job has ended"));
        window(80, 6, "q");
        ck_assert_uint_eq(state.mode, MODE_TABLE);
        ck_assert(!state.quits);
        window(80, 6, "q");
        ck_assert(state.quits);
}
END_TEST

START_TEST(any_keys_leave_a_state_that_can_be_drawn) {
        static const char *const KEYS[] = { "^u", "^d", "^l", "^r", "^e", "^x", "^b", "^3", "^4", "^6", "h", "?", "t",
                                            "+",  "-",  "<",  ">",  "I",  "/",  "\\", "d",  " ",  "S",  "x", "1", "." };

        srandom(7);
        tell_jobs();
        for (int i = 0; i < 20000; i++) {
                window((unsigned)random() % 100, (unsigned)random() % 30,
                       KEYS[(size_t)random() % (sizeof(KEYS) / sizeof(KEYS[0]))]);
                now.glance.n_jobs = (size_t)random() % 3;
                ck_assert(!state.quits);
                ck_assert(state.delay >= DELAY_LEAST && state.delay <= DELAY_MOST);
        }
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "window", a_window_has_head_table_and_keys, 0 },
                { "window", small_windows_show_the_table_first, 0 },
                { "window", enter_shows_all_of_a_job, 0 },
                { "keys", arrows_choose_and_open_and_the_choice_stays_with_its_job, 0 },
                { "keys", a_long_table_scrolls_to_what_is_chosen, 0 },
                { "keys", a_typed_filter_works_at_once_and_escape_clears_it, 0 },
                { "keys", a_search_chooses_job_after_job_and_says_that_there_is_none, 0 },
                { "keys", a_delay_is_typed_within_bounds, 0 },
                { "keys", a_column_to_sort_by_is_chosen_from_all, 0 },
                { "keys", any_keys_leave_a_state_that_can_be_drawn, 0 },
        };

        return suite_run("top page", rows, sizeof(rows) / sizeof(rows[0]));
}
