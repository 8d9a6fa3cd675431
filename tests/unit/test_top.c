/* dlctl top: what two looks at the daemon say, and how it is laid out. */

#include <check.h>
#include <stdio.h>
#include <string.h>

#include "client/dlctl/top/top_view.h"
#include "proto/wait_reason.h"
#include "tests/support/glances.h"
#include "tests/support/suite.h"

static struct told earlier, now;

static void compare(struct rates *ret_rates) {
        const struct glance *const glances[] = { &earlier.glance, &now.glance };

        rates_make(glances, 2, ret_rates);
}

#define ck_assert_near(value, expected) ck_assert_double_eq_tol(value, expected, 1e-9)

/* ---- rates --------------------------------------------------------------------------------------------------- */

START_TEST(rates_are_of_the_daemons_time_between_two_looks) {
        struct rates rates;

        tell(&earlier, 10 * SECOND);
        tell_job(&earlier, "train", "photos", 1000)->worker_ns = 4 * SECOND;
        tell_stage(&earlier, 0, "header", 1 * SECOND);
        tell(&now, 12 * SECOND);
        tell_job(&now, "train", "photos", 3000)->worker_ns = 7 * SECOND;
        tell_stage(&now, 0, "header", 2 * SECOND);
        tell_stage(&now, 1, "decode", 3 * SECOND); /* that had not begun */
        now.jobs[0].n_bytes_read = 4096;
        now.jobs[0].n_reads = 4;
        now.jobs[0].read_ns = SECOND;
        now.node.worker_ns = 3 * SECOND;
        now.node.n_samples = 2000;
        compare(&rates);
        ck_assert_near(rates.jobs[0].samples, 1000);
        ck_assert_near(rates.jobs[0].workers, 1.5);
        ck_assert_near(rates.jobs[0].bytes, 2048);
        ck_assert_near(rates.jobs[0].read_seconds, 0.25);
        ck_assert_uint_eq(rates.jobs[0].n_stages, 2);
        ck_assert_str_eq(rates.jobs[0].stages[0].name, "decode");
        ck_assert_near(rates.jobs[0].stages[0].share, 0.75);
        ck_assert_near(rates.jobs[0].stages[0].per_sample, 3.0 / 2000);
        ck_assert_near(rates.node.workers, 1.5);
        ck_assert_near(rates.node.samples, 1000);
        ck_assert_near(rates.node.storage, UNKNOWN); /* the daemon does not say */
        rates_free(&rates);
}
END_TEST

START_TEST(a_jobs_wait_is_that_of_its_slowest_rank) {
        struct rates rates;

        tell(&earlier, 10 * SECOND);
        tell_job(&earlier, "train", "photos", 0);
        tell_rank(&earlier, 0, 5 * SECOND, 0, 5 * SECOND);
        tell_rank(&earlier, 1, 5 * SECOND, 0, 5 * SECOND);
        tell(&now, 20 * SECOND);
        tell_job(&now, "train", "photos", 0);
        tell_rank(&now, 0, 15 * SECOND, SECOND / 10, 15 * SECOND - SECOND / 10);
        tell_rank(&now, 1, 15 * SECOND, 4 * SECOND, 11 * SECOND)->waiting->waiting_ns = SECOND;
        compare(&rates);
        ck_assert_near(rates.jobs[0].ranks[0].wait, 0.01);
        ck_assert_near(rates.jobs[0].ranks[1].wait, 0.4);
        ck_assert_near(rates.jobs[0].wait, 0.4);
        ck_assert_near(rates.jobs[0].ranks[1].ready, 0.2);
        ck_assert_near(rates.jobs[0].ready, 0.2);
        ck_assert_near(rates.jobs[0].ranks[1].per_step, 0.06);
        ck_assert_near(rates.jobs[0].ranks[1].waiting, 1);
        ck_assert_near(rates.jobs[0].ranks[0].samples, 100);
        ck_assert_near(rates.jobs[0].ranks[0].batches, 10);
        ck_assert_uint_eq(rates.jobs[0].n_ready, 6);
        ck_assert_uint_eq(rates.jobs[0].n_slots, 8);
        rates_free(&rates);
}
END_TEST

START_TEST(a_wait_for_the_first_batch_is_a_wait) {
        Dlp__Waiting *waiting;
        struct rates rates;

        tell(&earlier, 10 * SECOND);
        tell_job(&earlier, "train", "photos", 0);
        waiting = tell_rank(&earlier, 0, 5 * SECOND, 0, 0)->waiting;
        waiting->n_batches = 0;
        waiting->waiting_ns = SECOND;
        tell(&now, 20 * SECOND);
        tell_job(&now, "train", "photos", 0);
        waiting = tell_rank(&now, 0, 15 * SECOND, 0, 0)->waiting;
        waiting->n_batches = 0;
        waiting->waiting_ns = 11 * SECOND;
        compare(&rates);
        ck_assert_near(rates.jobs[0].wait, 1);
        rates_free(&rates);
}
END_TEST

START_TEST(what_was_not_there_before_has_no_rates) {
        struct rates rates;

        tell(&earlier, 10 * SECOND);
        tell_job(&earlier, "train", "photos", 5000);
        tell_rank(&earlier, 0, 5 * SECOND, 0, 0);
        tell_job(&earlier, "again", "photos", 700);
        tell(&now, 11 * SECOND);
        tell_job(&now, "again", "photos", 10); /* another job with that name */
        tell_job(&now, "train", "photos", 5000);
        tell_rank(&now, 0, SECOND / 2, 0, 0); /* attached again */
        tell_rank(&now, 1, SECOND, 0, 0);
        tell_job(&now, "new", "photos", 0);
        compare(&rates);
        ck_assert_near(rates.jobs[0].samples, UNKNOWN);
        ck_assert_near(rates.jobs[1].samples, 0);
        ck_assert_near(rates.jobs[1].ranks[0].samples, UNKNOWN);
        ck_assert_near(rates.jobs[1].ranks[1].wait, UNKNOWN);
        ck_assert_near(rates.jobs[1].wait, UNKNOWN);
        ck_assert_near(rates.jobs[2].samples, UNKNOWN);
        rates_free(&rates);
}
END_TEST

START_TEST(each_job_is_compared_with_the_earliest_look_that_has_it) {
        static struct told middle;
        const struct glance *const glances[] = { &earlier.glance, &middle.glance, &now.glance };
        struct rates rates;

        tell(&earlier, 1 * SECOND);
        tell_job(&earlier, "old", "photos", 0);
        tell(&middle, 2 * SECOND);
        tell_job(&middle, "new", "photos", 100);
        tell_job(&middle, "old", "photos", 100);
        tell(&now, 5 * SECOND);
        tell_job(&now, "old", "photos", 800);
        tell_job(&now, "new", "photos", 400);
        rates_make(glances, 3, &rates);
        ck_assert_near(rates.jobs[0].samples, 200);
        ck_assert_near(rates.jobs[0].seconds, 4);
        ck_assert_near(rates.jobs[1].samples, 100);
        rates_free(&rates);
        rates_make(&glances[2], 1, &rates);
        ck_assert_near(rates.jobs[0].samples, UNKNOWN);
        ck_assert_near(rates.node.samples, UNKNOWN);
        rates_free(&rates);
}
END_TEST

START_TEST(counters_that_go_back_make_no_negative_rates) {
        struct rates rates;

        tell(&earlier, 10 * SECOND);
        tell_job(&earlier, "train", "photos", 0)->read_ns = SECOND;
        tell_rank(&earlier, 0, 5 * SECOND, 3 * SECOND, 3 * SECOND);
        tell(&now, 11 * SECOND);
        tell_job(&now, "train", "photos", 0)->n_reads = 1;
        tell_rank(&now, 0, 6 * SECOND, 2 * SECOND, 4 * SECOND);
        compare(&rates);
        ck_assert_near(rates.jobs[0].wait, 0);
        ck_assert_near(rates.jobs[0].ready, 1);
        ck_assert_near(rates.jobs[0].read_seconds, 0);
        rates_free(&rates);
}
END_TEST

/* ---- which, in which sequence -------------------------------------------------------------------------------- */

static bool expands_all(const void *arg, struct item_key job) {
        return true;
}

static bool expands_none(const void *arg, struct item_key job) {
        return false;
}

/* The names of the items, with a number for each rank. */
static const char *sequence(struct sorting sorting, const char *filter, expands_fn *expands) {
        static char text[256];
        struct rates rates;
        struct items items;
        size_t n = 0;

        compare(&rates);
        items_make(&rates, sorting, filter, expands, NULL, &items);
        text[0] = '\0';
        for (size_t i = 0; i < items.n; i++)
                if (items.items[i].rank)
                        n += (size_t)snprintf(text + n, sizeof(text) - n, " %u", items.items[i].rank->rank->rank);
                else
                        n += (size_t)snprintf(text + n, sizeof(text) - n, " %s", items.items[i].job->job->name);
        items_free(&items);
        rates_free(&rates);
        return text;
}

START_TEST(jobs_stand_as_they_are_sorted_and_filtered) {
        tell(&earlier, 10 * SECOND);
        tell(&now, 11 * SECOND);
        for (int i = 0; i < 2; i++) {
                struct told *told = i == 0 ? &earlier : &now;

                tell_job(told, "b", "photos", i == 0 ? 0 : 10);
                tell_rank(told, 1, (2 + (unsigned)i) * SECOND, 0, (unsigned)i * SECOND);
                tell_rank(told, 0, (2 + (unsigned)i) * SECOND, 0, 0);
                tell_job(told, "c", "sound", i == 0 ? 0 : 30)->n_errors = 4;
                tell_rank(told, 0, (2 + (unsigned)i) * SECOND, (unsigned)i * SECOND, 0);
                tell_job(told, "a", "Photos/2", i == 0 ? 0 : 20);
        }
        ck_assert_str_eq(sequence((struct sorting){ COLUMN_JOB, false }, "", expands_none), " a b c");
        ck_assert_str_eq(sequence((struct sorting){ COLUMN_JOB, true }, "", expands_none), " c b a");
        ck_assert_str_eq(sequence((struct sorting){ COLUMN_SAMPLES, false }, "", expands_none), " c a b");
        ck_assert_str_eq(sequence((struct sorting){ COLUMN_SAMPLES, true }, "", expands_none), " b a c");
        ck_assert_str_eq(sequence((struct sorting){ COLUMN_WAIT, false }, "", expands_all), " c 0 b 0 1 a");
        ck_assert_str_eq(sequence((struct sorting){ COLUMN_RANKS, false }, "photos", expands_none), " b a");
        ck_assert_str_eq(sequence((struct sorting){ COLUMN_DAMAGED, false }, "", expands_none), " c a b");
        ck_assert_str_eq(sequence((struct sorting){ COLUMN_JOB, false }, "nothing", expands_none), "");
        ck_assert_str_eq(sequence((struct sorting){ COLUMN_JOB, false }, "ALICE", expands_none), " a b c");
}
END_TEST

START_TEST(columns_are_known_by_their_names) {
        enum column column = N_COLUMNS;

        ck_assert_int_eq(column_from_name("job", &column), 0);
        ck_assert_uint_eq(column, COLUMN_JOB);
        ck_assert_int_eq(column_from_name("damaged", &column), 0);
        ck_assert_uint_eq(column, COLUMN_DAMAGED);
        ck_assert_int_lt(column_from_name("status", &column), 0);
        ck_assert_int_lt(column_from_name("", &column), 0);
}
END_TEST

/* ---- lines --------------------------------------------------------------------------------------------------- */

static char drawn[1 << 22];

static void draw(void *arg, const struct line *line) {
        size_t n = strlen(drawn), n_line = line->text.n;

        ck_assert_uint_le(line->text.n_columns, line->n_columns);
        ck_assert_uint_eq(strlen(line->bytes), n_line);
        for (const char *c = line->bytes; *c; c++)
                ck_assert_msg((unsigned char)*c >= ' ' && *c != 0x7f, "a control character in \"%s\"", line->bytes);
        while (n_line > 0 && line->bytes[n_line - 1] == ' ')
                n_line--;
        ck_assert_uint_lt(n + n_line + 2, sizeof(drawn));
        snprintf(drawn + n, sizeof(drawn) - n, "%.*s\n", (int)n_line, line->bytes);
}

static const char *draw_table(unsigned n_columns, bool utf8, expands_fn *expands) {
        struct view view = { .n_columns = n_columns, .utf8 = utf8, .host = "node1", .datasets = &now.glance };
        struct layout layout;
        struct rates rates;
        struct items items;
        struct line line;

        compare(&rates);
        items_make(&rates, view.sorting, "", expands, NULL, &items);
        view.rates = &rates;
        view_layout(&view, &items, &layout);
        drawn[0] = '\0';
        view_titles(&view, &layout, &line);
        draw(NULL, &line);
        for (size_t i = 0; i < items.n; i++) {
                view_item(&view, &layout, &items.items[i], &line);
                draw(NULL, &line);
        }
        items_free(&items);
        rates_free(&rates);
        return drawn;
}

static const char *draw_head(unsigned n_columns, unsigned n_lines, const char *away) {
        struct view view = { .n_columns = n_columns, .host = "node1", .datasets = &now.glance, .away = away };
        struct rates rates;

        compare(&rates);
        view.rates = &rates;
        drawn[0] = '\0';
        view_head(&view, n_lines, draw, NULL);
        rates_free(&rates);
        return drawn;
}

static void tell_two_jobs(void) {
        tell(&earlier, 10 * SECOND);
        tell(&now, 12 * SECOND);
        for (unsigned i = 0; i < 2; i++) {
                struct told *told = i == 0 ? &earlier : &now;

                tell_job(told, "evaluation", "photos", i * 3000)->worker_ns = i * 3 * SECOND;
                tell_rank(told, 0, i * 2 * SECOND, i * SECOND / 5, i * 2 * SECOND - i * SECOND / 5)->ring_bytes = 1
                                                                                                                  << 20;
                tell_rank(told, 1, i * 2 * SECOND, 0, i * 2 * SECOND);
                tell_job(told, "train", "sound", i * 7)->failure = (char *)"3 of 3 damaged samples";
                told->jobs[1].n_errors = 3;
        }
        now.node.worker_ns = 3 * SECOND;
        now.node.worker_cpu_ns = 2 * SECOND;
        now.node.n_samples = 3007;
}

START_TEST(the_table_has_the_columns_that_fit) {
        tell_two_jobs();
        ck_assert_str_eq(
                draw_table(140, true, expands_all),
                "JOB           USER   DATASET         RANKS SAMPLES/S WAIT% READY%   SLOTS WORK%         READ     MEMORY DAMAGED STATUS\n"
                "evaluation    alice  photos            2/8      1500    10     80     6/8   150        0 B/s    1.0 MiB       0 too few batches ahead\n"
                " ├─ rank 0    alice  epoch 0, step 0             100    10     80     3/4                       1.0 MiB         process 1000\n"
                " └─ rank 1    alice  epoch 0, step 0             100     0    100     3/4                       0 bytes         process 1001\n"
                "train         alice  sound             0/8       3.5     -      -     0/0     0        0 B/s    0 bytes       3 failed: 3 of 3 damaged samp…\n");
        ck_assert_str_eq(draw_table(40, false, expands_all), "JOB       SAMPLES/S WAIT% STATUS\n"
                                                             "ev..ation      1500    10 too few batc..\n"
                                                             " |- rank 0       100    10 process 1000\n"
                                                             " `- rank 1       100     0 process 1001\n"
                                                             "train           3.5     - failed: 3 of..\n");
        ck_assert_str_eq(draw_table(14, true, expands_none), "JOB      WAIT%\nev…ation    10\ntrain        -\n");
        ck_assert_str_eq(draw_table(3, true, expands_none), "\n\n\n");
}
END_TEST

START_TEST(the_head_says_what_the_node_does_and_gives_way_in_small_windows) {
        Dlp__Progress progress = DLP__PROGRESS__INIT;

        tell_two_jobs();
        tell_dataset(&now, "photos", "ready")->n_errors = 2;
        tell_dataset(&now, "sound", "ready")->n_errors = 3;
        tell_dataset(&now, "text", "indexing")->progress = &progress;
        tell_dataset(&now, "gone", "failed")->text = (char *)"/data/gone cannot be opened";
        progress.phase = (char *)"indexing";
        progress.done = 5;
        progress.total = 10;
        progress.unit = (char *)"files";
        progress.seconds_left = -1;
        ck_assert_str_eq(draw_head(100, 20, NULL),
                         "dataloaderd on node1, up 12 s: 2 jobs, 2 ranks, 1504 samples/s\n"
                         "Workers  [||||||||||||               38 %] 1.5 of 4 at work, on 1.0 of 4 CPUs\n"
                         "Memory   [||||||||                   25 %] 2.0 GiB of 8.0 GiB\n"
                         "Reads    [||||||||                   25 %] 16 of 64 under way, 0 B/s\n"
                         "Damaged  5 samples: photos 2, sound 3\n"
                         "text: indexing ====================--------------------  50 %  5 of 10 files\n"
                         "gone: failed: /data/gone cannot be opened\n");
        ck_assert_str_eq(draw_head(100, 2, "the daemon has ended"),
                         "the daemon has ended\ndataloaderd on node1, up 12 s: 2 jobs, 2 ranks, 1504 samples/s\n");
        ck_assert_str_eq(draw_head(20, 2, NULL), "dataloaderd on node1\nWorkers  [|||  38 %]\n");
        ck_assert_str_eq(draw_head(20, 0, NULL), "");
}
END_TEST

START_TEST(a_number_that_only_the_daemon_knows_is_shown_by_its_name_and_unit) {
        Dlp__Fact facts[4], *pointers[] = { &facts[0], &facts[1], &facts[2], &facts[3] };
        static const struct {
                const char *name, *value, *unit;
                bool watched;
        } ROWS[] = { { "n_odd_events", "12", "samples", true },
                     { "odd_bytes", "1048576", "bytes", true },
                     { "n_calm", "0", "", true },
                     { "n_quiet", "7", "", false } };

        tell_two_jobs();
        for (size_t i = 0; i < 4; i++) {
                dlp__fact__init(&facts[i]);
                facts[i].name = (char *)(uintptr_t)ROWS[i].name;
                facts[i].value = (char *)(uintptr_t)ROWS[i].value;
                facts[i].unit = (char *)(uintptr_t)ROWS[i].unit;
                facts[i].watched = ROWS[i].watched;
        }
        now.status.counters = pointers;
        now.status.n_counters = 4;
        ck_assert_ptr_nonnull(strstr(draw_head(100, 20, NULL), "\nCounted  odd events 12, odd bytes 1.0 MiB\n"));
        facts[0].name = (char *)"n_\x1b[2J\n";
        draw_head(60, 20, NULL); /* draw() looks for control characters */
        now.status.n_counters = 0;
        ck_assert_ptr_null(strstr(draw_head(100, 20, NULL), "Counted"));
}
END_TEST

START_TEST(names_of_any_bytes_stay_within_their_line) {
        static const char *const NAMES[] = { "\x1b[2Jhello\r\n\t",
                                             "\xff\xfe\x80",
                                             "\xe2\x80\xae"
                                             "gpj.exe",
                                             "\xc2\x9b"
                                             "31m",
                                             "训练训练训练训练训练训练训练训练训练训练训练",
                                             "e\xcc\x81\xcc\x81\xcc\x81" };
        Dlp__WaitReason reason = DLP__WAIT_REASON__INIT;

        for (size_t i = 0; i < sizeof(NAMES) / sizeof(NAMES[0]); i++)
                for (unsigned width = 1; width < 130; width += 7) {
                        tell(&earlier, SECOND);
                        tell(&now, 2 * SECOND);
                        tell_job(&now, NAMES[i], NAMES[i], 0)->user = (char *)(uintptr_t)NAMES[i];
                        now.jobs[0].wait_reason = &reason;
                        reason.reason = DLP_WAIT_OUTAGE;
                        reason.detail = (char *)(uintptr_t)NAMES[i];
                        tell_dataset(&now, NAMES[i], "failed")->text = (char *)(uintptr_t)NAMES[i];
                        now.datasets[0].n_errors = 1;
                        draw_table(width, i % 2 == 0, expands_all);
                        draw_table(width, i % 2 == 1, expands_all);
                        draw_head(width, 10, NAMES[i]);
                }
}
END_TEST

START_TEST(a_full_node_is_drawn) {
        const char *table;
        size_t n_lines = 0;

        tell(&earlier, SECOND);
        tell(&now, 2 * SECOND);
        for (unsigned i = 0; i < TOLD_JOBS_MAX; i++) {
                tell_job(&now, "job", "photos", 0);
                for (uint32_t rank = 0; rank < TOLD_RANKS_MAX; rank++)
                        tell_rank(&now, rank, SECOND, 0, SECOND);
        }
        table = draw_table(120, true, expands_all);
        for (const char *c = table; *c; c++)
                n_lines += *c == '\n';
        ck_assert_uint_eq(n_lines, 1 + TOLD_JOBS_MAX * (TOLD_RANKS_MAX + 1));
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "rates", rates_are_of_the_daemons_time_between_two_looks, 0 },
                { "rates", a_jobs_wait_is_that_of_its_slowest_rank, 0 },
                { "rates", a_wait_for_the_first_batch_is_a_wait, 0 },
                { "rates", what_was_not_there_before_has_no_rates, 0 },
                { "rates", each_job_is_compared_with_the_earliest_look_that_has_it, 0 },
                { "rates", counters_that_go_back_make_no_negative_rates, 0 },
                { "items", jobs_stand_as_they_are_sorted_and_filtered, 0 },
                { "items", columns_are_known_by_their_names, 0 },
                { "lines", the_table_has_the_columns_that_fit, 0 },
                { "lines", the_head_says_what_the_node_does_and_gives_way_in_small_windows, 0 },
                { "lines", a_number_that_only_the_daemon_knows_is_shown_by_its_name_and_unit, 0 },
                { "lines", names_of_any_bytes_stay_within_their_line, 0 },
                { "lines", a_full_node_is_drawn, 0 },
        };

        return suite_run("top", rows, sizeof(rows) / sizeof(rows[0]));
}
