/* Work in the background: done once, told once, on the thread that reaps. */

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/base/work/background.h"

#define N_PIECES 200u

struct piece {
        struct background *background;
        _Atomic uint32_t n_worked;
        uint32_t n_done;
        pthread_t worker, reaper;
        _Atomic bool may_end;
        bool waits, begins_another;
};

static void work(void *userdata) {
        struct piece *piece = userdata;

        piece->worker = pthread_self();
        while (piece->waits && !atomic_load(&piece->may_end))
                usleep(1000);
        atomic_fetch_add(&piece->n_worked, 1);
}

static void done(void *userdata) {
        struct piece *piece = userdata;

        ck_assert_uint_eq(atomic_load(&piece->n_worked), piece->n_done + 1);
        piece->n_done++;
        piece->reaper = pthread_self();
        if (piece->begins_another) { /* as an attach that is done begins to touch memory */
                piece->begins_another = false;
                ck_assert_int_eq(background_run(piece->background, work, done, piece), 0);
        }
}

static bool is_readable(const struct background *background, int timeout_ms) {
        struct pollfd poll_fd = { .fd = background_fd(background), .events = POLLIN };

        return poll(&poll_fd, 1, timeout_ms) > 0;
}

START_TEST(each_piece_is_done_once_and_told_on_the_reaping_thread) {
        static struct piece pieces[N_PIECES];
        struct background *background;
        uint32_t n_done = 0;

        ck_assert_int_eq(background_new(&background), 0);
        background_reap(background); /* arms it, with nothing to reap */
        ck_assert(!is_readable(background, 0));
        for (uint32_t i = 0; i < N_PIECES; i++) {
                pieces[i] = (struct piece){ .background = background };
                ck_assert_int_eq(background_run(background, work, done, &pieces[i]), 0);
        }
        while (n_done < N_PIECES) {
                ck_assert(is_readable(background, 10000));
                background_reap(background);
                n_done = 0;
                for (uint32_t i = 0; i < N_PIECES; i++)
                        n_done += pieces[i].n_done;
        }
        for (uint32_t i = 0; i < N_PIECES; i++) {
                ck_assert_uint_eq(pieces[i].n_done, 1);
                ck_assert(pthread_equal(pieces[i].reaper, pthread_self()));
                ck_assert(!pthread_equal(pieces[i].worker, pthread_self()));
        }
        ck_assert(!is_readable(background, 0));
        background_stop(background);
        background_free(background);
}
END_TEST

START_TEST(nothing_is_told_before_it_is_done) {
        struct background *background;
        struct piece piece = { .waits = true };

        ck_assert_int_eq(background_new(&background), 0);
        ck_assert_int_eq(background_run(background, work, done, &piece), 0);
        background_reap(background);
        ck_assert(!is_readable(background, 30));
        background_reap(background);
        ck_assert_uint_eq(piece.n_done, 0);
        atomic_store(&piece.may_end, true);
        ck_assert(is_readable(background, 10000));
        background_reap(background);
        ck_assert_uint_eq(piece.n_done, 1);
        background_stop(background);
        background_free(background);
}
END_TEST

static void *let_end(void *userdata) {
        struct piece *pieces = userdata;

        for (uint32_t i = 0; i < 3; i++) {
                usleep(20000);
                atomic_store(&pieces[i].may_end, true);
        }
        return NULL;
}

START_TEST(stopping_waits_for_all_pieces_and_for_those_that_they_begin) {
        struct piece pieces[3] = { { .waits = true }, { .waits = true, .begins_another = true }, { .waits = true } };
        struct background *background;
        pthread_t thread;

        ck_assert_int_eq(background_new(&background), 0);
        for (uint32_t i = 0; i < 3; i++) {
                pieces[i].background = background;
                ck_assert_int_eq(background_run(background, work, done, &pieces[i]), 0);
        }
        ck_assert_int_eq(pthread_create(&thread, NULL, let_end, pieces), 0);
        background_stop(background);
        ck_assert_uint_eq(pieces[0].n_done, 1);
        ck_assert_uint_eq(pieces[1].n_done, 2);
        ck_assert_uint_eq(pieces[2].n_done, 1);
        pthread_join(thread, NULL);
        background_free(background);
        background_free(NULL);
}
END_TEST

START_TEST(stopping_gives_up_on_a_piece_that_does_not_end_and_can_be_asked_again) {
        struct background *background;
        struct piece piece = { .waits = true }, other = { 0 };

        ck_assert_int_eq(background_new(&background), 0);
        ck_assert_int_eq(background_run(background, work, done, &piece), 0);
        ck_assert_int_eq(background_run(background, work, done, &other), 0);
        ck_assert_int_eq(background_stop_within(background, 300), -ETIMEDOUT);
        ck_assert_uint_eq(piece.n_done, 0);
        atomic_store(&piece.may_end, true);
        ck_assert_int_eq(background_stop(background), 0);
        ck_assert_uint_eq(piece.n_done, 1);
        ck_assert_uint_eq(other.n_done, 1);
        background_free(background);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("background");
        TCase *background = tcase_create("background");
        SRunner *runner = srunner_create(suite);
        int n_failed;

        tcase_add_test(background, each_piece_is_done_once_and_told_on_the_reaping_thread);
        tcase_add_test(background, nothing_is_told_before_it_is_done);
        tcase_add_test(background, stopping_waits_for_all_pieces_and_for_those_that_they_begin);
        tcase_add_test(background, stopping_gives_up_on_a_piece_that_does_not_end_and_can_be_asked_again);
        tcase_set_timeout(background, 60);
        suite_add_tcase(suite, background);

        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed != 0;
}
