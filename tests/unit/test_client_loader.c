/* The client library against a stand-in for the daemon: what it hands out, in which order, and what it does when the
 * other side is slow, wrong or gone. */

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client/include/dlclient.h"
#include "proto/limits.h"
#include "tests/support/stand_in.h"

#define PATIENCE_MS 10000 /* for what must come: a hang becomes a failure */

static uint64_t now_ms(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* A rank of a job on the stand-in's dataset. */
static struct dlc_options options_for(const struct stand_in *stand_in, int batch_size) {
        struct dlc_options options = DLC_OPTIONS_INIT;

        options.dataset = "numbers";
        options.socket = stand_in_path(stand_in);
        options.batch_size = batch_size;
        options.job = "test";
        options.rank = 0;
        options.world_size = 1;
        options.on_restart = "raise";
        return options;
}

static struct dlc_loader *open_loader(const struct dlc_options *options) {
        struct dlc_loader *loader = NULL;
        int r = dlc_open(options, &loader);

        ck_assert_msg(r == 0, "dlc_open: %d %s", r, dlc_last_error());
        return loader;
}

/* Is the batch what rank, epoch and step say, to the last byte? */
static void check_batch(struct dlc_loader *loader, const struct dlc_batch *batch, uint64_t epoch, uint64_t step) {
        const struct dlc_info *info = dlc_get_info(loader);
        const struct dlc_tensor *image = &batch->tensors[0], *label = &batch->tensors[1];

        ck_assert_uint_eq(batch->epoch, epoch);
        ck_assert_uint_eq(batch->step, step);
        ck_assert_uint_eq(batch->n_tensors, 2);
        ck_assert_str_eq(image->name, "image");
        ck_assert_str_eq(label->name, "label");
        ck_assert_uint_eq(label->dtype, DLC_INT64);
        ck_assert_int_eq(image->shape[0], batch->n_samples);
        ck_assert_uint_eq((uintptr_t)image->data % 256, 0);

        for (uint32_t i = 0; i < batch->n_samples; i++) {
                int64_t index = stand_in_index(info->dataset_samples, info->world_size, info->rank,
                                               step * info->batch_size + i);
                const uint8_t *pixels = (const uint8_t *)image->data + (int64_t)i * image->strides[0];

                ck_assert_int_eq(batch->indices[i], index);
                ck_assert_int_eq(((const int64_t *)label->data)[i], stand_in_label(index, epoch));
                for (uint32_t k = 0; k < STAND_IN_PIXELS; k++)
                        ck_assert_uint_eq(pixels[k], stand_in_pixel(index, epoch, k));
        }
}

static const struct dlc_batch *take(struct dlc_loader *loader) {
        const struct dlc_batch *batch = NULL;
        int r = dlc_next(loader, PATIENCE_MS, &batch);

        ck_assert_msg(r == 0, "dlc_next: %d %s", r, dlc_error(loader));
        return batch;
}

static void check_steps(struct dlc_loader *loader, uint64_t epoch, uint64_t first, uint64_t end) {
        for (uint64_t step = first; step < end; step++) {
                const struct dlc_batch *batch = take(loader);

                check_batch(loader, batch, epoch, step);
                ck_assert_int_eq(dlc_release(loader, batch), 0);
        }
}

static void check_end(struct dlc_loader *loader) {
        const struct dlc_batch *batch = (const void *)&batch;

        ck_assert_int_eq(dlc_next(loader, PATIENCE_MS, &batch), DLC_END_OF_EPOCH);
        ck_assert_ptr_eq(batch, &batch); /* untouched */
}

static void check_epoch(struct dlc_loader *loader, uint64_t epoch) {
        check_steps(loader, epoch, 0, dlc_epoch_batches(loader));
        check_end(loader);
}

/* ---- what is handed out -------------------------------------------------------------------------------------- */

START_TEST(a_rank_gets_its_samples_in_order_and_to_the_byte) {
        struct stand_in_manners manners = { .n_samples = 103 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 8);
        struct dlc_loader *loader;

        options.world_size = 3;
        options.rank = 1;
        loader = open_loader(&options);
        ck_assert_uint_eq(dlc_dataset_samples(loader), 103);
        ck_assert_uint_eq(dlc_epoch_samples(loader), 35); /* ceil(103 / 3) */
        ck_assert_uint_eq(dlc_epoch_batches(loader), 5);
        ck_assert_str_eq(dlc_dataset_digest(loader), "c0ffee");
        ck_assert_str_eq(dlc_get_info(loader)->pipeline, "raw");
        ck_assert_str_eq(dlc_get_info(loader)->job, "test");
        ck_assert_uint_eq((uintptr_t)dlc_get_info(loader)->memory_base % DLP_SLOT_ALIGN, 0);
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
                ck_assert_int_eq(dlc_set_epoch(loader, epoch), 0);
                check_epoch(loader, epoch);
        }
        ck_assert_uint_eq(manners.n_seeks, 0); /* what comes next anyway costs nothing */
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(without_set_epoch_the_next_epoch_follows) {
        struct stand_in_manners manners = { .n_samples = 10 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader;

        options.first_epoch = 7;
        loader = open_loader(&options);
        check_epoch(loader, 7);
        check_epoch(loader, 8);
        check_epoch(loader, 9);
        ck_assert_uint_eq(manners.n_seeks, 0);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(set_epoch_goes_anywhere_and_old_batches_are_passed_over) {
        struct stand_in_manners manners = { .n_samples = 40 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader = open_loader(&options);

        ck_assert_int_eq(dlc_set_epoch(loader, 0), 0);
        ck_assert_uint_eq(manners.n_seeks, 0);
        check_steps(loader, 0, 0, 3);
        ck_assert_int_eq(dlc_set_epoch(loader, 5), 0); /* in the middle, forwards */
        check_steps(loader, 5, 0, 2);
        ck_assert_int_eq(dlc_set_epoch(loader, 5), 0); /* the same one again, from its beginning */
        check_epoch(loader, 5);
        ck_assert_int_eq(dlc_set_epoch(loader, 1), 0); /* backwards, after the end */
        ck_assert_int_eq(dlc_set_epoch(loader, 1), 0); /* nothing at all */
        ck_assert_uint_eq(manners.n_seeks, 3);
        check_epoch(loader, 1);
        check_epoch(loader, 2);
        ck_assert_int_eq(dlc_set_epoch(loader, 2), 0); /* the one whose end was told */
        check_epoch(loader, 2);
        ck_assert_uint_eq(manners.n_seeks, 4);
        ck_assert_int_eq(dlc_set_epoch(loader, 1ull << 32), -EINVAL);
        check_epoch(loader, 3);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(a_seek_leaves_held_batches_as_they_are) {
        struct stand_in_manners manners = { .n_samples = 40 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *first = take(loader), *second = take(loader);

        ck_assert_int_eq(dlc_set_epoch(loader, 9), 0);
        check_epoch(loader, 9);
        check_batch(loader, first, 0, 0);
        check_batch(loader, second, 0, 1);
        ck_assert_int_eq(dlc_release(loader, first), 0);
        ck_assert_int_eq(dlc_release(loader, second), 0);
        check_epoch(loader, 10);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(past_the_prepared_epochs_the_daemon_is_asked) {
        struct stand_in_manners manners = { .n_samples = 10 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader;

        options.n_epochs = 2;
        loader = open_loader(&options);
        check_epoch(loader, 0);
        check_epoch(loader, 1);
        ck_assert_uint_eq(manners.n_seeks, 0);
        check_epoch(loader, 2);
        ck_assert_uint_eq(manners.n_seeks, 1);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(a_rank_without_samples_gets_ends_only) {
        struct stand_in_manners manners = { .n_samples = 2 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader;

        options.world_size = 8;
        options.rank = 5;
        options.partition = "exact";
        loader = open_loader(&options);
        ck_assert_uint_eq(dlc_epoch_batches(loader), 0);
        for (int i = 0; i < 3; i++)
                check_end(loader);
        ck_assert_int_eq(dlc_set_epoch(loader, 77), 0);
        check_end(loader);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(a_last_batch_is_short_and_drop_last_leaves_it_out) {
        struct stand_in_manners manners = { .n_samples = 10 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *batch;

        check_steps(loader, 0, 0, 2);
        batch = take(loader);
        ck_assert_uint_eq(batch->n_samples, 2);
        ck_assert_int_eq(batch->tensors[0].shape[0], 2);
        check_batch(loader, batch, 0, 2);
        dlc_close(loader); /* with a batch held */

        options.drop_last = true;
        loader = open_loader(&options);
        ck_assert_uint_eq(dlc_epoch_batches(loader), 2);
        check_epoch(loader, 0);
        check_epoch(loader, 1);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(substitutes_are_told_with_their_reason) {
        struct stand_in_manners manners = { .n_samples = 21, .substitute_each = 5 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 7);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *batch = take(loader);

        ck_assert_uint_eq(batch->n_substituted, 2); /* 0 and 5 of 0..6 */
        ck_assert_ptr_nonnull(batch->substitutes);
        for (uint32_t i = 0; i < 7; i++) {
                ck_assert_int_eq(batch->indices[i], i);
                ck_assert_int_eq(batch->substitutes[i], i % 5 == 0 ? (int)i + 1 : -1);
                if (i % 5 != 0)
                        ck_assert_ptr_null(dlc_sample_error(loader, batch, i));
        }
        ck_assert_str_eq(dlc_sample_error(loader, batch, 0), "sample 0 is damaged");
        ck_assert_str_eq(dlc_sample_error(loader, batch, 5), "sample 5 is damaged");
        ck_assert_ptr_null(dlc_sample_error(loader, batch, 7));
        ck_assert_int_eq(dlc_release(loader, batch), 0);
        ck_assert_ptr_null(dlc_sample_error(loader, batch, 0));
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(ragged_samples_lie_where_their_places_say) {
        struct stand_in_manners manners = { .n_samples = 30, .ragged = true };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 30);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *batch = take(loader);
        const struct dlc_tensor *image = &batch->tensors[0];

        ck_assert_uint_eq(image->dtype, DLC_BYTES);
        ck_assert_int_eq(image->shape[1], -1);
        ck_assert_ptr_null(batch->tensors[1].places);
        for (uint32_t i = 0; i < 30; i++) {
                const uint8_t *bytes = (const uint8_t *)image->data + image->places[i].offset;

                ck_assert_uint_eq(image->places[i].n_bytes, i % (STAND_IN_PIXELS + 1));
                for (uint32_t k = 0; k < image->places[i].n_bytes; k++)
                        ck_assert_uint_eq(bytes[k], stand_in_pixel(i, 0, k));
        }
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

/* ---- holding and giving back --------------------------------------------------------------------------------- */

START_TEST(held_batches_stay_and_go_back_in_any_order) {
        enum {
                DEPTH = 5
        };
        struct stand_in_manners manners = { .n_samples = 400, .n_slots = DEPTH };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 2);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *held[DEPTH - 1];
        uint64_t steps[DEPTH - 1];
        unsigned seed = 1;

        ck_assert_uint_eq(dlc_get_info(loader)->n_slots, DEPTH);
        for (uint64_t i = 0; i < DEPTH - 1; i++) {
                held[i] = take(loader);
                steps[i] = i;
        }
        for (uint64_t step = DEPTH - 1; step < dlc_epoch_batches(loader); step++) {
                size_t victim = (size_t)rand_r(&seed) % (DEPTH - 1);

                for (size_t i = 0; i < DEPTH - 1; i++)
                        check_batch(loader, held[i], 0, steps[i]);
                ck_assert_int_eq(dlc_release(loader, held[victim]), 0);
                held[victim] = take(loader);
                steps[victim] = step;
        }
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(a_full_ring_is_said_and_not_waited_for) {
        struct stand_in_manners manners = { .n_samples = 100, .n_slots = 2 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 2);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *first = take(loader), *second = take(loader), *third;

        ck_assert_int_eq(dlc_next(loader, -1, &third), -ENOBUFS);
        ck_assert_ptr_nonnull(strstr(dlc_error(loader), "all 2 slots are held"));
        ck_assert_str_eq(dlc_last_error(), dlc_error(loader));
        ck_assert_int_eq(dlc_release(loader, second), 0);
        third = take(loader);
        check_batch(loader, third, 0, 2);
        check_batch(loader, first, 0, 0);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(what_was_not_handed_out_is_not_taken_back) {
        struct stand_in_manners manners = { .n_samples = 100 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 2);
        struct dlc_loader *loader = open_loader(&options), *other;
        const struct dlc_batch *batch = take(loader);
        struct dlc_batch copy = *batch;

        options.job = "other";
        other = open_loader(&options);
        ck_assert_int_eq(dlc_release(other, batch), -EINVAL);
        ck_assert_int_eq(dlc_release(loader, &copy), -EINVAL);
        ck_assert_int_eq(dlc_release(loader, (const struct dlc_batch *)((const char *)batch + 8)), -EINVAL);
        ck_assert_int_eq(dlc_release(loader, NULL), -EINVAL);
        ck_assert_int_eq(dlc_release(NULL, batch), -EINVAL);
        ck_assert_int_eq(dlc_release(loader, batch), 0);
        ck_assert_int_eq(dlc_release(loader, batch), -EINVAL);
        ck_assert_ptr_nonnull(strstr(dlc_last_error(), "released before"));
        ck_assert_str_eq(dlc_error(loader), ""); /* left to the thread that uses the loader */
        check_steps(loader, 0, 1, 50);
        dlc_close(other);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

struct releaser {
        struct dlc_loader *loader;
        const struct dlc_batch *batch;
};

static void *release_later(void *userdata) {
        struct releaser *releaser = userdata;

        usleep(30000);
        return (void *)(intptr_t)dlc_release(releaser->loader, releaser->batch);
}

START_TEST(another_thread_may_release_while_one_waits) {
        struct stand_in_manners manners = { .n_samples = 100, .n_slots = 3, .hold = false };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 2);
        struct dlc_loader *loader = open_loader(&options);

        for (uint64_t step = 0; step < 20; step += 2) {
                struct releaser releaser = { loader, take(loader) };
                const struct dlc_batch *second = take(loader);
                pthread_t thread;
                void *r;

                check_batch(loader, releaser.batch, 0, step);
                ck_assert_int_eq(pthread_create(&thread, NULL, release_later, &releaser), 0);
                check_batch(loader, second, 0, step + 1);
                ck_assert_int_eq(dlc_release(loader, second), 0);
                pthread_join(thread, &r);
                ck_assert_ptr_null(r);
        }
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

/* ---- waiting ------------------------------------------------------------------------------------------------- */

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

/* ---- when it goes wrong -------------------------------------------------------------------------------------- */

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

START_TEST(a_failed_job_stays_failed) {
        struct stand_in_manners manners = { .n_samples = 100, .fail_at = 3 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 2);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *batch;

        check_steps(loader, 0, 0, 3);
        for (int i = 0; i < 3; i++) {
                ck_assert_int_eq(dlc_next(loader, PATIENCE_MS, &batch), -EBADMSG);
                ck_assert_str_eq(dlc_error(loader), "photos: dog/7.jpg is truncated");
        }
        ck_assert_int_eq(dlc_set_epoch(loader, 1), -EBADMSG);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

static void spoil_sequence(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->sequence += 1;
}
static void spoil_step(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->step += 1;
}
static void spoil_epoch(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->epoch += 1;
}
static void spoil_n_samples(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->n_samples = control->batch_size + 1;
}
static void spoil_no_samples(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->n_samples = 0;
}
static void spoil_n_tensors(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->n_tensors = DLP_TENSORS_MAX + 1;
}
static void spoil_n_dims(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->tensors[0].n_dims = DLP_DIMS_MAX + 1;
}
static void spoil_dtype(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->tensors[1].dtype = DLP_N_DTYPES;
}
static void spoil_name(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        memset(record->tensors[0].name, 'x', sizeof(record->tensors[0].name));
}
static void spoil_offset(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->tensors[1].offset = control->slot_bytes - 8;
}
static void spoil_far_offset(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->tensors[1].offset = UINT64_MAX - 8;
}
static void spoil_strides(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->tensors[0].strides[1] = INT64_MAX;
}
static void spoil_negative_stride(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->tensors[0].strides[0] = -8;
}
static void spoil_shape(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->tensors[0].shape[2] = INT64_MAX;
}
static void spoil_batch_dimension(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->tensors[0].shape[0] += 1;
}
static void spoil_layout(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->tensors[0].layout = 7;
}
static void spoil_ragged(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->tensors[0].layout = DLP_RAGGED; /* but this ring has no places */
}
static void spoil_errors(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        record->n_errors = record->n_samples + 1;
}

static void (*const SPOILERS[])(struct dlp_control *, struct dlp_slot_record *, uint32_t) = {
        spoil_sequence, spoil_step,   spoil_epoch,  spoil_n_samples,       spoil_no_samples, spoil_n_tensors,
        spoil_n_dims,   spoil_dtype,  spoil_name,   spoil_offset,          spoil_far_offset, spoil_strides,
        spoil_shape,    spoil_layout, spoil_ragged, spoil_batch_dimension, spoil_errors,     spoil_negative_stride,
};

START_TEST(a_damaged_record_is_an_error_and_not_a_stray_pointer) {
        struct stand_in_manners manners = { .n_samples = 100, .spoil = SPOILERS[_i] };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *batch = NULL;

        ck_assert_int_eq(dlc_next(loader, PATIENCE_MS, &batch), -EPROTO);
        ck_assert_ptr_null(batch);
        ck_assert_ptr_nonnull(strstr(dlc_error(loader), "damaged"));
        ck_assert_int_eq(dlc_next(loader, PATIENCE_MS, &batch), -EPROTO);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(a_slot_number_out_of_range_is_an_error) {
        struct stand_in_manners manners = { .n_samples = 100, .n_slots = 3, .false_slot = _i ? 3 : UINT32_MAX };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *batch;

        ck_assert_int_eq(dlc_next(loader, PATIENCE_MS, &batch), -EPROTO);
        ck_assert_ptr_nonnull(strstr(dlc_error(loader), "the slot of batch 0"));
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

static void spoil_place(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        dlp_places(control, idx_slot)[1].n_bytes = control->slot_bytes;
}
static void spoil_place_offset(struct dlp_control *control, struct dlp_slot_record *record, uint32_t idx_slot) {
        dlp_places(control, idx_slot)[0].offset = UINT64_MAX;
}

START_TEST(a_damaged_place_is_an_error) {
        struct stand_in_manners manners = { .n_samples = 100,
                                            .ragged = true,
                                            .spoil = _i ? spoil_place : spoil_place_offset };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *batch;

        ck_assert_int_eq(dlc_next(loader, PATIENCE_MS, &batch), -EPROTO);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

/* ---- attaching ----------------------------------------------------------------------------------------------- */

static void check_refused(const struct dlc_options *options, int error, const char *part) {
        struct dlc_loader *loader = (struct dlc_loader *)&loader;
        int r = dlc_open(options, &loader);

        ck_assert_msg(r == error, "%d (%s), not %d", r, dlc_last_error(), error);
        ck_assert_ptr_eq(loader, &loader);
        ck_assert_msg(strstr(dlc_last_error(), part) != NULL, "\"%s\" is not in \"%s\"", part, dlc_last_error());
}

START_TEST(other_versions_are_refused_naming_both) {
        struct stand_in_manners manners = { .n_samples = 100, .protocol = 7 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);

        check_refused(&options, -EPROTONOSUPPORT, "speaks protocol 1, the daemon");
        check_refused(&options, -EPROTONOSUPPORT, "speaks protocol 7");
        stand_in_stop(stand_in);

        manners = (struct stand_in_manners){ .n_samples = 100, .layout_version = 9 };
        stand_in = stand_in_start(&manners);
        options = options_for(stand_in, 4);
        check_refused(&options, -EPROTONOSUPPORT, "layout 2, the daemon");
        check_refused(&options, -EPROTONOSUPPORT, "uses 9");
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(memory_that_could_fault_is_refused) {
        struct stand_in_manners manners = { .n_samples = 100, .unsealed = true };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);

        check_refused(&options, -EPROTO, "control memory");
        stand_in_stop(stand_in);

        manners = (struct stand_in_manners){ .n_samples = 100, .short_payload = true };
        stand_in = stand_in_start(&manners);
        options = options_for(stand_in, 4);
        check_refused(&options, -EPROTO, "payload memory");
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(a_refusal_carries_the_daemons_text_and_code) {
        struct stand_in_manners manners = { .n_samples = 100, .refuse_code = ENOMEM };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);

        check_refused(&options, -ENOMEM, "memory_limit: 9 MiB are needed");
        stand_in_stop(stand_in);

        /* Which means something else here. */
        manners = (struct stand_in_manners){ .n_samples = 100, .refuse_code = ECONNREFUSED };
        stand_in = stand_in_start(&manners);
        options = options_for(stand_in, 4);
        check_refused(&options, -EREMOTEIO, "memory_limit: 9 MiB are needed");
        stand_in_stop(stand_in);
}
END_TEST

static void count_progress(void *userdata, const char *text) {
        ck_assert_str_eq(text, "photos: indexing, 12 files so far");
        ++*(int *)userdata;
}

START_TEST(opening_waits_for_an_index_and_shows_it) {
        struct stand_in_manners manners = { .n_samples = 20, .n_retries = 3 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader;
        int n_told = 0;

        options.on_progress = count_progress;
        options.userdata = &n_told;
        loader = open_loader(&options);
        ck_assert_int_eq(n_told, 1); /* 300 ms: once a second at most */
        ck_assert_str_eq(dlc_error(loader), "");
        check_epoch(loader, 0);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(opening_gives_up_when_it_was_told_to) {
        struct stand_in_manners manners = { .n_samples = 20, .n_retries = UINT32_MAX };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        uint64_t began = now_ms();

        options.open_timeout_ms = 250;
        check_refused(&options, -ETIMEDOUT, "12 files so far");
        ck_assert_uint_ge(now_ms() - began, 249);
        ck_assert_uint_lt(now_ms() - began, 5000);
        options.open_timeout_ms = 0;
        check_refused(&options, -ETIMEDOUT, "open_timeout_ms=0");
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(two_loaders_in_two_threads_do_not_meet) {
        struct stand_in_manners manners = { .n_samples = 500 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options[2] = { options_for(stand_in, 4), options_for(stand_in, 7) };
        struct dlc_loader *loaders[2];

        for (int i = 0; i < 2; i++) {
                options[i].world_size = 2;
                options[i].rank = i;
                loaders[i] = open_loader(&options[i]);
        }
        for (uint64_t step = 0; step < 30; step++) /* one thread, taking turns */
                for (int i = 0; i < 2; i++)
                        check_steps(loaders[i], 0, step, step + 1);
        for (int i = 0; i < 2; i++)
                dlc_close(loaders[i]);
        stand_in_stop(stand_in);
}
END_TEST

static void *run_epochs(void *userdata) {
        struct dlc_loader *loader = open_loader(userdata);

        for (uint64_t epoch = 0; epoch < 20; epoch++)
                check_epoch(loader, epoch);
        dlc_close(loader);
        return NULL;
}

START_TEST(loaders_of_several_threads_are_independent) {
        struct stand_in_manners manners = { .n_samples = 100 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options[4];
        pthread_t threads[4];

        for (int i = 0; i < 4; i++) {
                options[i] = options_for(stand_in, 3 + i);
                options[i].world_size = 4;
                options[i].rank = i;
                ck_assert_int_eq(pthread_create(&threads[i], NULL, run_epochs, &options[i]), 0);
        }
        for (int i = 0; i < 4; i++)
                pthread_join(threads[i], NULL);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(a_closed_loader_leaves_nothing_behind) {
        struct stand_in_manners manners = { .n_samples = 100 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        int lowest = dup(0);

        close(lowest);
        for (int i = 0; i < 20; i++) {
                struct dlc_loader *loader = open_loader(&options);

                check_steps(loader, 0, 0, 3);
                dlc_close(loader);
        }
        for (int waited = 0; manners.n_clients > 0 && waited < PATIENCE_MS; waited++)
                usleep(1000);
        ck_assert_uint_eq(manners.n_clients, 0);
        ck_assert_int_eq(dup(0), lowest);
        close(lowest);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(after_a_fork_only_the_parent_uses_the_loader) {
        struct stand_in_manners manners = { .n_samples = 100 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *held = take(loader), *batch;
        volatile uint8_t *mine;
        int status;
        pid_t pid = fork();

        if (pid == 0) { /* no assertion here: the test's process is the parent */
                if (dlc_next(loader, -1, &batch) != -ECHILD || !strstr(dlc_error(loader), "fork"))
                        _exit(1);
                if (dlc_release(loader, held) != -ECHILD || dlc_set_epoch(loader, 3) != -ECHILD ||
                    dlc_fd(loader) != -ECHILD)
                        _exit(2);
                if (dlc_epoch_batches(loader) != 25)
                        _exit(3);
                /* What lies at the batches' address now is the child's own; closing must not take it away. */
                mine = mmap(dlc_get_info(loader)->memory_base, 4096, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
                if (mine == MAP_FAILED)
                        _exit(4);
                dlc_close(loader);
                *mine = 1;
                _exit(0);
        }
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_int_eq(status, 0);
        check_batch(loader, held, 0, 0);
        ck_assert_int_eq(dlc_release(loader, held), 0);
        check_steps(loader, 0, 1, 25);
        check_end(loader);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(missing_arguments_are_refused) {
        struct dlc_options options = DLC_OPTIONS_INIT;
        const struct dlc_batch *batch;

        ck_assert_int_eq(dlc_open(NULL, NULL), -EINVAL);
        ck_assert_int_eq(dlc_open(&options, NULL), -EINVAL);
        ck_assert_int_eq(dlc_next(NULL, 0, &batch), -EINVAL);
        ck_assert_int_eq(dlc_set_epoch(NULL, 0), -EINVAL);
        ck_assert_int_eq(dlc_fd(NULL), -EINVAL);
        ck_assert_ptr_null(dlc_get_info(NULL));
        ck_assert_uint_eq(dlc_epoch_batches(NULL), 0);
        ck_assert_ptr_null(dlc_dataset_digest(NULL));
        ck_assert_str_eq(dlc_error(NULL), "");
        ck_assert_ptr_null(dlc_sample_error(NULL, NULL, 0));
        dlc_close(NULL);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("client_loader");
        TCase *batches = tcase_create("batches"), *holding = tcase_create("holding"),
              *waiting = tcase_create("waiting");
        TCase *failing = tcase_create("failing"), *attaching = tcase_create("attaching");
        TCase *all[] = { batches, holding, waiting, failing, attaching };
        SRunner *runner = srunner_create(suite);
        int n_failed;

        tcase_add_test(batches, a_rank_gets_its_samples_in_order_and_to_the_byte);
        tcase_add_test(batches, without_set_epoch_the_next_epoch_follows);
        tcase_add_test(batches, set_epoch_goes_anywhere_and_old_batches_are_passed_over);
        tcase_add_test(batches, a_seek_leaves_held_batches_as_they_are);
        tcase_add_test(batches, past_the_prepared_epochs_the_daemon_is_asked);
        tcase_add_test(batches, a_rank_without_samples_gets_ends_only);
        tcase_add_test(batches, a_last_batch_is_short_and_drop_last_leaves_it_out);
        tcase_add_test(batches, substitutes_are_told_with_their_reason);
        tcase_add_test(batches, ragged_samples_lie_where_their_places_say);
        tcase_add_test(holding, held_batches_stay_and_go_back_in_any_order);
        tcase_add_test(holding, a_full_ring_is_said_and_not_waited_for);
        tcase_add_test(holding, what_was_not_handed_out_is_not_taken_back);
        tcase_add_test(holding, another_thread_may_release_while_one_waits);
        tcase_add_test(waiting, a_slow_daemon_wakes_a_sleeping_client);
        tcase_add_test(waiting, a_wait_ends_when_its_time_is_over);
        tcase_add_test(waiting, an_event_loop_sleeps_between_batches);
        tcase_add_test(waiting, a_signal_ends_a_wait_and_nothing_is_lost);
        tcase_add_test(failing, what_was_ready_outlives_the_daemon);
        tcase_add_test(failing, a_daemon_that_dies_ends_a_wait);
        tcase_add_test(failing, a_batch_published_with_the_last_breath_arrives);
        tcase_add_test(failing, the_daemons_last_words_are_handed_on);
        tcase_add_test(failing, a_failed_job_stays_failed);
        tcase_add_loop_test(failing, a_damaged_record_is_an_error_and_not_a_stray_pointer, 0,
                            sizeof(SPOILERS) / sizeof(SPOILERS[0]));
        tcase_add_loop_test(failing, a_slot_number_out_of_range_is_an_error, 0, 2);
        tcase_add_loop_test(failing, a_damaged_place_is_an_error, 0, 2);
        tcase_add_test(attaching, other_versions_are_refused_naming_both);
        tcase_add_test(attaching, memory_that_could_fault_is_refused);
        tcase_add_test(attaching, a_refusal_carries_the_daemons_text_and_code);
        tcase_add_test(attaching, opening_waits_for_an_index_and_shows_it);
        tcase_add_test(attaching, opening_gives_up_when_it_was_told_to);
        tcase_add_test(attaching, two_loaders_in_two_threads_do_not_meet);
        tcase_add_test(attaching, loaders_of_several_threads_are_independent);
        tcase_add_test(attaching, a_closed_loader_leaves_nothing_behind);
        tcase_add_test(attaching, after_a_fork_only_the_parent_uses_the_loader);
        tcase_add_test(attaching, missing_arguments_are_refused);
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
                tcase_set_timeout(all[i], 60);
                suite_add_tcase(suite, all[i]);
        }

        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed != 0;
}
