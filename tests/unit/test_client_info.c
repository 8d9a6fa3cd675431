/* What a loader tells besides batches, and the life of batches after dlc_detach(). */

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/support/client.h"
#include "tests/support/suite.h"

START_TEST(statistics_count_what_was_handed_out_and_waited_for) {
        struct stand_in_manners manners = { .n_samples = 40, .n_slots = 4, .substitute_each = 10 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *held, *batch;
        struct dlc_stats stats;

        usleep(100000); /* the ring is full */
        held = take(loader);
        ck_assert_int_eq(dlc_get_stats(loader, &stats, sizeof(stats)), 0);
        ck_assert_uint_eq(stats.n_batches, 1);
        ck_assert_uint_eq(stats.n_samples, 4);
        ck_assert_uint_eq(stats.n_substituted, 1);
        ck_assert_uint_eq(stats.n_skipped, 0);
        ck_assert_uint_eq(stats.n_waits, 0);
        ck_assert_uint_eq(stats.waited_ns, 0);
        ck_assert_uint_eq(stats.read_ns, 4); /* as the stand-in says of each sample */
        ck_assert_uint_eq(stats.queued_ns, 8);
        ck_assert_uint_eq(stats.decode_ns, 12);
        ck_assert_uint_eq(stats.n_ready, 3);
        ck_assert_uint_eq(stats.n_held, 1);
        ck_assert_uint_eq(stats.n_slots, 4);
        ck_assert_uint_eq(stats.n_restarts, 0);
        ck_assert_uint_gt(stats.opened_ns, 0);

        manners.hold = true;
        ck_assert_uint_eq(held->n_substituted, 1);
        ck_assert_int_eq(dlc_seek(loader, 0, 20), 0); /* what was ready is left over now */
        ck_assert_int_eq(dlc_get_stats(loader, &stats, sizeof(stats)), 0);
        ck_assert_uint_eq(stats.n_ready, 0);
        ck_assert_int_eq(dlc_next(loader, 30, &batch), -ETIMEDOUT);
        ck_assert_int_eq(dlc_next(loader, 0, &batch), -EAGAIN);
        ck_assert_int_eq(dlc_get_stats(loader, &stats, sizeof(stats)), 0);
        ck_assert_uint_eq(stats.n_waits, 1); /* one batch, in two calls */
        ck_assert_uint_ge(stats.waited_ns, 29000000);
        ck_assert_uint_eq(stats.restart_ns, 0);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(statistics_of_other_versions_are_understood) {
        struct stand_in_manners manners = { .n_samples = 40 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader = open_loader(&options);
        struct {
                struct dlc_stats stats;
                uint64_t more[2];
        } newer = { .more = { 1, 1 } };
        uint64_t older[2] = { 99, 99 };

        check_steps(loader, 0, 0, 2);
        ck_assert_int_eq(dlc_get_stats(loader, &newer.stats, sizeof(newer)), 0);
        ck_assert_uint_eq(newer.stats.n_batches, 2);
        ck_assert_uint_eq(newer.more[0] | newer.more[1], 0);
        ck_assert_int_eq(dlc_get_stats(loader, (struct dlc_stats *)older, sizeof(older[0])), 0);
        ck_assert_uint_eq(older[0], 2);
        ck_assert_uint_eq(older[1], 99);
        ck_assert_int_eq(dlc_get_stats(loader, NULL, 8), -EINVAL);
        ck_assert_int_eq(dlc_get_stats(NULL, &newer.stats, 8), -EINVAL);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

/* ---- what holds up the job
 * ---------------------------------------------------------------------------------------------
 */

static void diagnose(struct dlc_loader *loader, struct dlc_diagnosis *ret_diagnosis, const char *limit) {
        ck_assert_int_eq(dlc_diagnose(loader, ret_diagnosis, sizeof(*ret_diagnosis)), 0);
        ck_assert_str_eq(ret_diagnosis->limit, limit);
        ck_assert_uint_gt(strlen(ret_diagnosis->verdict), 0);
        ck_assert_uint_gt(strlen(ret_diagnosis->advice), 0);
}

/* A job with one rank, which has taken n_batches and waited for half of the time. */
struct told_job {
        Dlp__Job job;
        Dlp__Rank rank, *ranks[1];
        Dlp__Waiting waiting;
};

static void tell_job(struct told_job *told, uint64_t n_batches) {
        dlp__job__init(&told->job);
        dlp__rank__init(&told->rank);
        dlp__waiting__init(&told->waiting);
        told->job.name = (char *)(uintptr_t) "job";
        told->job.batch_size = 4;
        told->job.now_ns = n_batches * 1000000000u;
        told->job.n_ranks = 1;
        told->job.ranks = told->ranks;
        told->ranks[0] = &told->rank;
        told->rank.waiting = &told->waiting;
        told->rank.age_ns = told->job.now_ns;
        told->waiting.n_batches = n_batches;
        told->waiting.wait_ns = told->waiting.busy_ns = n_batches * 500000000u;
}

START_TEST(a_verdict_is_about_the_loaders_own_job_since_the_last_one) {
        Dlp__Job other = DLP__JOB__INIT;
        struct told_job told;
        Dlp__Job *const jobs[] = { &other, &told.job };
        struct stand_in_manners manners = { .n_samples = 40, .jobs = jobs, .n_jobs = 2 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader = open_loader(&options);
        struct dlc_diagnosis diagnosis;

        other.name = (char *)(uintptr_t) "other";
        other.failure = (char *)(uintptr_t) "of another job";
        tell_job(&told, 8);
        told.job.name = (char *)(uintptr_t)dlc_get_info(loader)->job;
        diagnose(loader, &diagnosis, "latency");
        ck_assert_str_eq(diagnosis.input_bound, "highly");
        ck_assert_double_eq_tol(diagnosis.wait_share, 0.5, 1e-6);
        ck_assert_double_eq_tol(diagnosis.seconds, 8, 1e-6);
        ck_assert_double_eq_tol(diagnosis.samples_per_second, 4, 1e-6);

        tell_job(&told, 20); /* all of the time since then was the trainer's */
        told.job.name = (char *)(uintptr_t)dlc_get_info(loader)->job;
        told.waiting.wait_ns = 4000000000u;
        told.waiting.busy_ns = 16000000000u;
        diagnose(loader, &diagnosis, "trainer");
        ck_assert_str_eq(diagnosis.input_bound, "not");
        ck_assert_double_eq_tol(diagnosis.seconds, 12, 1e-6);

        manners.n_jobs = 1; /* its own is not told */
        diagnose(loader, &diagnosis, "nothing yet");
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(a_daemon_that_is_away_is_not_waited_for_by_a_verdict) {
        struct stand_in_manners manners = { .n_samples = 40, .n_slots = 4 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader;
        struct dlc_diagnosis diagnosis;
        const struct dlc_batch *batch;

        options.on_restart = _i ? "raise" : "wait";
        options.restart_timeout_ms = 1;
        loader = open_loader(&options);
        usleep(100000); /* the ring is full */
        stand_in_stop(stand_in);
        diagnose(loader, &diagnosis, "restart");
        ck_assert_ptr_nonnull(strstr(diagnosis.verdict, "away"));
        batch = take(loader); /* what lay ready comes nevertheless */
        ck_assert_int_eq(dlc_release(loader, batch), 0);
        while (dlc_next(loader, 1000, &batch) == 0)
                ck_assert_int_eq(dlc_release(loader, batch), 0);
        diagnose(loader, &diagnosis, "ended");
        ck_assert_ptr_nonnull(strstr(diagnosis.verdict, "the job has ended: "));
        dlc_close(loader);
}
END_TEST

START_TEST(verdicts_of_other_versions_and_wrong_calls_are_understood) {
        struct stand_in_manners manners = { .n_samples = 40 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader = open_loader(&options);
        struct {
                struct dlc_diagnosis diagnosis;
                uint64_t more;
        } newer = { .more = 7 };
        const char *older[2] = { NULL, "mine" };

        ck_assert_int_eq(dlc_diagnose(loader, &newer.diagnosis, sizeof(newer)), 0);
        ck_assert_str_eq(newer.diagnosis.limit, "nothing yet");
        ck_assert_uint_eq(newer.more, 0);
        ck_assert_int_eq(dlc_diagnose(loader, (struct dlc_diagnosis *)older, sizeof(older[0])), 0);
        ck_assert_str_eq(older[0], "nothing yet");
        ck_assert_str_eq(older[1], "mine");
        ck_assert_int_eq(dlc_diagnose(loader, NULL, 8), -EINVAL);
        ck_assert_int_eq(dlc_diagnose(NULL, &newer.diagnosis, 8), -EINVAL);
        dlc_detach(loader);
        ck_assert_int_eq(dlc_diagnose(loader, &newer.diagnosis, sizeof(newer)), -ESHUTDOWN);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

/* ---- classes -------------------------------------------------------------------------------------------------------
 */

static const char *const CLASSES[] = { "bird", "cat", "dog", "Fisch", "z" };

START_TEST(the_names_of_the_classes_come_page_by_page_and_stay) {
        struct stand_in_manners manners = {
                .n_samples = 40, .classes = CLASSES, .n_classes = 5, .page_classes = (uint32_t)_i
        };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader = open_loader(&options);

        ck_assert_str_eq(dlc_class_name(loader, 3), "Fisch");
        ck_assert_int_eq(dlc_n_classes(loader), 5);
        for (uint64_t i = 0; i < 5; i++)
                ck_assert_str_eq(dlc_class_name(loader, i), CLASSES[i]);
        ck_assert_ptr_null(dlc_class_name(loader, 5));
        ck_assert_ptr_null(dlc_class_name(loader, UINT64_MAX));
        stand_in_kill(stand_in);
        ck_assert_int_eq(dlc_n_classes(loader), 5);
        ck_assert_str_eq(dlc_class_name(loader, 4), "z");
        ck_assert_int_eq(dlc_n_classes(NULL), -EINVAL);
        ck_assert_ptr_null(dlc_class_name(NULL, 0));
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(a_dataset_may_have_no_classes) {
        struct stand_in_manners manners = { .n_samples = 40 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader = open_loader(&options);

        ck_assert_int_eq(dlc_n_classes(loader), 0);
        ck_assert_ptr_null(dlc_class_name(loader, 0));
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(class_names_that_do_not_add_up_are_an_error_and_batches_go_on) {
        struct stand_in_manners manners = {
                .n_samples = 40, .classes = CLASSES, .n_classes = 5, .page_classes = (uint32_t)_i, .bad_classes = true
        };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader = open_loader(&options);

        ck_assert_int_eq(dlc_n_classes(loader), -EPROTO);
        ck_assert_ptr_nonnull(strstr(dlc_error(loader), "do not add up"));
        ck_assert_ptr_null(dlc_class_name(loader, 0));
        check_epoch(loader, 0);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(classes_that_nobody_can_be_asked_for_are_an_error_and_ready_batches_still_come) {
        struct stand_in_manners manners = { .n_samples = 400, .n_slots = 4 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader = open_loader(&options);

        usleep(100000);
        stand_in_kill(stand_in);
        ck_assert_int_eq(dlc_n_classes(loader), -ECONNRESET);
        check_steps(loader, 0, 0, 4);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

/* ---- detaching -----------------------------------------------------------------------------------------------------
 */

START_TEST(batches_outlive_detaching_until_they_are_released) {
        struct stand_in_manners manners = { .n_samples = 40, .n_slots = 4, .classes = CLASSES, .n_classes = 5 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *first = take(loader), *second = take(loader), *batch;
        struct dlc_stats stats;
        uint64_t epoch, position;

        ck_assert_int_eq(dlc_n_classes(loader), 5);
        dlc_detach(loader);
        dlc_detach(loader);
        for (int waited = 0; manners.n_clients > 0 && waited < PATIENCE_MS; waited++)
                usleep(1000);
        ck_assert_uint_eq(manners.n_clients, 0);
        ck_assert_int_eq(dlc_next(loader, -1, &batch), -ESHUTDOWN);
        ck_assert_ptr_nonnull(strstr(dlc_error(loader), "detached"));
        ck_assert_int_eq(dlc_set_epoch(loader, 0), -ESHUTDOWN);
        ck_assert_int_eq(dlc_seek(loader, 0, 0), -ESHUTDOWN);
        ck_assert_int_eq(dlc_get_cursor(loader, &epoch, &position), -ESHUTDOWN);
        ck_assert_int_eq(dlc_get_stats(loader, &stats, sizeof(stats)), -ESHUTDOWN);
        ck_assert_int_eq(dlc_n_classes(loader), -ESHUTDOWN);
        ck_assert_int_eq(dlc_fd(loader), -ESHUTDOWN);
        check_batch(loader, first, 0, 0);
        ck_assert_int_eq(dlc_release(loader, first), 0);
        ck_assert_int_eq(dlc_release(loader, first), -EINVAL);
        check_batch(loader, second, 0, 1);
        if (_i) /* the last one goes with its memory, or is held to the end */
                ck_assert_int_eq(dlc_release(loader, second), 0);
        dlc_close(loader);
        dlc_detach(NULL);
        stand_in_stop(stand_in);
}
END_TEST

static void *release_all(void *userdata) {
        struct {
                struct dlc_loader *loader;
                const struct dlc_batch *batch;
        } *what = userdata;

        return (void *)(intptr_t)dlc_release(what->loader, what->batch);
}

START_TEST(threads_may_release_while_the_loader_is_detached) {
        struct stand_in_manners manners = { .n_samples = 40, .n_slots = 4 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);

        for (int round = 0; round < 15; round++) {
                struct dlc_loader *loader = open_loader(&options);
                struct {
                        struct dlc_loader *loader;
                        const struct dlc_batch *batch;
                } what[4];
                pthread_t threads[4];

                for (int i = 0; i < 4; i++) {
                        what[i].loader = loader;
                        what[i].batch = take(loader);
                }
                for (int i = 0; i < 4; i++)
                        ck_assert_int_eq(pthread_create(&threads[i], NULL, release_all, &what[i]), 0);
                dlc_detach(loader);
                for (int i = 0; i < 4; i++) {
                        void *r;

                        pthread_join(threads[i], &r);
                        ck_assert_ptr_null(r);
                }
                dlc_close(loader);
        }
        stand_in_stop(stand_in);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "statistics", statistics_count_what_was_handed_out_and_waited_for },
                { "statistics", statistics_of_other_versions_are_understood },
                { "verdicts", a_verdict_is_about_the_loaders_own_job_since_the_last_one },
                { "verdicts", a_daemon_that_is_away_is_not_waited_for_by_a_verdict, 2 },
                { "verdicts", verdicts_of_other_versions_and_wrong_calls_are_understood },
                { "classes", the_names_of_the_classes_come_page_by_page_and_stay, 7 },
                { "classes", a_dataset_may_have_no_classes },
                { "classes", class_names_that_do_not_add_up_are_an_error_and_batches_go_on, 3 },
                { "classes", classes_that_nobody_can_be_asked_for_are_an_error_and_ready_batches_still_come },
                { "detaching", batches_outlive_detaching_until_they_are_released, 2 },
                { "detaching", threads_may_release_while_the_loader_is_detached },
        };

        return suite_run("client_info", rows, sizeof(rows) / sizeof(rows[0]));
}
