/* A daemon that goes away and comes back: nothing is lost, nothing comes twice, and no wait has no end. */

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/support/client.h"
#include "tests/support/suite.h"

static struct dlc_options waiting_options(const struct stand_in *stand_in, int batch_size) {
        struct dlc_options options = options_for(stand_in, batch_size);

        options.on_restart = NULL; /* the default is to wait */
        return options;
}

static void restart(struct stand_in *stand_in) {
        stand_in_kill(stand_in);
        stand_in_revive(stand_in);
}

struct later {
        struct stand_in *stand_in;
        unsigned kill_us, revive_us; /* then, and that much later */
        pthread_t thread;
};

static void *restart_later(void *userdata) {
        struct later *later = userdata;

        usleep(later->kill_us);
        stand_in_kill(later->stand_in);
        usleep(later->revive_us);
        stand_in_revive(later->stand_in);
        return NULL;
}

static void later_begin(struct later *later) {
        ck_assert_int_eq(pthread_create(&later->thread, NULL, restart_later, later), 0);
}

static void check_fails(struct dlc_loader *loader, int error, const char *part) {
        const struct dlc_batch *batch = NULL;

        for (int i = 0; i < 2; i++) { /* it is final */
                int r = dlc_next(loader, PATIENCE_MS, &batch);

                ck_assert_msg(r == error, "%d (%s), not %d", r, dlc_error(loader), error);
                ck_assert_msg(strstr(dlc_error(loader), part) != NULL, "\"%s\" is not in \"%s\"", part,
                              dlc_error(loader));
        }
        ck_assert_uint_eq(dlc_get_info(loader)->is_waiting, 0);
        ck_assert_int_eq(dlc_set_epoch(loader, 9), error);
}

/* ---- going on ------------------------------------------------------------------------------------------------------
 */

START_TEST(the_next_daemon_goes_on_behind_the_last_batch) {
        struct stand_in_manners manners = { .n_samples = 100, .n_slots = 4 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = waiting_options(stand_in, 3);
        struct dlc_loader *loader;
        const struct dlc_batch *batch;
        struct dlc_stats stats;

        options.world_size = 2;
        options.rank = 1;
        options.first_epoch = 4;
        options.first_position = 7;
        options.n_epochs = 10;
        loader = open_loader(&options);
        check_steps_from(loader, 4, 7, 0, 2);
        usleep(50000);
        restart(stand_in);
        check_steps_from(loader, 4, 7, 2, 6); /* which lay ready */
        ck_assert_uint_eq(dlc_get_info(loader)->n_restarts, 0);
        batch = take(loader);
        check_batch_from(loader, batch, 4, 7, 6);
        ck_assert_uint_eq(batch->sequence, 6);
        ck_assert_uint_eq(manners.first_epoch, 4);
        ck_assert_uint_eq(manners.first_position, 7);
        ck_assert_uint_eq(manners.first_step, 6);
        ck_assert_uint_eq(manners.n_epochs, 10);
        ck_assert_uint_eq(dlc_get_info(loader)->n_restarts, 1);
        ck_assert_uint_eq(dlc_get_info(loader)->is_waiting, 0);
        ck_assert_int_eq(dlc_release(loader, batch), 0);
        check_steps_from(loader, 4, 7, 7, 16); /* ceil(93 / 2) = 47 samples */
        check_end(loader);
        restart(stand_in);
        check_epoch(loader, 5);
        ck_assert_uint_eq(manners.n_epochs, 9);
        ck_assert_uint_eq(manners.first_position, 0);
        ck_assert_int_eq(dlc_get_stats(loader, &stats, sizeof(stats)), 0);
        ck_assert_uint_eq(stats.n_restarts, 2);
        ck_assert_uint_eq(stats.n_batches, 16 + 17);
        ck_assert_uint_gt(stats.restart_ns, 0);
        ck_assert_uint_ge(stats.waited_ns, stats.restart_ns);
        ck_assert_str_eq(dlc_error(loader), "");
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(restarts_at_random_moments_lose_nothing_and_repeat_nothing) {
        struct stand_in_manners manners = { .n_samples = 97, .n_slots = 3, .pause_us = (uint32_t)(_i % 3) * 100 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = waiting_options(stand_in, 2);
        struct dlc_loader *loader = open_loader(&options);
        unsigned seed = (unsigned)_i + 1;

        for (uint64_t epoch = 0; epoch < 8; epoch++) {
                struct later later = { .stand_in = stand_in,
                                       .kill_us = (unsigned)rand_r(&seed) % 4000,
                                       .revive_us = (unsigned)rand_r(&seed) % 30000 };

                later_begin(&later);
                check_epoch(loader, epoch);
                pthread_join(later.thread, NULL);
        }
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(held_batches_stay_until_they_are_released) {
        struct stand_in_manners manners = { .n_samples = 100, .n_slots = 2 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = waiting_options(stand_in, 2);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *held[6];
        struct dlc_stats stats;
        uint64_t epoch, position;

        for (int i = 0; i < 6; i += 2) { /* all slots of three daemons */
                held[i] = take(loader);
                held[i + 1] = take(loader);
                if (i < 4)
                        restart(stand_in);
        }
        for (uint64_t i = 0; i < 6; i++) {
                check_batch(loader, held[i], 0, i);
                ck_assert_uint_eq(held[i]->sequence, i);
        }
        ck_assert_int_eq(dlc_get_stats(loader, &stats, sizeof(stats)), 0);
        ck_assert_uint_eq(stats.n_held, 6);
        ck_assert_uint_eq(stats.n_restarts, 2);
        ck_assert_int_eq(dlc_next(loader, PATIENCE_MS, &held[0]), -ENOBUFS); /* the slots of the newest */
        ck_assert_int_eq(dlc_release(loader, held[3]), 0);
        ck_assert_int_eq(dlc_get_cursor(loader, &epoch, &position), 0);
        ck_assert_uint_eq(position, 0);
        ck_assert_int_eq(dlc_release(loader, held[0]), 0);
        ck_assert_int_eq(dlc_get_cursor(loader, &epoch, &position), 0);
        ck_assert_uint_eq(position, 2);
        check_batch(loader, held[1], 0, 1);
        check_batch(loader, held[2], 0, 2);
        ck_assert_int_eq(dlc_release(loader, held[1]), 0);
        ck_assert_int_eq(dlc_release(loader, held[1]), -EINVAL);
        ck_assert_int_eq(dlc_release(loader, held[4]), 0);
        ck_assert_int_eq(dlc_release(loader, held[2]), 0);
        ck_assert_int_eq(dlc_release(loader, held[2]), -EINVAL); /* whose memory is gone with it */
        check_batch(loader, held[5], 0, 5);
        check_steps(loader, 0, 6, 50);
        dlc_close(loader); /* with one held */
        stand_in_stop(stand_in);
}
END_TEST

struct releaser {
        struct dlc_loader *loader;
        const struct dlc_batch *_Atomic batch; /* NULL: wants one */
        _Atomic bool ends;
};

static void *release_as_they_come(void *userdata) {
        struct releaser *releaser = userdata;

        while (!releaser->ends) {
                const struct dlc_batch *batch = atomic_load(&releaser->batch);

                if (!batch)
                        continue;
                if (dlc_release(releaser->loader, batch) != 0)
                        return releaser;
                atomic_store(&releaser->batch, NULL);
        }
        return NULL;
}

START_TEST(another_thread_may_release_while_daemons_come_and_go) {
        struct stand_in_manners manners = { .n_samples = 400, .n_slots = 3 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = waiting_options(stand_in, 2);
        struct releaser releaser = { .loader = open_loader(&options) };
        unsigned seed = 7;
        pthread_t thread;
        void *trouble;

        ck_assert_int_eq(pthread_create(&thread, NULL, release_as_they_come, &releaser), 0);
        for (uint64_t step = 0; step < 200; step++) {
                const struct dlc_batch *batch = take(releaser.loader);

                check_batch(releaser.loader, batch, 0, step);
                while (atomic_load(&releaser.batch))
                        usleep(10);
                atomic_store(&releaser.batch, batch);
                if (rand_r(&seed) % 16 == 0)
                        restart(stand_in);
        }
        while (atomic_load(&releaser.batch))
                usleep(10);
        releaser.ends = true;
        pthread_join(thread, &trouble);
        ck_assert_ptr_null(trouble);
        ck_assert_uint_gt(dlc_get_info(releaser.loader)->n_restarts, 3);
        dlc_close(releaser.loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(a_seek_while_the_daemon_is_away_moves_the_cursor) {
        struct stand_in_manners manners = { .n_samples = 60, .n_slots = 4 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = waiting_options(stand_in, 3);
        struct dlc_loader *loader = open_loader(&options);
        uint64_t epoch, position;

        check_steps(loader, 0, 0, 2);
        usleep(30000); /* the ring is full: of batches that are not wanted any more */
        stand_in_kill(stand_in);
        ck_assert_int_eq(dlc_set_epoch(loader, 5), 0); /* notices it */
        ck_assert_uint_eq(dlc_get_info(loader)->is_waiting, 1);
        ck_assert_str_eq(dlc_error(loader), "");
        ck_assert_int_eq(dlc_seek(loader, 7, 30), 0);
        ck_assert_int_eq(dlc_get_cursor(loader, &epoch, &position), 0);
        ck_assert_uint_eq(epoch, 7);
        ck_assert_uint_eq(position, 30);
        stand_in_revive(stand_in);
        check_steps_from(loader, 7, 30, 0, 10);
        check_end(loader);
        ck_assert_uint_eq(manners.first_epoch, 7);
        ck_assert_uint_eq(manners.first_position, 30);
        ck_assert_uint_eq(manners.first_step, 0);
        check_epoch(loader, 8);
        ck_assert_uint_eq(manners.n_seeks, 0);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

static void *revive_later(void *userdata) {
        usleep(100000);
        stand_in_revive(userdata);
        return NULL;
}

START_TEST(classes_that_are_asked_for_while_the_daemon_is_away_wait_for_it_and_lose_no_batch) {
        struct stand_in_manners manners = { .n_samples = 60, .n_slots = 4 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = waiting_options(stand_in, 3);
        struct dlc_loader *loader = open_loader(&options);
        pthread_t thread;

        check_steps(loader, 0, 0, 2);
        usleep(30000); /* the ring is full: what is in it is made again */
        stand_in_kill(stand_in);
        ck_assert_int_eq(pthread_create(&thread, NULL, revive_later, stand_in), 0);
        ck_assert_int_eq(dlc_n_classes(loader), 0); /* notices it; the stand-in has none */
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
        ck_assert_uint_eq(dlc_get_info(loader)->n_restarts, 1);
        ck_assert_uint_eq(manners.first_step, 2);
        check_steps(loader, 0, 2, 20);
        check_end(loader);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(past_the_prepared_epochs_a_restart_asks_for_one_more) {
        struct stand_in_manners manners = { .n_samples = 10, .n_slots = 2 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = waiting_options(stand_in, 2);
        struct dlc_loader *loader;

        options.n_epochs = 1;
        loader = open_loader(&options);
        check_epoch(loader, 0);
        restart(stand_in);
        check_epoch(loader, 1); /* which the daemon has to be asked for, and is gone */
        ck_assert_uint_eq(manners.first_epoch, 1);
        ck_assert_uint_eq(manners.n_epochs, 1);
        ck_assert_uint_eq(manners.n_seeks, 0);
        check_epoch(loader, 2);
        ck_assert_uint_eq(manners.n_seeks, 1);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

/* ---- waiting -------------------------------------------------------------------------------------------------------
 */

START_TEST(a_wait_for_the_daemon_keeps_to_its_time_and_goes_on_later) {
        struct stand_in_manners manners = { .n_samples = 60, .n_slots = 2 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = waiting_options(stand_in, 3);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *batch = NULL;
        uint64_t began;

        check_steps(loader, 0, 0, 1);
        usleep(30000);
        stand_in_kill(stand_in);
        check_steps(loader, 0, 1, 3);
        began = now_ms();
        for (int i = 0; i < 3; i++) {
                ck_assert_int_eq(dlc_next(loader, 0, &batch), -EAGAIN);
                ck_assert_int_eq(dlc_next(loader, 60, &batch), -ETIMEDOUT);
                ck_assert_ptr_nonnull(strstr(dlc_error(loader), "no batch within 60 ms: the daemon at"));
                ck_assert_uint_eq(dlc_get_info(loader)->is_waiting, 1);
        }
        ck_assert_uint_ge(now_ms() - began, 178);
        ck_assert_uint_lt(now_ms() - began, 5000);
        ck_assert_ptr_null(batch);
        stand_in_revive(stand_in);
        check_steps(loader, 0, 3, 20);
        check_end(loader);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(a_daemon_that_does_not_come_back_is_waited_for_no_longer_than_said) {
        struct stand_in_manners manners = { .n_samples = 60, .n_slots = 2 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = waiting_options(stand_in, 3);
        struct dlc_loader *loader;
        uint64_t began;

        options.restart_timeout_ms = 300;
        loader = open_loader(&options);
        check_steps(loader, 0, 0, 1);
        usleep(30000);
        stand_in_kill(stand_in);
        check_steps(loader, 0, 1, 3);
        began = now_ms();
        check_fails(loader, -ECONNRESET, "did not come back within restart_timeout_ms=300 (waited 0.");
        ck_assert_ptr_nonnull(strstr(dlc_error(loader), stand_in_path(stand_in)));
        ck_assert_uint_ge(now_ms() - began, 299);
        ck_assert_uint_lt(now_ms() - began, 5000);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

/* The loss was noticed by a seek: the time counts from where it is waited for. */
START_TEST(a_daemon_that_is_back_is_found_however_late) {
        struct stand_in_manners manners = { .n_samples = 60 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = waiting_options(stand_in, 3);
        struct dlc_loader *loader;

        options.restart_timeout_ms = 2000;
        loader = open_loader(&options);
        stand_in_kill(stand_in);
        ck_assert_int_eq(dlc_set_epoch(loader, 3), 0);
        usleep(2100000);
        stand_in_revive(stand_in);
        check_epoch(loader, 3);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(a_slow_answer_outlives_impatient_calls) {
        struct stand_in_manners manners = { .n_samples = 60, .n_slots = 2 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = waiting_options(stand_in, 3);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *batch;
        int n_calls = 0, r;

        check_steps(loader, 0, 0, 1);
        usleep(30000);
        stand_in_kill(stand_in);
        manners.answer_after_ms = 400;
        stand_in_revive(stand_in);
        check_steps(loader, 0, 1, 3);
        while ((r = dlc_next(loader, n_calls % 2 ? 0 : 20, &batch)) != 0) {
                ck_assert(r == (n_calls % 2 ? -EAGAIN : -ETIMEDOUT));
                n_calls++;
        }
        check_batch(loader, batch, 0, 3);
        ck_assert_int_gt(n_calls, 10);
        ck_assert_uint_eq(manners.n_attached, 2); /* asked once */
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(a_daemon_that_dies_while_it_is_asked_is_asked_again) {
        struct stand_in_manners manners = { .n_samples = 60, .n_slots = 2 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = waiting_options(stand_in, 3);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *batch;

        usleep(30000);
        stand_in_kill(stand_in);
        manners.silent = true;
        stand_in_revive(stand_in);
        check_steps(loader, 0, 0, 2);
        ck_assert_int_eq(dlc_next(loader, 100, &batch), -ETIMEDOUT);
        stand_in_kill(stand_in);
        manners.silent = false;
        stand_in_revive(stand_in);
        check_steps(loader, 0, 2, 20);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

static void on_signal(int number) {
        (void)number;
}

START_TEST(a_signal_ends_a_wait_for_the_daemon) {
        struct stand_in_manners manners = { .n_samples = 60, .n_slots = 2 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = waiting_options(stand_in, 3);
        struct dlc_loader *loader = open_loader(&options);
        struct sigaction action = { .sa_handler = on_signal }, before;
        struct itimerval timer = { .it_value.tv_usec = 20000, .it_interval.tv_usec = 20000 }, off = { 0 };
        const struct dlc_batch *batch;

        usleep(30000);
        if (_i) { /* while it is asked; else while there is nobody */
                manners.silent = true;
                restart(stand_in);
        } else {
                stand_in_kill(stand_in);
        }
        check_steps(loader, 0, 0, 2);
        sigaction(SIGALRM, &action, &before);
        setitimer(ITIMER_REAL, &timer, NULL);
        ck_assert_int_eq(dlc_next(loader, PATIENCE_MS, &batch), -EINTR);
        setitimer(ITIMER_REAL, &off, NULL);
        sigaction(SIGALRM, &before, NULL);
        if (_i)
                stand_in_kill(stand_in);
        manners.silent = false;
        stand_in_revive(stand_in);
        check_steps(loader, 0, 2, 20);
        check_end(loader);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

/* ---- an event loop -------------------------------------------------------------------------------------------------
 */

/* By poll() on the number, or by an epoll in which it was registered once. */
static int wait_readable(int fd, int epoll) {
        struct pollfd item = { .fd = fd, .events = POLLIN };
        struct epoll_event event;

        return epoll >= 0 ? epoll_wait(epoll, &event, 1, PATIENCE_MS) : poll(&item, 1, PATIENCE_MS);
}

START_TEST(an_event_loop_sleeps_through_a_restart_and_wakes_behind_it) {
        struct stand_in_manners manners = { .n_samples = 60, .n_slots = 2, .pause_us = 2000 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = waiting_options(stand_in, 2);
        struct dlc_loader *loader = open_loader(&options);
        struct later later = { .stand_in = stand_in, .kill_us = 20000, .revive_us = 400000 };
        struct epoll_event event = { .events = EPOLLIN };
        int fd = dlc_fd(loader), epoll = _i ? epoll_create1(EPOLL_CLOEXEC) : -1, n_away = 0;
        uint64_t step = 0;

        if (_i)
                ck_assert_int_eq(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
        later_begin(&later);
        while (step < dlc_epoch_batches(loader)) {
                const struct dlc_batch *batch;
                int r = dlc_next(loader, 0, &batch);

                if (r == 0) {
                        check_batch(loader, batch, 0, step++);
                        ck_assert_int_eq(dlc_release(loader, batch), 0);
                        continue;
                }
                ck_assert_int_eq(r, -EAGAIN);
                ck_assert_int_eq(dlc_fd(loader), fd);
                n_away += dlc_get_info(loader)->is_waiting ? 1 : 0;
                ck_assert_int_eq(wait_readable(fd, epoll), 1);
        }
        pthread_join(later.thread, NULL);
        ck_assert_uint_eq(dlc_get_info(loader)->n_restarts, 1);
        ck_assert_int_ge(n_away, 2);
        ck_assert_int_le(n_away, 40); /* 400 ms in ticks of 50, and what the attempts themselves wake */
        if (_i)
                close(epoll);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(a_restart_leaves_no_descriptor_behind) {
        struct stand_in_manners manners = { .n_samples = 400, .n_slots = 2 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = waiting_options(stand_in, 2);
        struct dlc_loader *loader = open_loader(&options);
        int before = -1;

        for (uint64_t i = 0; i < 12; i++) {
                int lowest;

                check_steps(loader, 0, 5 * i, 5 * i + 5);
                restart(stand_in);
                check_steps(loader, 0, 5 * i + 5, 5 * i + 5);
                lowest = dup(0);
                close(lowest);
                if (i == 3)
                        before = lowest;
                if (i > 3)
                        ck_assert_int_le(lowest, before + 2); /* the daemon's own come and go */
        }
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

/* ---- what ends the waiting -----------------------------------------------------------------------------------------
 */

START_TEST(what_passes_is_waited_for) {
        static const uint32_t CODES[] = { EADDRINUSE, ESHUTDOWN, ENOMEM };
        struct stand_in_manners manners = { .n_samples = 60, .n_slots = 2 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = waiting_options(stand_in, 3);
        struct dlc_loader *loader = open_loader(&options);

        check_steps(loader, 0, 0, 1);
        stand_in_kill(stand_in);
        if (_i < 3) {
                manners.refuse_code = CODES[_i];
                manners.n_refusals = 3;
        } else {
                manners.n_retries = 3; /* its index is being made */
        }
        stand_in_revive(stand_in);
        check_steps(loader, 0, 1, 20);
        check_end(loader);
        ck_assert_str_eq(dlc_error(loader), "");
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(a_refusal_of_the_terms_is_final) {
        static const uint32_t CODES[] = { EINVAL, ENOENT, EACCES, EBUSY };
        struct stand_in_manners manners = { .n_samples = 60, .n_slots = 2 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = waiting_options(stand_in, 3);
        struct dlc_loader *loader = open_loader(&options);

        check_steps(loader, 0, 0, 1);
        usleep(30000);
        stand_in_kill(stand_in);
        manners.refuse_code = CODES[_i];
        stand_in_revive(stand_in);
        check_steps(loader, 0, 1, 3);
        check_fails(loader, -(int)CODES[_i], "memory_limit: 9 MiB are needed");
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(another_dataset_than_before_is_final) {
        struct stand_in_manners manners = { .n_samples = 60, .n_slots = 2 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = waiting_options(stand_in, 3);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *held = take(loader);

        usleep(30000);
        stand_in_kill(stand_in);
        if (_i)
                manners.n_samples = 61;
        else
                manners.digest = "decaf";
        stand_in_revive(stand_in);
        check_steps(loader, 0, 1, 2);
        check_fails(loader, -ESTALE, "the dataset changed while the daemon was away: was c0ffee with 60 samples, is ");
        ck_assert_ptr_nonnull(strstr(dlc_error(loader), _i ? "with 61" : "is decaf"));
        check_batch(loader, held, 0, 0);
        ck_assert_int_eq(dlc_release(loader, held), 0);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

/* Which is how a daemon ends that was told to; any other reason is about us. */
START_TEST(a_farewell_is_a_restart_only_if_it_says_so) {
        struct stand_in_manners manners = { .n_samples = 100, .close_at = 3, .farewell = "the daemon says goodbye" };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = waiting_options(stand_in, 2);
        struct dlc_loader *loader;

        manners.farewell_code = _i ? ESHUTDOWN : EPROTO;
        loader = open_loader(&options);
        check_steps(loader, 0, 0, 3);
        if (_i) /* it closes each connection before the fourth batch, and each one goes on */
                check_steps(loader, 0, 3, 50);
        else
                check_fails(loader, -ECONNRESET, "says goodbye");
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(a_daemon_that_comes_back_leaves_to_the_caller_what_was_left_before) {
        uint8_t table[512] = { 1, 2, 3 };
        Dlp__LeftForm form = DLP__LEFT_FORM__INIT, *forms[] = { &form };
        struct stand_in_manners manners = { .n_samples = 100, .n_slots = 2 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = waiting_options(stand_in, 4);
        const struct dlc_batch *batch;
        struct dlc_loader *loader;

        form.tensor = (char *)(uintptr_t) "image";
        form.dtype = DLC_FLOAT16;
        form.n_channels = 1;
        form.table.data = table;
        form.table.len = sizeof(table);
        options.leave_forms = true;
        loader = open_loader(&options); /* whose daemon knows nothing of it */
        check_steps(loader, 0, 0, 2);
        stand_in_kill(stand_in);
        manners.forms = forms;
        manners.n_forms = 1;
        stand_in_revive(stand_in);
        check_steps(loader, 0, 2, 9);
        ck_assert(!manners.leave_forms); /* nor does the next one hear of it */
        dlc_close(loader);

        loader = open_loader(&options);
        check_steps(loader, 0, 0, 2);
        restart(stand_in);
        check_steps(loader, 0, 2, 9);
        ck_assert(manners.leave_forms);
        stand_in_kill(stand_in);
        ck_assert_uint_eq(manners.leave_operations, 0);
        table[100] = 9;
        stand_in_revive(stand_in);
        while (dlc_next(loader, PATIENCE_MS, &batch) == 0) /* what lay ready */
                dlc_release(loader, batch);
        check_fails(loader, -EPROTO, "leaves other steps");
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(a_daemon_that_comes_back_hears_which_device_reads_the_batches) {
        struct stand_in_manners manners = { .n_samples = 60 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = waiting_options(stand_in, 4);
        char id[] = "0000:1B:00.0";
        struct dlc_loader *loader;

        loader = open_loader(&options);
        ck_assert_str_eq(manners.near_device, "");
        dlc_close(loader);
        options.near_device = "";
        loader = open_loader(&options);
        ck_assert_str_eq(manners.near_device, "");
        dlc_close(loader);

        options.near_device = id;
        loader = open_loader(&options);
        ck_assert_str_eq(manners.near_device, "0000:1B:00.0");
        memset(id, 'x', sizeof(id) - 1); /* the loader has a copy */
        check_steps(loader, 0, 0, 2);
        stand_in_kill(stand_in);
        manners.near_device[0] = '\0';
        stand_in_revive(stand_in);
        check_steps(loader, 0, 2, 9);
        ck_assert_str_eq(manners.near_device, "0000:1B:00.0");
        dlc_close(loader);

        options.near_device = NULL;
        options.size = offsetof(struct dlc_options, near_device); /* an older program, which does not know it */
        memset(&options.near_device, 0xff, sizeof(options.near_device));
        loader = open_loader(&options);
        ck_assert_str_eq(manners.near_device, "");
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(memory_that_is_held_stays_over_restarts) {
        struct stand_in_manners manners = { .n_samples = 100, .n_slots = 2 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = waiting_options(stand_in, 3);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *held[2], *batch;
        void *first, *again, *second;
        uint64_t n_first, n_second;
        uint8_t seen;

        ck_assert_int_eq(dlc_hold_memory(loader, &first, &n_first), 0);
        ck_assert_int_eq(dlc_hold_memory(loader, &again, &n_first), 0);
        ck_assert_ptr_eq(first, again);
        ck_assert_ptr_eq(first, dlc_get_info(loader)->memory_base);
        ck_assert_uint_eq(n_first, dlc_get_info(loader)->memory_bytes);
        held[0] = take(loader); /* who holds memory holds no slot */
        held[1] = take(loader);
        ck_assert_int_eq(dlc_next(loader, 0, &batch), -ENOBUFS);
        seen = *(const uint8_t *)held[0]->tensors[0].data;
        ck_assert((uint8_t *)held[0]->tensors[0].data - (uint8_t *)first < (ptrdiff_t)n_first);
        dlc_release(loader, held[0]);
        dlc_release(loader, held[1]);
        restart(stand_in);
        check_steps(loader, 0, 2, 12);
        ck_assert_uint_eq(dlc_get_info(loader)->n_restarts, 1);
        ck_assert_int_eq(dlc_hold_memory(loader, &second, &n_second), 0);
        ck_assert_ptr_ne(first, second);
        for (uint64_t i = 0; i < n_first; i += 4096) /* is still mapped */
                seen ^= ((const uint8_t *)first)[i];
        (void)seen;
        ck_assert_int_eq(dlc_let_memory(loader, first), 0);
        ck_assert_int_eq(dlc_let_memory(loader, again), 0);
        ck_assert_int_eq(dlc_let_memory(loader, first), -EINVAL);
        ck_assert_ptr_nonnull(strstr(dlc_last_error(), "not held"));
        ck_assert_int_eq(msync(first, 4096, MS_ASYNC), -1); /* is unmapped */
        dlc_detach(loader);
        ck_assert_int_eq(msync(second, 4096, MS_ASYNC), 0);
        ck_assert_int_eq(dlc_hold_memory(loader, &again, &n_first), -ESHUTDOWN);
        ck_assert_int_eq(dlc_let_memory(loader, second), 0);
        ck_assert_int_eq(msync(second, 4096, MS_ASYNC), -1);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(detaching_and_closing_work_while_the_daemon_is_away) {
        struct stand_in_manners manners = { .n_samples = 60, .n_slots = 2 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = waiting_options(stand_in, 3);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *held = take(loader), *batch;

        usleep(30000);
        stand_in_kill(stand_in);
        check_steps(loader, 0, 1, 2);
        ck_assert_int_eq(dlc_next(loader, 20, &batch), -ETIMEDOUT);
        if (_i)
                dlc_detach(loader);
        check_batch(loader, held, 0, 0);
        ck_assert_int_eq(dlc_release(loader, held), 0);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "going on", the_next_daemon_goes_on_behind_the_last_batch },
                { "going on", restarts_at_random_moments_lose_nothing_and_repeat_nothing, 12 },
                { "going on", held_batches_stay_until_they_are_released },
                { "going on", another_thread_may_release_while_daemons_come_and_go },
                { "going on", a_seek_while_the_daemon_is_away_moves_the_cursor },
                { "going on", classes_that_are_asked_for_while_the_daemon_is_away_wait_for_it_and_lose_no_batch },
                { "going on", past_the_prepared_epochs_a_restart_asks_for_one_more },
                { "waiting", a_wait_for_the_daemon_keeps_to_its_time_and_goes_on_later },
                { "waiting", a_daemon_that_does_not_come_back_is_waited_for_no_longer_than_said },
                { "waiting", a_daemon_that_is_back_is_found_however_late },
                { "waiting", a_slow_answer_outlives_impatient_calls },
                { "waiting", a_daemon_that_dies_while_it_is_asked_is_asked_again },
                { "waiting", a_signal_ends_a_wait_for_the_daemon, 2 },
                { "event loop", an_event_loop_sleeps_through_a_restart_and_wakes_behind_it, 2 },
                { "event loop", a_restart_leaves_no_descriptor_behind },
                { "ending", what_passes_is_waited_for, 4 },
                { "ending", a_refusal_of_the_terms_is_final, 4 },
                { "ending", another_dataset_than_before_is_final, 2 },
                { "ending", a_farewell_is_a_restart_only_if_it_says_so, 2 },
                { "going on", a_daemon_that_comes_back_hears_which_device_reads_the_batches, 0 },
                { "going on", a_daemon_that_comes_back_leaves_to_the_caller_what_was_left_before, 0 },
                { "ending", memory_that_is_held_stays_over_restarts, 0 },
                { "ending", detaching_and_closing_work_while_the_daemon_is_away, 2 },
        };

        return suite_run("client_restart", rows, sizeof(rows) / sizeof(rows[0]));
}
