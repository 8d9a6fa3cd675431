/* A client that waits: for a slow daemon, in vain, in an event loop; and for one that dies, with on_restart "raise". */

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/support/client.h"
#include "tests/support/suite.h"

/* ---- waiting -------------------------------------------------------------------------------------------------------
 */

START_TEST(a_slow_daemon_wakes_a_sleeping_client) {
        struct stand_in_manners manners = { .n_samples = 60, .pause_us = 2000 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 2);
        struct dlc_loader *loader = open_loader(&options);

        check_epoch(loader, 0);
        ck_assert_uint_gt(manners.n_wakes, 5);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(a_wait_ends_when_its_time_is_over) {
        struct stand_in_manners manners = { .n_samples = 60, .hold = true };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 2);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *batch = NULL;
        uint64_t began = now_ms(), took;

        ck_assert_int_eq(dlc_next(loader, 50, &batch), -ETIMEDOUT);
        took = now_ms() - began;
        ck_assert_uint_ge(took, 49);
        ck_assert_uint_lt(took, 5000);
        ck_assert_ptr_null(batch);
        ck_assert_str_eq(dlc_error(loader), "no batch within 50 ms");
        ck_assert_int_eq(dlc_next(loader, 0, &batch), -EAGAIN);
        manners.hold = false;
        check_epoch(loader, 0);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(an_event_loop_sleeps_between_batches) {
        struct stand_in_manners manners = { .n_samples = 40, .pause_us = 3000 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 2);
        struct dlc_loader *loader = open_loader(&options);
        uint64_t step = 0, n_polls = 0;

        while (step < dlc_epoch_batches(loader)) {
                struct pollfd item = { .fd = dlc_fd(loader), .events = POLLIN };
                const struct dlc_batch *batch;
                int r = dlc_next(loader, 0, &batch);

                if (r == 0) {
                        check_batch(loader, batch, 0, step++);
                        ck_assert_int_eq(dlc_release(loader, batch), 0);
                        continue;
                }
                ck_assert_int_eq(r, -EAGAIN);
                ck_assert_int_eq(poll(&item, 1, PATIENCE_MS), 1); /* never lost */
                n_polls++;
        }
        /* At most one wake-up that was not needed for each that was. */
        ck_assert_uint_le(n_polls, 2 * dlc_epoch_batches(loader) + 2);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

static void on_signal(int number) {
        (void)number;
}

START_TEST(a_signal_ends_a_wait_and_nothing_is_lost) {
        struct stand_in_manners manners = { .n_samples = 40, .hold = true };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 2);
        struct dlc_loader *loader = open_loader(&options);
        struct sigaction action = { .sa_handler = on_signal }, before;
        struct itimerval timer = { .it_value.tv_usec = 20000, .it_interval.tv_usec = 20000 }, off = { 0 };
        const struct dlc_batch *batch;

        sigaction(SIGALRM, &action, &before);
        setitimer(ITIMER_REAL, &timer, NULL);
        /* The timer may hit the stand-in's thread instead; it comes again. */
        ck_assert_int_eq(dlc_next(loader, PATIENCE_MS, &batch), -EINTR);
        setitimer(ITIMER_REAL, &off, NULL);
        sigaction(SIGALRM, &before, NULL);
        manners.hold = false;
        check_epoch(loader, 0);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

/* ---- dying ---------------------------------------------------------------------------------------------------------
 */

START_TEST(what_was_ready_outlives_the_daemon) {
        struct stand_in_manners manners = { .n_samples = 100, .n_slots = 4 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 2);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *first = take(loader), *batch;
        uint64_t began;

        usleep(50000); /* let it fill the other slots */
        stand_in_kill(stand_in);
        for (uint64_t step = 1; step < 4; step++)
                check_batch(loader, take(loader), 0, step);
        ck_assert_int_eq(dlc_release(loader, first), 0);
        began = now_ms();
        ck_assert_int_eq(dlc_next(loader, -1, &batch), -ECONNRESET);
        ck_assert_uint_lt(now_ms() - began, 1000);
        ck_assert_ptr_nonnull(strstr(dlc_error(loader), stand_in_path(stand_in)));
        ck_assert_int_eq(dlc_next(loader, -1, &batch), -ECONNRESET);
        ck_assert_int_eq(dlc_next(loader, 0, &batch), -ECONNRESET);
        ck_assert_int_eq(dlc_set_epoch(loader, 3), -ECONNRESET);
        ck_assert_ptr_nonnull(strstr(dlc_last_error(), stand_in_path(stand_in)));
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

static void *kill_later(void *userdata) {
        usleep(30000);
        stand_in_kill(userdata);
        return NULL;
}

START_TEST(a_daemon_that_dies_ends_a_wait) {
        struct stand_in_manners manners = { .n_samples = 100, .hold = true };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 2);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *batch;
        pthread_t thread;

        ck_assert_int_eq(pthread_create(&thread, NULL, kill_later, stand_in), 0);
        ck_assert_int_eq(dlc_next(loader, PATIENCE_MS, &batch), -ECONNRESET);
        pthread_join(thread, NULL);
        ck_assert_int_eq(dlc_set_epoch(loader, 9), -ECONNRESET);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

/* The end of the connection and the last batch come at the same moment: whichever is seen first, the batch counts. */
START_TEST(a_batch_published_with_the_last_breath_arrives) {
        for (int i = 0; i < 200; i++) {
                struct stand_in_manners manners = { .n_samples = 100, .close_at = 2, .pause_us = i % 20 };
                struct stand_in *stand_in = stand_in_start(&manners);
                struct dlc_options options = options_for(stand_in, 2);
                struct dlc_loader *loader = open_loader(&options);
                const struct dlc_batch *batch;

                check_steps(loader, 0, 0, 2);
                ck_assert_int_eq(dlc_next(loader, PATIENCE_MS, &batch), -ECONNRESET);
                dlc_close(loader);
                stand_in_stop(stand_in);
        }
}
END_TEST

START_TEST(the_daemons_last_words_are_handed_on) {
        struct stand_in_manners manners = { .n_samples = 100,
                                            .close_at = 3,
                                            .farewell = "the client scribbles over its page" };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 2);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *batch;

        check_steps(loader, 0, 0, 3);
        ck_assert_int_eq(dlc_next(loader, PATIENCE_MS, &batch), -ECONNRESET);
        ck_assert_ptr_nonnull(strstr(dlc_error(loader), "scribbles over its page"));
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

/* ---- what is waited for -----------------------------------------------------------------------------------------
 */

struct told {
        unsigned n, n_texts;
        struct dlc_progress progress;
        char phase[64], line[2048];
};

static void on_wait(void *userdata, const struct dlc_progress *progress) {
        struct told *told = userdata;

        told->n++;
        told->progress = *progress;
        snprintf(told->phase, sizeof(told->phase), "%s", progress->phase);
        ck_assert_str_eq(progress->dataset, "photos");
        ck_assert_int_eq(dlc_progress_line(progress, 80, false, told->line, sizeof(told->line)), 0);
}

static void on_progress(void *userdata, const char *text) {
        struct told *told = userdata;

        told->n_texts++;
        ck_assert_ptr_nonnull(text);
}

static Dlp__Progress order_progress(void) {
        Dlp__Progress progress = DLP__PROGRESS__INIT;

        progress.phase = (char *)(uintptr_t) "making the order";
        progress.unit = (char *)(uintptr_t) "samples";
        progress.done = 25000000;
        progress.total = 100000000;
        progress.seconds = 3;
        progress.per_second = 8000000;
        progress.seconds_left = 9;
        return progress;
}

START_TEST(opening_says_how_far_the_index_is) {
        Dlp__Progress progress = order_progress();
        struct stand_in_manners manners = { .n_samples = 20, .n_retries = 9, .progress = &progress };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct told told = { 0 };
        struct dlc_loader *loader;

        progress.phase = (char *)(uintptr_t) "indexing";
        progress.unit = (char *)(uintptr_t) "B";
        options.dataset = "photos";
        options.on_wait = on_wait;
        options.on_progress = on_progress;
        options.userdata = &told;
        loader = open_loader(&options);
        ck_assert_uint_ge(told.n, 1);
        ck_assert_uint_le(told.n, 9);
        ck_assert_uint_ge(told.n_texts, 1);
        ck_assert_str_eq(told.phase, "indexing");
        ck_assert_uint_eq(told.progress.done, 25000000);
        ck_assert_str_eq(told.line, "photos: indexing ===----------  25 %  23.8 MiB of 95.4 MiB  7.6 MiB/s  9 s left");
        ck_assert_uint_eq(manners.n_waits, 0); /* it does not know the question */
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(a_rank_without_a_batch_hears_how_far_the_order_is) {
        Dlp__Progress progress = order_progress();
        struct stand_in_manners manners = {
                .n_samples = 60, .hold = true, .progress = &progress, .answers_waits = true
        };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 2);
        uint64_t until = now_ms() + PATIENCE_MS;
        const struct dlc_batch *batch;
        struct dlc_loader *loader;
        struct told told = { 0 };

        options.dataset = "photos";
        options.on_wait = on_wait;
        options.userdata = &told;
        loader = open_loader(&options);
        ck_assert_uint_eq(told.n, 0);
        while (told.n < 2 && now_ms() < until) /* in slices, as interpreters wait */
                ck_assert_int_eq(dlc_next(loader, 200, &batch), -ETIMEDOUT);
        ck_assert_uint_ge(told.n, 2);
        ck_assert_str_eq(told.phase, "making the order");
        ck_assert_double_eq(told.progress.seconds_left, 9);
        manners.hold = false;
        check_epoch(loader, 0);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(a_daemon_that_does_not_know_the_question_is_not_asked) {
        struct stand_in_manners manners = { .n_samples = 60, .hold = true };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 2);
        const struct dlc_batch *batch;
        struct dlc_loader *loader;
        struct told told = { 0 };

        options.dataset = "photos";
        options.on_wait = on_wait;
        options.userdata = &told;
        loader = open_loader(&options);
        ck_assert_int_eq(dlc_next(loader, 800, &batch), -ETIMEDOUT);
        ck_assert_uint_eq(manners.n_waits, 0);
        ck_assert_uint_eq(told.n, 0);
        manners.hold = false;
        check_epoch(loader, 0);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(numbers_that_make_no_sense_are_not_handed_on) {
        Dlp__Progress progress = order_progress();
        struct stand_in_manners manners = { .n_samples = 20, .n_retries = 12, .progress = &progress };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct told told = { 0 };
        struct dlc_loader *loader;
        char text[4096];

        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        memcpy(text, "\033[2J\r\xff", 6);
        progress.phase = text;
        progress.unit = text;
        progress.done = UINT64_MAX;
        progress.seconds = -1.0 / 0.0;
        progress.per_second = 0.0 / 0.0;
        progress.seconds_left = 1.0 / 0.0;
        options.dataset = "photos";
        options.on_wait = on_wait;
        options.userdata = &told;
        loader = open_loader(&options);
        ck_assert_uint_ge(told.n, 1);
        ck_assert_uint_eq(told.progress.done, told.progress.total);
        ck_assert_double_eq(told.progress.seconds, 0);
        ck_assert_double_eq(told.progress.per_second, 0);
        ck_assert_double_lt(told.progress.seconds_left, 0);
        for (const char *at = told.line; *at; at++)
                ck_assert(*at >= ' ' && *at < 0x7f);
        ck_assert_uint_lt(strlen(told.line), 80);
        ck_assert_int_eq(dlc_progress_line(NULL, 80, true, text, sizeof(text)), -EINVAL);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "waiting", a_slow_daemon_wakes_a_sleeping_client },
                { "waiting", a_wait_ends_when_its_time_is_over },
                { "waiting", an_event_loop_sleeps_between_batches },
                { "waiting", a_signal_ends_a_wait_and_nothing_is_lost },
                { "told", opening_says_how_far_the_index_is },
                { "told", a_rank_without_a_batch_hears_how_far_the_order_is },
                { "told", a_daemon_that_does_not_know_the_question_is_not_asked },
                { "told", numbers_that_make_no_sense_are_not_handed_on },
                { "dying", what_was_ready_outlives_the_daemon },
                { "dying", a_daemon_that_dies_ends_a_wait },
                { "dying", a_batch_published_with_the_last_breath_arrives },
                { "dying", the_daemons_last_words_are_handed_on },
        };

        return suite_run("client_waiting", rows, sizeof(rows) / sizeof(rows[0]));
}
