/* Batches on a device, with the stand-ins for the daemon and for the driver: places, seeks, releases, errors, forks,
 * and who waits for whom. That nothing is overwritten is seen in tests/integration/test_cuda.py. */

#include <check.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/include/dlclient-cuda.h"
#include "tests/support/client.h"
#include "tests/support/cuda_driver.h"
#include "tests/support/suite.h"

#define OK(call) ck_assert_int_eq(call, CUDA_SUCCESS)

static const char *const QUICK[] = { "DLT_CUDA_DELAY_US=200", NULL };

/* A loader with a device, and the trainer's stream. */
struct scene {
        struct stand_in_manners manners;
        struct stand_in *stand_in;
        struct dlc_loader *loader;
        struct dlc_cuda *cuda;
        void *stream;
};

static void scene_open_with(struct scene *scene, const char *const settings[], int n_slots, int n_batches) {
        struct dlc_cuda_options options = DLC_CUDA_OPTIONS_INIT;
        struct dlc_options wish;

        cuda_driver_begin_current(settings);
        if (scene->manners.n_samples == 0)
                scene->manners.n_samples = 40;
        scene->stand_in = stand_in_start(&scene->manners);
        wish = options_for(scene->stand_in, 4);
        wish.n_slots = n_slots;
        scene->loader = open_loader(&wish);
        options.n_batches = n_batches;
        ck_assert_msg(dlc_cuda_open(scene->loader, &options, &scene->cuda) == 0, "%s", dlc_cuda_last_error());
        OK(cuda.cuStreamCreate(&scene->stream, CUDA_STREAM_NON_BLOCKING));
}

static void scene_open(struct scene *scene) {
        scene_open_with(scene, QUICK, 4, 2);
}

/* Nothing is left but what cuda_driver_begin_current() made, and no rule was broken. */
static void scene_close(struct scene *scene) {
        struct dlt_cuda_counts counts;

        dlc_cuda_close(scene->cuda);
        dlc_close(scene->loader);
        OK(cuda.cuStreamDestroy(scene->stream));
        stand_in_stop(scene->stand_in);
        counts = cuda_driver_counts();
        ck_assert_msg(counts.n_violations == 0, "%s", counts.first_violation);
        ck_assert_uint_eq(counts.n_contexts, 1);
        ck_assert_uint_eq(counts.n_streams, 0);
        ck_assert_uint_eq(counts.n_events, 0);
        ck_assert_uint_eq(counts.n_modules, 0);
        ck_assert_uint_eq(counts.n_allocations, 0);
        ck_assert_uint_eq(counts.n_registrations, 0);
}

/* Is the batch of this step what it should be, on the device? */
static void check_device_batch(struct scene *scene, const struct dlc_cuda_batch *batch, uint64_t epoch, uint64_t step) {
        const struct dlc_tensor *pixels = &batch->batch.tensors[0], *labels = &batch->batch.tensors[1];
        uint8_t seen[STAND_IN_PIXELS];
        int64_t label;

        ck_assert_uint_eq(batch->batch.epoch, epoch);
        ck_assert_uint_eq(batch->batch.step, step);
        ck_assert_uint_eq(batch->host_tensors, 0);
        OK(cuda.cuStreamSynchronize(scene->stream));
        for (uint32_t i = 0; i < batch->batch.n_samples; i++) {
                int64_t index = stand_in_index(scene->manners.n_samples, 1, 0, 0, step * 4 + i);

                ck_assert_int_eq(batch->batch.indices[i], index);
                ck_assert_int_eq(batch->batch.served[i], index);
                OK(cuda.cuMemcpyDtoH(&label, (uintptr_t)labels->data + i * (uint64_t)labels->strides[0],
                                     sizeof(label)));
                ck_assert_int_eq(label, stand_in_label(index, epoch));
                OK(cuda.cuMemcpyDtoH(seen, (uintptr_t)pixels->data + i * (uint64_t)pixels->strides[0], sizeof(seen)));
                for (uint32_t k = 0; k < STAND_IN_PIXELS; k++)
                        ck_assert_uint_eq(seen[k], stand_in_pixel(index, epoch, k));
        }
}

static const struct dlc_cuda_batch *take_next(struct scene *scene) {
        const struct dlc_cuda_batch *batch = NULL;
        int r = dlc_cuda_next(scene->cuda, PATIENCE_MS, scene->stream, &batch);

        ck_assert_msg(r == 0, "%d: %s", r, dlc_cuda_error(scene->cuda));
        return batch;
}

static void give_back(struct scene *scene, const struct dlc_cuda_batch *batch) {
        ck_assert_msg(dlc_cuda_release(scene->cuda, batch, scene->stream) == 0, "%s", dlc_cuda_last_error());
}

static void check_to(struct scene *scene, uint64_t epoch, uint64_t first, uint64_t end) {
        for (uint64_t step = first; step < end; step++) {
                const struct dlc_cuda_batch *batch = take_next(scene);

                check_device_batch(scene, batch, epoch, step);
                give_back(scene, batch);
        }
}

static void check_ends(struct scene *scene) {
        const struct dlc_cuda_batch *batch;

        ck_assert_int_eq(dlc_cuda_next(scene->cuda, PATIENCE_MS, scene->stream, &batch), DLC_END_OF_EPOCH);
}

static void check_place(struct scene *scene, uint64_t epoch, uint64_t position) {
        uint64_t seen_epoch, seen_position;

        ck_assert_int_eq(dlc_cuda_get_cursor(scene->cuda, &seen_epoch, &seen_position), 0);
        ck_assert_uint_eq(seen_epoch, epoch);
        ck_assert_uint_eq(seen_position, position);
}

/* ---- places ---------------------------------------------------------------------------------------------------- */

START_TEST(epochs_follow_one_another_and_the_place_counts_what_was_released) {
        struct scene scene = { 0 };
        const struct dlc_cuda_batch *first, *second;
        struct dlc_cuda_info info;

        scene_open(&scene);
        check_place(&scene, 0, 0);
        first = take_next(&scene);
        check_place(&scene, 0, 0);
        second = take_next(&scene);
        give_back(&scene, second);
        check_place(&scene, 0, 0); /* the first one is held */
        give_back(&scene, first);
        check_place(&scene, 0, 8);
        check_to(&scene, 0, 2, 10);
        check_place(&scene, 0, 40);
        check_ends(&scene);
        check_place(&scene, 1, 0);
        check_to(&scene, 1, 0, 10);
        check_ends(&scene);
        ck_assert_int_eq(dlc_cuda_get_info(scene.cuda, &info, sizeof(info)), 0);
        ck_assert_uint_eq(info.n_copied, 20);
        ck_assert_uint_eq(info.registered_bytes, dlc_get_info(scene.loader)->memory_bytes);
        ck_assert_str_eq(info.remark, "");
        ck_assert_str_eq(info.bus_id, "0000:c0:00.0");
        scene_close(&scene);
}
END_TEST

START_TEST(a_seek_gives_up_what_was_copied_ahead) {
        struct scene scene = { 0 };

        scene_open(&scene);
        check_to(&scene, 0, 0, 3);
        ck_assert_int_eq(dlc_cuda_seek(scene.cuda, 7, 20), 0);
        check_place(&scene, 7, 20);
        for (uint64_t step = 5; step < 10; step++) {
                const struct dlc_cuda_batch *batch = take_next(&scene);

                ck_assert_uint_eq(batch->batch.epoch, 7);
                ck_assert_int_eq(batch->batch.indices[0], (int64_t)step * 4);
                give_back(&scene, batch);
        }
        check_ends(&scene);
        check_to(&scene, 8, 0, 2);
        ck_assert_int_eq(dlc_cuda_set_epoch(scene.cuda, 3), 0);
        check_place(&scene, 3, 0);
        check_to(&scene, 3, 0, 10);
        ck_assert_int_eq(dlc_cuda_set_epoch(scene.cuda, 4), 0); /* before the end was told */
        check_to(&scene, 4, 0, 10);
        check_ends(&scene);
        ck_assert_int_eq(dlc_cuda_set_epoch(scene.cuda, 5), 0); /* which comes anyway */
        check_to(&scene, 5, 0, 10);
        scene_close(&scene);
}
END_TEST

START_TEST(a_batch_from_before_a_seek_does_not_count_for_the_place) {
        struct scene scene = { 0 };
        const struct dlc_cuda_batch *old;

        scene_open(&scene);
        old = take_next(&scene);
        ck_assert_int_eq(dlc_cuda_seek(scene.cuda, 2, 8), 0);
        check_place(&scene, 2, 8);
        check_device_batch(&scene, old, 0, 0); /* it stays as it was */
        give_back(&scene, old);
        check_place(&scene, 2, 8);
        scene_close(&scene);
}
END_TEST

/* ---- releases -------------------------------------------------------------------------------------------------- */

START_TEST(a_batch_is_released_once_and_only_so_many_are_held) {
        struct scene scene = { 0 };
        const struct dlc_cuda_batch *held[3], *batch;
        struct dlc_cuda_batch foreign;

        scene_open_with(&scene, QUICK, 8, 3);
        for (uint64_t i = 0; i < 3; i++)
                held[i] = take_next(&scene);
        ck_assert_int_eq(dlc_cuda_next(scene.cuda, PATIENCE_MS, scene.stream, &batch), -ENOBUFS);
        ck_assert_ptr_nonnull(strstr(dlc_cuda_error(scene.cuda), "all 3 batches are held"));
        ck_assert_int_eq(dlc_cuda_release(scene.cuda, &foreign, scene.stream), -EINVAL);
        ck_assert_int_eq(dlc_cuda_release(scene.cuda, NULL, scene.stream), -EINVAL);
        for (uint64_t i = 0; i < 3; i++) {
                check_device_batch(&scene, held[i], 0, i);
                give_back(&scene, held[i]);
                ck_assert_int_eq(dlc_cuda_release(scene.cuda, held[i], scene.stream), -EINVAL);
                ck_assert_ptr_nonnull(strstr(dlc_cuda_last_error(), "released before"));
        }
        check_to(&scene, 0, 3, 10);
        scene_close(&scene);
}
END_TEST

struct releaser {
        struct scene *scene;
        const struct dlc_cuda_batch *batch;
};

static void *release_it(void *userdata) {
        struct releaser *releaser = userdata;

        give_back(releaser->scene, releaser->batch);
        return NULL;
}

START_TEST(any_thread_may_release) {
        struct scene scene = { 0 };

        scene_open(&scene);
        for (uint64_t step = 0; step < 10; step++) {
                struct releaser releaser = { &scene, take_next(&scene) };
                pthread_t thread;

                check_device_batch(&scene, releaser.batch, 0, step);
                ck_assert_int_eq(pthread_create(&thread, NULL, release_it, &releaser), 0);
                if (step % 4 == 1 && step < 9) { /* it is still at it when the next one is taken */
                        check_to(&scene, 0, step + 1, step + 2);
                        step++;
                }
                pthread_join(thread, NULL);
        }
        scene_close(&scene);
}
END_TEST

START_TEST(substitutes_are_told_with_their_reason_long_after_the_slot_is_gone) {
        struct scene scene = { .manners = { .n_samples = 40, .substitute_each = 5 } };
        const struct dlc_cuda_batch *held[10];
        char expected[40];

        scene_open_with(&scene, QUICK, 2, 10); /* both slots are filled again five times */
        for (uint64_t step = 0; step < 10; step++)
                held[step] = take_next(&scene);
        for (uint64_t step = 0; step < 10; step++)
                for (uint32_t i = 0; i < 4; i++) {
                        const char *text = dlc_cuda_sample_error(scene.cuda, held[step], i);
                        uint64_t index = step * 4 + i;

                        snprintf(expected, sizeof(expected), "sample %llu is damaged", (unsigned long long)index);
                        if (index % 5 == 0)
                                ck_assert_str_eq(text, expected);
                        else
                                ck_assert_ptr_null(text);
                }
        ck_assert_ptr_null(dlc_cuda_sample_error(scene.cuda, held[0], 4));
        ck_assert_ptr_null(dlc_cuda_sample_error(scene.cuda, NULL, 0));
        ck_assert_ptr_null(dlc_cuda_sample_error(NULL, held[0], 0));
        for (uint64_t step = 0; step < 10; step++)
                give_back(&scene, held[step]);
        ck_assert_ptr_null(dlc_cuda_sample_error(scene.cuda, held[0], 0));
        scene_close(&scene);
}
END_TEST

START_TEST(sixteen_reasons_are_kept_for_a_batch) {
        struct scene scene = { .manners = { .n_samples = 20, .substitute_each = 1 } };
        struct dlc_cuda_options options = DLC_CUDA_OPTIONS_INIT;
        struct dlc_options wish;
        const struct dlc_cuda_batch *batch;
        char expected[40];

        cuda_driver_begin_current(QUICK);
        scene.stand_in = stand_in_start(&scene.manners);
        wish = options_for(scene.stand_in, 20);
        scene.loader = open_loader(&wish);
        ck_assert_int_eq(dlc_cuda_open(scene.loader, &options, &scene.cuda), 0);
        OK(cuda.cuStreamCreate(&scene.stream, CUDA_STREAM_NON_BLOCKING));
        batch = take_next(&scene);
        ck_assert_uint_eq(batch->batch.n_substituted, 20);
        for (uint32_t i = 0; i < 20; i++) {
                snprintf(expected, sizeof(expected), "sample %u is damaged", i);
                if (i < 16)
                        ck_assert_str_eq(dlc_cuda_sample_error(scene.cuda, batch, i), expected);
                else
                        ck_assert_ptr_null(dlc_cuda_sample_error(scene.cuda, batch, i));
        }
        give_back(&scene, batch);
        scene_close(&scene);
}
END_TEST

START_TEST(a_good_batch_has_no_reasons_whatever_its_memory_was_used_for) {
        struct scene scene = { .manners = { .n_samples = 40, .substitute_each = 40 } };

        scene_open_with(&scene, QUICK, 4, 1);
        for (uint64_t step = 0; step < 10; step++) {
                const struct dlc_cuda_batch *batch = take_next(&scene);

                for (uint32_t i = 0; i < 4; i++)
                        ck_assert_int_eq(dlc_cuda_sample_error(scene.cuda, batch, i) != NULL, step == 0 && i == 0);
                give_back(&scene, batch);
        }
        scene_close(&scene);
}
END_TEST

/* ---- who waits for whom ---------------------------------------------------------------------------------------- */

START_TEST(slots_go_back_and_batches_are_copied_ahead_while_the_trainers_stream_is_stuck) {
        struct scene scene = { 0 };
        const struct dlc_cuda_batch *batch[2];
        struct cuda_gate gate;
        struct dlc_stats stats;
        uint64_t deadline = now_ms() + PATIENCE_MS;

        scene_open_with(&scene, QUICK, 4, 2);
        cuda_gate_shut(&gate, scene.stream);
        batch[0] = take_next(&scene); /* returns although the stream does not move */
        batch[1] = take_next(&scene);
        do { /* all copies are done: the slots are given back when the library next looks */
                const struct dlc_cuda_batch *none;

                usleep(1000);
                ck_assert_int_eq(dlc_cuda_next(scene.cuda, 0, scene.stream, &none), -ENOBUFS);
                ck_assert_int_eq(dlc_get_stats(scene.loader, &stats, sizeof(stats)), 0);
        } while (stats.n_held > 0 && now_ms() < deadline);
        ck_assert_uint_eq(stats.n_held, 0);
        ck_assert_int_eq(cuda.cuStreamQuery(scene.stream), CUDA_ERROR_NOT_READY);
        cuda_gate_open(&gate);
        check_device_batch(&scene, batch[0], 0, 0);
        check_device_batch(&scene, batch[1], 0, 1);
        give_back(&scene, batch[0]);
        give_back(&scene, batch[1]);
        check_to(&scene, 0, 2, 10);
        scene_close(&scene);
}
END_TEST

START_TEST(what_was_released_is_not_written_before_the_trainers_stream_is_done_with_it) {
        struct scene scene = { 0 };
        const struct dlc_cuda_batch *first;
        struct cuda_gate gate;
        uint8_t seen[STAND_IN_PIXELS];
        const uint8_t *data;

        scene_open_with(&scene, QUICK, 4, 1);
        first = take_next(&scene);
        check_device_batch(&scene, first, 0, 0);
        data = first->batch.tensors[0].data;
        cuda_gate_shut(&gate, scene.stream); /* the trainer is slow, */
        give_back(&scene, first);            /* and has released it long before */
        for (uint64_t step = 1; step < 3; step++)
                give_back(&scene, take_next(&scene));
        usleep(20000);
        OK(cuda.cuMemcpyDtoH(seen, (uintptr_t)data, sizeof(seen)));
        for (uint32_t k = 0; k < STAND_IN_PIXELS; k++)
                ck_assert_uint_eq(seen[k], stand_in_pixel(0, 0, k));
        cuda_gate_open(&gate);
        check_to(&scene, 0, 3, 10);
        scene_close(&scene);
}
END_TEST

START_TEST(another_stream_that_uses_a_batch_waits_for_it_and_is_waited_for) {
        struct scene scene = { 0 };
        const struct dlc_cuda_batch *first, *second;
        struct cuda_gate gate;
        uint8_t seen[STAND_IN_PIXELS];
        const uint8_t *data;
        void *side;

        scene_open_with(&scene, QUICK, 4, 1);
        OK(cuda.cuStreamCreate(&side, CUDA_STREAM_NON_BLOCKING));
        first = take_next(&scene);
        ck_assert_msg(dlc_cuda_use(scene.cuda, first, side) == 0, "%s", dlc_cuda_last_error());
        ck_assert_int_eq(dlc_cuda_use(scene.cuda, first, side), 0); /* the same one, not a second one */
        data = first->batch.tensors[0].data;
        OK(cuda.cuMemcpyDtoHAsync(seen, (uintptr_t)data, sizeof(seen), side));
        OK(cuda.cuStreamSynchronize(side));
        for (uint32_t k = 0; k < STAND_IN_PIXELS; k++)
                ck_assert_uint_eq(seen[k], stand_in_pixel(0, 0, k));
        cuda_gate_shut(&gate, side);
        give_back(&scene, first); /* on the first stream, which is done with it */
        ck_assert_int_eq(dlc_cuda_use(scene.cuda, first, side), -EINVAL);
        second = take_next(&scene);
        give_back(&scene, second);
        give_back(&scene, take_next(&scene));
        usleep(20000);
        OK(cuda.cuMemcpyDtoH(seen, (uintptr_t)data, sizeof(seen)));
        for (uint32_t k = 0; k < STAND_IN_PIXELS; k++)
                ck_assert_uint_eq(seen[k], stand_in_pixel(0, 0, k));
        cuda_gate_open(&gate);
        check_to(&scene, 0, 3, 10);
        OK(cuda.cuStreamDestroy(side));
        scene_close(&scene);
}
END_TEST

START_TEST(so_many_other_streams_are_remembered) {
        struct scene scene = { 0 };
        const struct dlc_cuda_batch *batch;
        void *sides[DLC_CUDA_USERS_MAX + 1];

        scene_open(&scene);
        batch = take_next(&scene);
        for (size_t i = 0; i <= DLC_CUDA_USERS_MAX; i++) {
                OK(cuda.cuStreamCreate(&sides[i], CUDA_STREAM_NON_BLOCKING));
                ck_assert_int_eq(dlc_cuda_use(scene.cuda, batch, sides[i]), i < DLC_CUDA_USERS_MAX ? 0 : -ENOBUFS);
        }
        ck_assert_int_eq(dlc_cuda_use(NULL, batch, sides[0]), -EINVAL);
        ck_assert_int_eq(dlc_cuda_use(scene.cuda, NULL, sides[0]), -EINVAL);
        give_back(&scene, batch);
        batch = take_next(&scene);
        ck_assert_int_eq(dlc_cuda_use(scene.cuda, batch, sides[DLC_CUDA_USERS_MAX]), 0); /* those were forgotten */
        give_back(&scene, batch);
        for (size_t i = 0; i <= DLC_CUDA_USERS_MAX; i++)
                OK(cuda.cuStreamDestroy(sides[i]));
        scene_close(&scene);
}
END_TEST

START_TEST(a_wait_for_a_batch_ends_as_the_loaders_would) {
        struct scene scene = { .manners = { .hold = true } };
        const struct dlc_cuda_batch *batch;

        scene_open(&scene);
        ck_assert_int_eq(dlc_cuda_next(scene.cuda, 0, scene.stream, &batch), -EAGAIN);
        ck_assert_int_eq(dlc_cuda_next(scene.cuda, 10, scene.stream, &batch), -ETIMEDOUT);
        ck_assert_ptr_nonnull(strstr(dlc_cuda_error(scene.cuda), "10 ms"));
        atomic_store(&scene.manners.hold, false);
        check_to(&scene, 0, 0, 10);
        scene_close(&scene);
}
END_TEST

/* As the header says: once the daemon is slow, once the device, of which no descriptor tells. */
START_TEST(an_event_loop_gets_every_batch) {
        static const char *const SLOW[] = { "DLT_CUDA_DELAY_US=20000", NULL };
        struct scene scene = { .manners = { .pause_us = _i ? 0 : 15000 } };
        uint64_t step = 0, deadline = now_ms() + PATIENCE_MS;

        scene_open_with(&scene, _i ? SLOW : QUICK, 2 + 2 * _i, 1);
        while (step < 10) {
                struct pollfd item = { .fd = dlc_fd(scene.loader), .events = POLLIN };
                const struct dlc_cuda_batch *batch;
                int r = dlc_cuda_next(scene.cuda, 0, scene.stream, &batch);

                ck_assert(now_ms() < deadline);
                if (r == 0) {
                        if (!_i) /* else nothing waits for the device */
                                check_device_batch(&scene, batch, 0, step);
                        ck_assert_uint_eq(batch->batch.step, step++);
                        give_back(&scene, batch);
                } else {
                        ck_assert_int_eq(r, -EAGAIN);
                        poll(&item, 1, 5);
                }
        }
        check_ends(&scene);
        scene_close(&scene);
}
END_TEST

static void on_signal(int number) {
        (void)number;
}

/* The next batch, however often a signal ends the wait. */
static const struct dlc_cuda_batch *take_between_signals(struct scene *scene) {
        const struct dlc_cuda_batch *batch = NULL;
        int r;

        do
                r = dlc_cuda_next(scene->cuda, PATIENCE_MS, scene->stream, &batch);
        while (r == -EINTR);
        ck_assert_msg(r == 0, "%d: %s", r, dlc_cuda_error(scene->cuda));
        return batch;
}

START_TEST(a_signal_ends_a_wait_and_no_batch_is_lost) {
        struct scene scene = { .manners = { .hold = true, .pause_us = 10000 } };
        struct sigaction action = { .sa_handler = on_signal }, before;
        struct itimerval timer = { .it_value.tv_usec = 3000, .it_interval.tv_usec = 3000 }, off = { 0 };
        const struct dlc_cuda_batch *batch;

        scene_open_with(&scene, QUICK, 2, 1);
        sigaction(SIGALRM, &action, &before);
        setitimer(ITIMER_REAL, &timer, NULL);
        ck_assert_int_eq(dlc_cuda_next(scene.cuda, PATIENCE_MS, scene.stream, &batch), -EINTR);
        ck_assert_ptr_nonnull(strstr(dlc_cuda_error(scene.cuda), "interrupted"));
        check_place(&scene, 0, 0);
        atomic_store(&scene.manners.hold, false);
        for (uint64_t epoch = 0; epoch < 2; epoch++) {
                for (uint64_t step = 0; step < 10; step++) {
                        batch = take_between_signals(&scene);
                        check_device_batch(&scene, batch, epoch, step);
                        give_back(&scene, batch);
                }
                check_ends(&scene);
        }
        setitimer(ITIMER_REAL, &off, NULL);
        sigaction(SIGALRM, &before, NULL);
        scene_close(&scene);
}
END_TEST

/* ---- errors ---------------------------------------------------------------------------------------------------- */

START_TEST(a_failed_job_is_told_after_the_batches_that_were_good) {
        struct scene scene = { .manners = { .fail_at = 3 } };
        const struct dlc_cuda_batch *batch;

        scene_open(&scene);
        check_to(&scene, 0, 0, 3);
        for (int i = 0; i < 2; i++)
                ck_assert_int_eq(dlc_cuda_next(scene.cuda, PATIENCE_MS, scene.stream, &batch), -EBADMSG);
        scene_close(&scene);
}
END_TEST

START_TEST(after_a_failed_call_nothing_follows_and_the_daemon_learns_of_it) {
        static const char *const FAILS[] = { "DLT_CUDA_DELAY_US=200", "DLT_CUDA_FAIL=cuMemcpyHtoDAsync_v2:5:700",
                                             NULL };
        struct scene scene = { 0 };
        const struct dlc_cuda_batch *batch;
        uint64_t deadline = now_ms() + PATIENCE_MS;
        int r;

        scene_open_with(&scene, FAILS, 4, 2);
        while ((r = dlc_cuda_next(scene.cuda, PATIENCE_MS, scene.stream, &batch)) == 0)
                give_back(&scene, batch);
        ck_assert_int_eq(r, -EIO);
        ck_assert_ptr_nonnull(strstr(dlc_cuda_error(scene.cuda), "CUDA_ERROR_ILLEGAL_ADDRESS"));
        ck_assert_int_eq(dlc_cuda_next(scene.cuda, PATIENCE_MS, scene.stream, &batch), -EIO);
        ck_assert_int_eq(dlc_cuda_set_epoch(scene.cuda, 1), -EIO);
        ck_assert_int_eq(dlc_set_epoch(scene.loader, 1), -ESHUTDOWN);
        while (atomic_load(&scene.manners.n_clients) > 0 && now_ms() < deadline)
                usleep(1000);
        ck_assert_uint_eq(atomic_load(&scene.manners.n_clients), 0);
        scene_close(&scene);
}
END_TEST

struct given {
        int n_given, n_back, n_asked;
};

static int give(void *userdata, const struct dlc_tensor *tensor, size_t n_bytes, void *stream, void **ret_data) {
        struct given *given = userdata;
        uint64_t pointer;

        if (cuda.cuMemAlloc(&pointer, n_bytes) != CUDA_SUCCESS)
                return -ENOMEM;
        given->n_given++;
        *ret_data = (void *)(uintptr_t)pointer;
        return 0;
}

static void take_back(void *userdata, void *data, void *stream) {
        struct given *given = userdata;

        given->n_back++;
        cuda.cuMemFree((uintptr_t)data); /* fails if the context is lost */
}

/* Each call while a batch is queued fails once; in a lost context too. */
START_TEST(what_the_caller_allocated_comes_back_after_an_error) {
        static const char *const FAILING[] = { "cuMemcpyHtoDAsync_v2:5:700", "cuMemcpyHtoDAsync_v2:5:700:sticky",
                                               "cuStreamWaitEvent:9:1",      "cuEventRecord:6:1",
                                               "cuMemcpyDtoDAsync_v2:4:1",   "cuMemcpyDtoDAsync_v2:4:719:sticky" };
        char setting[80];
        const char *const settings[] = { QUICK[0], setting, NULL };
        struct scene scene = { .manners = { .n_samples = 40 } };
        struct dlc_cuda_options options = DLC_CUDA_OPTIONS_INIT;
        struct dlc_options wish;
        struct given given = { 0 };
        const struct dlc_cuda_batch *batch;
        int r, n_handed_out = 0;

        snprintf(setting, sizeof(setting), "DLT_CUDA_FAIL=%s", FAILING[_i]);
        cuda_driver_begin_current(settings);
        scene.stand_in = stand_in_start(&scene.manners);
        wish = options_for(scene.stand_in, 4);
        scene.loader = open_loader(&wish);
        options.allocate = give;
        options.free = take_back;
        options.userdata = &given;
        ck_assert_int_eq(dlc_cuda_open(scene.loader, &options, &scene.cuda), 0);
        while ((r = dlc_cuda_next(scene.cuda, PATIENCE_MS, NULL, &batch)) == 0) {
                n_handed_out += (int)batch->batch.n_tensors;
                give_back(&scene, batch);
        }
        ck_assert_int_eq(r, -EIO);
        dlc_cuda_close(scene.cuda);
        ck_assert_int_gt(given.n_back, 0);
        ck_assert_int_eq(given.n_given - given.n_back, n_handed_out);
        ck_assert_uint_eq(cuda_driver_counts().n_violations, 0);
        dlc_close(scene.loader);
        stand_in_stop(scene.stand_in);
}
END_TEST

/* The first two calls are those of a binding whose function was interrupted: what it returns means nothing. */
static int give_late(void *userdata, const struct dlc_tensor *tensor, size_t n_bytes, void *stream, void **ret_data) {
        struct given *given = userdata;

        if (given->n_asked < 2)
                return given->n_asked++ * 77;
        return give(userdata, tensor, n_bytes, stream, ret_data);
}

START_TEST(a_caller_that_gives_no_memory_is_asked_again_and_any_number_of_streams_use_its_batches) {
        struct scene scene = { .manners = { .n_samples = 160 } };
        struct dlc_cuda_options options = DLC_CUDA_OPTIONS_INIT;
        struct dlc_options wish;
        struct given given = { 0 };
        const struct dlc_cuda_batch *batch;
        int r, n_batches = 0;

        cuda_driver_begin_current(QUICK);
        scene.stand_in = stand_in_start(&scene.manners);
        wish = options_for(scene.stand_in, 4);
        scene.loader = open_loader(&wish);
        options.allocate = give_late;
        options.free = take_back;
        options.userdata = &given;
        ck_assert_int_eq(dlc_cuda_open(scene.loader, &options, &scene.cuda), 0);
        for (int i = 0; i < 2; i++)
                ck_assert_int_eq(dlc_cuda_next(scene.cuda, PATIENCE_MS, NULL, &batch), -ENOMEM);
        while ((r = dlc_cuda_next(scene.cuda, PATIENCE_MS, NULL, &batch)) == 0) {
                void *stream;

                n_batches++;
                OK(cuda.cuStreamCreate(&stream, CUDA_STREAM_NON_BLOCKING));
                ck_assert_int_eq(dlc_cuda_use(scene.cuda, batch, stream), 0);
                give_back(&scene, batch);
        }
        ck_assert_int_eq(r, DLC_END_OF_EPOCH);
        ck_assert_int_eq(n_batches, 40);
        dlc_cuda_close(scene.cuda);
        ck_assert_uint_eq(cuda_driver_counts().n_violations, 0);
        dlc_close(scene.loader);
        stand_in_stop(scene.stand_in);
}
END_TEST

START_TEST(memory_that_is_not_there_now_may_be_there_later) {
        static const char *const FULL[] = { "DLT_CUDA_DELAY_US=200",
                                            "DLT_CUDA_FAIL=cuMemAlloc_v2:1:2,cuMemAlloc_v2:2:2", NULL };
        struct scene scene = { 0 };
        const struct dlc_cuda_batch *batch;

        scene_open_with(&scene, FULL, 4, 2);
        for (int i = 0; i < 2; i++)
                ck_assert_int_eq(dlc_cuda_next(scene.cuda, PATIENCE_MS, scene.stream, &batch), -ENOMEM);
        ck_assert_ptr_nonnull(strstr(dlc_cuda_error(scene.cuda), "CUDA_ERROR_OUT_OF_MEMORY"));
        check_to(&scene, 0, 0, 10); /* no batch was lost */
        scene_close(&scene);
}
END_TEST

START_TEST(wrong_options_are_named) {
        struct scene scene = { 0 };
        struct dlc_cuda_options options = DLC_CUDA_OPTIONS_INIT;
        struct dlc_cuda *none = NULL;

        scene_open(&scene);
        options.device = 9;
        ck_assert_int_eq(dlc_cuda_open(scene.loader, &options, &none), -EINVAL);
        ck_assert_ptr_nonnull(strstr(dlc_cuda_last_error(), "device 9 does not exist"));
        options.device = -2;
        ck_assert_int_eq(dlc_cuda_open(scene.loader, &options, &none), -EINVAL);
        options.device = 0;
        for (int n = 0; n <= 65; n += 65) {
                options.n_batches = n;
                ck_assert_int_eq(dlc_cuda_open(scene.loader, &options, &none), -EINVAL);
                ck_assert_ptr_nonnull(strstr(dlc_cuda_last_error(), "n_batches"));
        }
        options.n_batches = 2;
        options.size = 3;
        ck_assert_int_eq(dlc_cuda_open(scene.loader, &options, &none), -EINVAL);
        ck_assert_int_eq(dlc_cuda_open(NULL, NULL, &none), -EINVAL);
        ck_assert_int_eq(dlc_cuda_next(NULL, 0, NULL, NULL), -EINVAL);
        ck_assert_int_eq(dlc_cuda_seek(NULL, 0, 0), -EINVAL);
        ck_assert_int_eq(dlc_cuda_seek(scene.cuda, 0, 41), -EINVAL);
        dlc_cuda_close(NULL);
        check_to(&scene, 0, 0, 10);
        scene_close(&scene);
}
END_TEST

START_TEST(a_device_says_where_it_is_before_there_is_a_loader) {
        static const char *const SETTINGS[] = { "DLT_CUDA_DEVICES=2", NULL };
        static const char *const SILENT[] = { "DLT_CUDA_FAIL=cuDeviceGetPCIBusId:1:999", NULL };
        char id[DLC_CUDA_BUS_ID_MAX] = "untouched";
        struct dlt_cuda_counts counts;

        cuda_driver_begin(SETTINGS);
        OK(cuda.cuInit(0)); /* the library may have done so for an earlier test of this process */
        unsetenv("LOCAL_RANK");
        ck_assert_int_eq(dlc_cuda_get_bus_id(2, id, sizeof(id)), -EINVAL);
        ck_assert_ptr_nonnull(strstr(dlc_cuda_last_error(), "device 2 does not exist"));
        ck_assert_int_eq(dlc_cuda_get_bus_id(-2, id, sizeof(id)), -EINVAL);
        ck_assert_int_eq(dlc_cuda_get_bus_id(0, id, sizeof(id) - 1), -EINVAL);
        ck_assert_int_eq(dlc_cuda_get_bus_id(0, NULL, sizeof(id)), -EINVAL);
        ck_assert_str_eq(id, "untouched");
        ck_assert_int_eq(dlc_cuda_get_bus_id(1, id, sizeof(id)), 0);
        ck_assert_str_eq(id, "0000:c1:00.0");
        ck_assert_int_eq(dlc_cuda_get_bus_id(-1, id, sizeof(id)), 0);
        ck_assert_str_eq(id, "0000:c0:00.0");
        setenv("LOCAL_RANK", "1", 1);
        ck_assert_int_eq(dlc_cuda_get_bus_id(-1, id, sizeof(id)), 0);
        ck_assert_str_eq(id, "0000:c1:00.0");
        unsetenv("LOCAL_RANK");
        counts = cuda_driver_counts();
        ck_assert_uint_eq(counts.n_contexts, 0);
        ck_assert_uint_eq(counts.n_violations, 0);

        cuda_driver_begin_current(SILENT);
        ck_assert_int_eq(dlc_cuda_get_bus_id(0, id, sizeof(id)), 0);
        ck_assert_str_eq(id, ""); /* which near_device takes for no answer */
}
END_TEST

START_TEST(the_child_of_a_fork_can_only_close) {
        struct scene scene = { 0 };
        const struct dlc_cuda_batch *batch;
        int status = -1;
        pid_t child;

        scene_open(&scene);
        check_to(&scene, 0, 0, 3);
        batch = take_next(&scene);
        child = fork();
        if (child == 0) {
                const struct dlc_cuda_batch *none;
                bool good = dlc_cuda_next(scene.cuda, 0, scene.stream, &none) == -ECHILD &&
                            strstr(dlc_cuda_last_error(), "fork") &&
                            dlc_cuda_release(scene.cuda, batch, scene.stream) == -ECHILD;

                dlc_cuda_close(scene.cuda);
                dlc_close(scene.loader);
                _exit(good ? 0 : 1);
        }
        ck_assert_int_eq(waitpid(child, &status, 0), child);
        ck_assert_int_eq(status, 0);
        give_back(&scene, batch);
        check_to(&scene, 0, 4, 10);
        scene_close(&scene);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "places", epochs_follow_one_another_and_the_place_counts_what_was_released, 0 },
                { "places", a_seek_gives_up_what_was_copied_ahead, 0 },
                { "places", a_batch_from_before_a_seek_does_not_count_for_the_place, 0 },
                { "releases", a_batch_is_released_once_and_only_so_many_are_held, 0 },
                { "releases", any_thread_may_release, 0 },
                { "releases", substitutes_are_told_with_their_reason_long_after_the_slot_is_gone, 0 },
                { "releases", sixteen_reasons_are_kept_for_a_batch, 0 },
                { "releases", a_good_batch_has_no_reasons_whatever_its_memory_was_used_for, 0 },
                { "waiting", slots_go_back_and_batches_are_copied_ahead_while_the_trainers_stream_is_stuck, 0 },
                { "waiting", what_was_released_is_not_written_before_the_trainers_stream_is_done_with_it, 0 },
                { "waiting", another_stream_that_uses_a_batch_waits_for_it_and_is_waited_for, 0 },
                { "waiting", so_many_other_streams_are_remembered, 0 },
                { "waiting", a_wait_for_a_batch_ends_as_the_loaders_would, 0 },
                { "waiting", an_event_loop_gets_every_batch, 2 },
                { "waiting", a_signal_ends_a_wait_and_no_batch_is_lost, 0 },
                { "errors", a_failed_job_is_told_after_the_batches_that_were_good, 0 },
                { "errors", after_a_failed_call_nothing_follows_and_the_daemon_learns_of_it, 0 },
                { "errors", what_the_caller_allocated_comes_back_after_an_error, 6 },
                { "errors", a_caller_that_gives_no_memory_is_asked_again_and_any_number_of_streams_use_its_batches, 0 },
                { "errors", memory_that_is_not_there_now_may_be_there_later, 0 },
                { "errors", wrong_options_are_named, 0 },
                { "errors", a_device_says_where_it_is_before_there_is_a_loader, 0 },
                { "forks", the_child_of_a_fork_can_only_close, 0 },
        };

        return suite_run("cuda_loader", rows, sizeof(rows) / sizeof(rows[0]));
}
