/* The planner, the workers and everything below them, in this process: what a rank gets, in which order, and what it
 * does not get when something goes wrong. */

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/work/sweeper.h"
#include "proto/base/clock.h"
#include "proto/ring.h"
#include "tests/support/layouts.h"
#include "tests/support/serving.h"

#define SOON_MS             60000
#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))
/* How often a race is run. The sanitizers see it a third as often: it takes them ten times as long. */
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define ROUNDS 100u
#else
#define ROUNDS 300u
#endif

static struct serving serving;

/* ---- in order ------------------------------------------------------------------------------------------------ */

static const struct rank_options WORLDS[] = {
        { .world = 1, .rank = 0, .batch_size = 8, .shuffle = true, .seed = 7 },
        { .world = 1, .rank = 0, .batch_size = 100, .shuffle = true }, /* one batch, incomplete */
        { .world = 3, .rank = 1, .batch_size = 4, .shuffle = true, .seed = 1 },
        { .world = 3, .rank = 2, .batch_size = 4, .partition = DLP_PARTITION_DROP, .shuffle = true },
        { .world = 3, .rank = 2, .batch_size = 5, .partition = DLP_PARTITION_EXACT },
        { .world = 8, .rank = 7, .batch_size = 3, .drop_last = true, .shuffle = true },
        { .world = 2, .rank = 0, .batch_size = 1, .n_slots = 2, .shuffle = true },
        { .world = 1, .rank = 0, .batch_size = 7, .n_slots = 64, .shuffle = true, .first_epoch = 4000000000u },
};

START_TEST(each_rank_gets_its_samples_in_its_order) {
        struct rank rank;

        serving_start(&serving, &(struct serving_options){ .n_samples = 61, .n_classes = 3, .n_tasks = 1 + _i * 3 });
        rank_attach(&rank, &serving, &WORLDS[_i]);
        for (uint64_t epoch = WORLDS[_i].first_epoch; epoch < WORLDS[_i].first_epoch + 3; epoch++)
                rank_eat_epoch(&rank, epoch);
        rank_leave(&rank);
        serving_stop(&serving);
}
END_TEST

START_TEST(no_more_epochs_come_than_were_asked_for) {
        struct taken taken;
        struct rank rank;

        serving_start(&serving, &(struct serving_options){ .n_samples = 10, .n_classes = 2 });
        rank_attach(&rank, &serving,
                    &(struct rank_options){ .world = 1, .batch_size = 4, .first_epoch = 5, .n_epochs = 2 });
        rank_eat_epoch(&rank, 5);
        rank_eat_epoch(&rank, 6);
        ck_assert(!rank_next(&rank, 50, &taken));
        rank_leave(&rank);

        /* A number of epochs that overflows does not end the run. */
        rank_attach(&rank, &serving,
                    &(struct rank_options){
                            .world = 1, .batch_size = 4, .first_epoch = DLP_EPOCH_MAX, .n_epochs = UINT64_MAX });
        rank_eat_epoch(&rank, DLP_EPOCH_MAX);
        ck_assert(!rank_next(&rank, 50, &taken));
        rank_leave(&rank);
        serving_stop(&serving);
}
END_TEST

START_TEST(a_rank_without_samples_is_served_nothing_and_hangs_nothing) {
        struct taken taken;
        struct rank rank;

        serving_start(&serving, &(struct serving_options){ .n_samples = 2, .n_classes = 1 });
        rank_attach(&rank, &serving,
                    &(struct rank_options){ .world = 5, .rank = 4, .batch_size = 1, .partition = DLP_PARTITION_DROP });
        ck_assert(!rank_next(&rank, 50, &taken));
        rank_seek(&rank, &(struct cursor){ .epoch = 3 });
        ck_assert(!rank_next(&rank, 50, &taken));
        rank_leave(&rank);
        serving_stop(&serving);
}
END_TEST

/* ---- each at its own pace ------------------------------------------------------------------------------------ */

START_TEST(a_slow_rank_does_not_hold_up_a_fast_one) {
        struct rank_options options = { .world = 2, .batch_size = 5, .shuffle = true };
        struct rank slow, fast;
        struct taken first, taken;

        serving_start(&serving, &(struct serving_options){ .n_samples = 100, .n_classes = 4 });
        rank_attach(&slow, &serving, &options);
        options.rank = 1;
        rank_attach(&fast, &serving, &options);

        ck_assert(rank_next(&slow, SOON_MS, &first)); /* and holds it all the while */
        for (uint64_t epoch = 0; epoch < 10; epoch++)
                rank_eat_epoch(&fast, epoch);
        rank_check(&slow, &first, 0, 0);

        /* The slow one lost nothing: what was prepared for it is there, and more comes. */
        rank_release(&slow, &first);
        for (uint64_t step = 1; step < slow.feed->whole.n_batches; step++) {
                ck_assert(rank_next(&slow, SOON_MS, &taken));
                rank_check(&slow, &taken, 0, step);
                rank_release(&slow, &taken);
        }
        rank_leave(&slow);
        rank_leave(&fast);
        serving_stop(&serving);
}
END_TEST

static void large_pictures(struct serving_options *options, const struct tree *tree) {
        char path[64];

        for (uint32_t i = 0; i < options->n_samples; i++) {
                serving_path(options, i, path);
                write_picture(tree, path, i, 700, 700);
        }
}

/* How often samples were begun beyond those that are done: each time their file's bytes are counted. The pictures have
 * the same size up to a few bytes. */
static uint64_t n_begun(uint64_t n_file_bytes, uint64_t *ret_n_done) {
        uint64_t n_bytes = counter_get(&pipeline_counters(serving.pipeline)->n_bytes_read);

        *ret_n_done = counter_get(&pipeline_counters(serving.pipeline)->n_samples); /* later: not too small */
        return (n_bytes + n_file_bytes / 2) / n_file_bytes;
}

/* Other users come all the time: a sample is given up whenever it can be. */
START_TEST(a_sample_gives_way_to_other_users_once) {
        struct serving_options options = {
                .n_samples = 4, .n_classes = 1, .n_workers = 1, .n_tasks = 1, .spoil = large_pictures
        };
        struct rank_options rank_options = {
                .world = 1,
                .batch_size = 1,
                .pipeline = "resize(600:600) gaussian_blur(15, sigma=3) equalize(1) gaussian_blur(15, sigma=3) "
                            "equalize(1) gaussian_blur(15, sigma=3) equalize(1) center_crop(8)"
        };
        uint64_t begun = 0, n_done = 0, begin_ns = clock_now_ns();
        struct fair_queue *queue;
        struct stat status;
        struct taken taken;
        struct rank rank;
        struct why why;
        char path[64];

        serving_start(&serving, &options);
        serving_path(&options, 0, path);
        ck_assert_int_eq(fstatat(serving.tree.fd, path, &status, 0), 0);
        queue = pipeline_pool(serving.pipeline)->options.ready;
        ck_assert_int_eq(rank_make(&rank, &serving, &rank_options, &why), 0);
        atomic_store(&rank.job->share.account.longest_ns, 3600 * 1000000000ll); /* its samples take long */
        rank_add(&rank);
        while (begun < n_done + 2 || n_done < 8) { /* one was given up, and many came nevertheless */
                atomic_store(&queue->is_pressed, true);
                if (rank_next(&rank, 1, &taken))
                        rank_release(&rank, &taken);
                begun = n_begun((uint64_t)status.st_size, &n_done);
                ck_assert_uint_le(begun, 2 * (n_done + 1));
                ck_assert_uint_lt(clock_now_ns() - begin_ns, 2 * SOON_MS * 1000000ull);
        }
        rank_leave(&rank);
        serving_stop(&serving);
}
END_TEST

START_TEST(batches_may_be_held_and_given_back_in_any_order) {
        struct taken held[4], taken;
        struct rank rank;

        serving_start(&serving, &(struct serving_options){ .n_samples = 64, .n_classes = 1 });
        rank_attach(&rank, &serving,
                    &(struct rank_options){ .world = 1, .batch_size = 1, .n_slots = 4, .shuffle = true });
        for (uint64_t round = 0; round < 16; round++) {
                for (uint32_t i = 0; i < 4; i++)
                        ck_assert(rank_next(&rank, SOON_MS, &held[i]));
                ck_assert(!rank_next(&rank, 0, &taken)); /* fullness is the backpressure */
                for (uint32_t i = 0; i < 4; i++)
                        rank_check(&rank, &held[i], 0, round * 4 + i);
                for (uint32_t i = 0; i < 4; i++)
                        rank_release(&rank, &held[(i * 3 + round) % 4]);
        }
        rank_leave(&rank);
        serving_stop(&serving);
}
END_TEST

/* Starved of tasks, with many jobs at once: all must get through. */
START_TEST(many_streams_share_two_tasks) {
        enum {
                N = 8
        };
        struct rank ranks[N];
        char names[N][8];

        serving_start(&serving,
                      &(struct serving_options){ .n_samples = 40, .n_classes = 4, .n_tasks = 2, .reader = "threads" });
        for (uint32_t i = 0; i < N; i++) {
                snprintf(names[i], sizeof(names[i]), "job-%u", i);
                rank_attach(&ranks[i], &serving,
                            &(struct rank_options){
                                    .job = names[i], .world = 1, .batch_size = 3 + i, .seed = i, .shuffle = true });
        }
        for (uint64_t epoch = 0; epoch < 3; epoch++)
                for (uint32_t i = 0; i < N; i++)
                        rank_eat_epoch(&ranks[i], epoch);
        for (uint32_t i = 0; i < N; i++)
                rank_leave(&ranks[i]);
        serving_stop(&serving);
}
END_TEST

/* ---- elsewhere ----------------------------------------------------------------------------------------------- */

START_TEST(a_seek_goes_on_elsewhere_and_back) {
        struct taken taken;
        struct rank rank;

        serving_start(&serving, &(struct serving_options){ .n_samples = 50, .n_classes = 5, .n_tasks = 3 });
        rank_attach(&rank, &serving,
                    &(struct rank_options){ .world = 1, .batch_size = 4, .shuffle = true, .n_epochs = 3 });
        for (uint32_t i = 0; i < 60; i++) {
                uint64_t epoch = i * 7 % 5, step = i * 5 % rank.feed->whole.n_batches; /* past the last epoch, too */

                rank_seek(&rank, &(struct cursor){ .epoch = epoch, .step = step });
                for (uint64_t n = 0; n < i % 3 && step < rank.feed->whole.n_batches; n++, step++) {
                        ck_assert_msg(rank_next(&rank, SOON_MS, &taken), "seek %u to epoch %llu step %llu", i,
                                      (unsigned long long)epoch, (unsigned long long)step);
                        rank_check(&rank, &taken, epoch, step);
                        rank_release(&rank, &taken);
                }
        }
        rank_seek(&rank, &(struct cursor){ .epoch = 2 });
        rank_eat_epoch(&rank, 2);
        ck_assert(!atomic_load(&rank.job->failed));
        rank_leave(&rank);
        serving_stop(&serving);
}
END_TEST

START_TEST(a_seek_behind_the_end_goes_on_with_the_next_epoch) {
        static const uint64_t STEPS[] = { 13, 14, UINT64_MAX };
        struct taken taken;
        struct rank rank;

        serving_start(&serving, &(struct serving_options){ .n_samples = 50, .n_classes = 5 });
        rank_attach(&rank, &serving,
                    &(struct rank_options){ .world = 1, .batch_size = 4, .shuffle = true, .n_epochs = 4 });
        for (size_t i = 0; i < ARRAY_LENGTH(STEPS); i++) {
                rank_seek(&rank, &(struct cursor){ .epoch = i, .step = STEPS[i] });
                rank_eat_epoch(&rank, i + 1);
        }
        rank_seek(&rank, &(struct cursor){ .epoch = 3, .step = 13 }); /* the last one */
        ck_assert(!rank_next(&rank, 50, &taken));
        rank_leave(&rank);
        serving_stop(&serving);
}
END_TEST

/* While the daemon stops, what is begun is completed and nothing else is begun, whatever the client asks for. */
START_TEST(a_draining_stream_begins_no_batch) {
        struct ring_counts counts;
        struct taken taken;
        struct rank rank;

        serving_start(&serving, &(struct serving_options){ .n_samples = 50, .n_classes = 5 });
        rank_attach(&rank, &serving, &(struct rank_options){ .world = 1, .batch_size = 4, .shuffle = true });
        ck_assert(rank_next(&rank, SOON_MS, &taken));
        rank_check(&rank, &taken, 0, 0);
        pipeline_drain(serving.pipeline, rank.feed);
        rank_release(&rank, &taken);
        for (uint32_t i = 0; i < SOON_MS; i++) {
                ring_count(rank.feed->ring, &counts);
                if (counts.n_filling == 0)
                        break;
                nap_ms(1);
        }
        ck_assert_uint_eq(counts.n_filling, 0);
        for (uint64_t step = 1; rank_next(&rank, 100, &taken); step++) {
                ck_assert_uint_lt(step, 6);
                rank_check(&rank, &taken, 0, step);
                rank_release(&rank, &taken);
        }
        rank_seek(&rank, &(struct cursor){ .epoch = 1 });
        ck_assert(!rank_next(&rank, 100, &taken));
        rank_leave(&rank);
        serving_stop(&serving);
}
END_TEST

/* ---- leaving ------------------------------------------------------------------------------------------------- */

/* Again and again, after none, one or some of its samples have come back. */
START_TEST(a_rank_may_leave_while_its_samples_are_under_way) {
        struct rank_options stays = { .job = "stays", .world = 1, .batch_size = 4, .shuffle = true };
        struct taken taken;
        struct rank staying;
        uint64_t step = 0;

        serving_start(&serving,
                      &(struct serving_options){
                              .n_samples = 60, .n_classes = 5, .n_tasks = 6, .reader = _i ? "threads" : "auto" });
        rank_attach(&staying, &serving, &stays);
        for (uint32_t i = 0; i < 400; i++) {
                struct rank rank;

                rank_attach(&rank, &serving,
                            &(struct rank_options){ .job = "goes",
                                                    .world = 1,
                                                    .batch_size = 1 + i % 9,
                                                    .n_slots = 2 + i % 3,
                                                    .seed = i,
                                                    .shuffle = true });
                for (uint32_t n = 0; n < i % 4; n++) {
                        ck_assert(rank_next(&rank, SOON_MS, &taken));
                        rank_check(&rank, &taken, 0, n);
                        rank_release(&rank, &taken);
                }
                if (i % 5 == 1)
                        pipeline_seek(serving.pipeline, rank.feed, &(struct cursor){ .epoch = i });
                rank_leave(&rank);

                if (i % 10 == 0) { /* nobody else notices */
                        ck_assert(rank_next(&staying, SOON_MS, &taken));
                        rank_check(&staying, &taken, step / staying.feed->whole.n_batches,
                                   step % staying.feed->whole.n_batches);
                        rank_release(&staying, &taken);
                        step++;
                }
        }
        rank_leave(&staying);
        serving_stop(&serving);
}
END_TEST

/* Its client may go on to another daemon and take what this one published, to the last batch. */
START_TEST(what_is_published_for_a_rank_that_is_removed_is_whole) {
        uint64_t n_published = 0;

        serving_start(&serving, &(struct serving_options){ .n_samples = 120, .n_classes = 5, .n_tasks = 16 });
        for (uint32_t i = 0; i < ROUNDS; i++) {
                struct taken taken;
                struct rank rank;
                uint64_t step = 0;

                rank_attach(&rank, &serving,
                            &(struct rank_options){ .world = 1, .batch_size = 12, .seed = i, .shuffle = true });
                for (; step < i % 3; step++) {
                        ck_assert(rank_next(&rank, SOON_MS, &taken));
                        rank_check(&rank, &taken, 0, step);
                        rank_release(&rank, &taken);
                }
                usleep(i % 7 * 100);
                rank_remove(&rank);
                serving_settle(&serving);
                for (; rank_next(&rank, 0, &taken); step++)
                        rank_check(&rank, &taken, 0, step);
                n_published += step;
                rank_forget(&rank);
        }
        ck_assert_uint_gt(n_published, ROUNDS);
        serving_stop(&serving);
}
END_TEST

static void *touch_main(void *userdata) {
        struct rank *rank = userdata;

        pipeline_touch_feed(serving.pipeline, rank->feed);
        return NULL;
}

/* Its memory is still being touched when it leaves: it goes when that is done. */
START_TEST(a_rank_may_leave_while_its_memory_is_being_touched) {
        serving_start(&serving, &(struct serving_options){ .n_samples = 30, .n_classes = 2 });
        for (uint32_t i = 0; i < 60; i++) {
                struct taken taken;
                struct rank rank;
                pthread_t thread;

                ck_assert_int_eq(rank_make(&rank, &serving,
                                           &(struct rank_options){ .world = 1,
                                                                   .batch_size = 4,
                                                                   .n_slots = 64,
                                                                   .pipeline = "resize(256) center_crop(224)" },
                                           NULL),
                                 0);
                pipeline_add(serving.pipeline, rank.feed);
                ck_assert_int_eq(pthread_create(&thread, NULL, touch_main, &rank), 0);
                for (uint32_t n = 0; n < i % 3; n++) {
                        ck_assert(rank_next(&rank, SOON_MS, &taken));
                        ck_assert_uint_eq(taken.record->step, n);
                        rank_release(&rank, &taken);
                }
                rank_leave(&rank);
                pthread_join(thread, NULL);
        }
        serving_stop(&serving);
}
END_TEST

START_TEST(hundreds_of_epochs_leave_no_more_memory_in_use) {
        uint64_t most_early = 0, most_late = 0;
        struct rank rank;

        serving_start(&serving, &(struct serving_options){ .n_samples = 7, .n_classes = 2 });
        rank_attach(&rank, &serving, &(struct rank_options){ .world = 1, .batch_size = 2, .shuffle = true });
        for (uint64_t epoch = 0; epoch < 300; epoch++) {
                uint64_t *most = epoch < 30 ? &most_early : &most_late, used;

                rank_eat_epoch(&rank, epoch);
                used = budget_used(&serving.budget);
                if (used > *most)
                        *most = used;
        }
        ck_assert_uint_le(most_late, most_early + 7 * 4); /* a table more or less that is on its way out */
        rank_leave(&rank);
        serving_stop(&serving);
}
END_TEST

/* ---- memory -------------------------------------------------------------------------------------------------- */

static void take_all_memory(uint64_t but, uint64_t *ret_taken) {
        *ret_taken = serving.budget.limit_bytes - budget_used(&serving.budget) - but;
        ck_assert_int_eq(budget_reserve(&serving.budget, *ret_taken, "the test", NULL), 0);
}

/* There was room for it when it attached; that others take the rest must not end it. */
START_TEST(a_rank_that_runs_goes_on_when_all_memory_is_taken) {
        struct rank rank;
        struct why why;
        uint64_t taken;

        serving_start(&serving, &(struct serving_options){ .n_samples = 500, .n_classes = 2 });
        ck_assert_int_eq(rank_make(&rank, &serving,
                                   &(struct rank_options){ .world = 1, .batch_size = 16, .shuffle = true }, &why),
                         0);
        take_all_memory(0, &taken);
        rank_add(&rank);
        for (uint64_t epoch = 0; epoch < 8; epoch++)
                rank_eat_epoch(&rank, epoch);
        rank_leave(&rank);
        budget_release(&serving.budget, taken);
        serving_stop(&serving);
}
END_TEST

/* One rank has not begun while the other is epochs ahead: neither waits for the other's client, whatever memory there
 * is. */
START_TEST(ranks_far_apart_share_the_memory_of_two_orders) {
        struct rank_options options = { .world = 2, .batch_size = 8, .n_slots = 2, .shuffle = true };
        struct rank ranks[2];
        uint64_t taken;

        serving_start(&serving, &(struct serving_options){ .n_samples = 500, .n_classes = 2 });
        for (uint32_t i = 0; i < 2; i++) {
                options.rank = i;
                ck_assert_int_eq(rank_make(&ranks[i], &serving, &options, NULL), 0);
        }
        take_all_memory(0, &taken);
        rank_add(&ranks[0]);
        rank_add(&ranks[1]);
        for (uint64_t epoch = 0; epoch < 4; epoch++)
                rank_eat_epoch(&ranks[0], epoch);
        for (uint64_t epoch = 0; epoch < 3; epoch++)
                rank_eat_epoch(&ranks[1], epoch);
        rank_eat_epoch(&ranks[0], 4);
        rank_eat_epoch(&ranks[1], 3);
        rank_leave(&ranks[0]);
        rank_leave(&ranks[1]);
        budget_release(&serving.budget, taken);
        serving_stop(&serving);
}
END_TEST

struct apart {
        struct rank *rank;
        uint64_t n_epochs;
        pthread_t thread;
};

static void *eat_main(void *userdata) {
        struct apart *apart = userdata;

        for (uint64_t i = 0; i < apart->n_epochs; i++)
                rank_eat_epoch(apart->rank, apart->rank->options.first_epoch + i);
        return NULL;
}

/* Each in an epoch of its own, all of them hungry: they take turns with two tables. */
START_TEST(four_ranks_in_four_epochs_all_come_to_their_end) {
        struct apart apart[4];
        struct rank ranks[4];
        uint64_t taken;

        serving_start(&serving, &(struct serving_options){ .n_samples = 400, .n_classes = 2, .n_workers = 3 });
        for (uint32_t i = 0; i < 4; i++) {
                struct rank_options options = {
                        .world = 4, .rank = i, .batch_size = 5, .shuffle = true, .first_epoch = i * 3
                };

                ck_assert_int_eq(rank_make(&ranks[i], &serving, &options, NULL), 0);
        }
        take_all_memory(0, &taken);
        for (uint32_t i = 0; i < 4; i++) {
                apart[i] = (struct apart){ .rank = &ranks[i], .n_epochs = 6 };
                rank_add(&ranks[i]);
                ck_assert_int_eq(pthread_create(&apart[i].thread, NULL, eat_main, &apart[i]), 0);
        }
        for (uint32_t i = 0; i < 4; i++)
                pthread_join(apart[i].thread, NULL);
        for (uint32_t i = 0; i < 4; i++)
                rank_leave(&ranks[i]);
        budget_release(&serving.budget, taken);
        serving_stop(&serving);
}
END_TEST

START_TEST(a_ring_that_does_not_fit_is_refused_and_leaves_nothing) {
        struct rank_options options = {
                .job = "large", .world = 1, .batch_size = 4096, .n_slots = 64, .pipeline = "random_resized_crop(224)"
        };
        struct rank rank, running;
        struct why why;

        serving_start(&serving, &(struct serving_options){ .n_samples = 20, .n_classes = 2 });
        rank_attach(&running, &serving, &(struct rank_options){ .world = 1, .batch_size = 4 });
        rank_eat_epoch(&running, 0);
        ck_assert_int_eq(rank_make(&rank, &serving, &options, &why), -ENOMEM);
        ck_assert_ptr_nonnull(strstr(why.text, "memory_limit"));
        options.batch_size = DLP_BATCH_MAX;
        options.pipeline = "center_crop(16384)";
        ck_assert_int_eq(rank_make(&rank, &serving, &options, &why), -EOVERFLOW);
        ck_assert_ptr_nonnull(strstr(why.text, "batch_size"));
        rank_eat_epoch(&running, 1);
        rank_leave(&running);
        serving_stop(&serving);
}
END_TEST

/* A trainer closes one loader and opens the next. The kernel needs milliseconds for the pages of the first, which the
 * sweeper gives back. */
START_TEST(a_ring_waits_for_the_memory_of_one_that_a_client_has_let_go_of) {
        const struct rank_options options = {
                .world = 1, .batch_size = 64, .n_slots = 8, .pipeline = "center_crop(256)"
        };
        struct rank rank;

        serving_start(&serving,
                      &(struct serving_options){ .n_samples = 20, .n_classes = 2, .memory_limit = 192ull << 20 });
        rank_attach(&rank, &serving, &options);
        for (int i = 0; i < 2; i++) {
                for (uint64_t at = 0; at < rank.payload_bytes; at += 4096)
                        (void)!*(volatile const uint8_t *)(rank.payload + at);
                rank_remove(&rank);
                serving_settle(&serving);
                while (sweeper_n_waiting() > 0)
                        nap_ms(1);
                ck_assert_uint_gt(budget_used(&serving.budget), serving.budget.limit_bytes / 2);
                rank_forget(&rank);
                rank_attach(&rank, &serving, &options);
        }
        rank_leave(&rank);
        serving_stop(&serving);
}
END_TEST

/* ---- damage -------------------------------------------------------------------------------------------------- */

static const uint32_t DAMAGED[] = { 3, 4, 17 };

static bool is_damaged(uint64_t index) {
        for (size_t i = 0; i < ARRAY_LENGTH(DAMAGED); i++)
                if (DAMAGED[i] == index)
                        return true;
        return false;
}

static void damage(struct serving_options *options, const struct tree *tree) {
        char path[64];

        for (size_t i = 0; i < ARRAY_LENGTH(DAMAGED); i++) {
                serving_path(options, DAMAGED[i], path);
                write_bytes(tree, path, "no picture", 10);
        }
}

/* The next good one of the order: whatever the world, the batch size and who decodes it. */
static uint64_t expected_substitute(const struct rank *rank, uint64_t epoch, uint64_t idx_sample) {
        uint64_t n = rank->serving->options.n_samples;
        uint64_t position = (idx_sample * rank->options.world + rank->options.rank) % n;
        struct rank alone = *rank;

        alone.options.world = 1;
        alone.options.rank = 0;
        for (uint64_t k = 0; k < n; k++) {
                uint64_t index = expected_index(&alone, epoch, (position + k) % n);

                if (!is_damaged(index))
                        return index;
        }
        return UINT64_MAX;
}

static void check_substituted(const struct rank *rank, const struct taken *taken, uint64_t *n_substituted) {
        uint32_t n_here = 0;

        ck_assert_uint_eq(taken->record->status, DLP_BATCH_OK);
        for (uint32_t i = 0; i < taken->record->n_samples; i++) {
                uint64_t idx = taken->record->step * rank->options.batch_size + i;
                uint64_t index = expected_index(rank, taken->record->epoch, idx), served = index;

                ck_assert_int_eq(taken->columns.indices[i], (int64_t)index);
                if (is_damaged(index)) {
                        char named[32];

                        snprintf(named, sizeof(named), "sample %llu ", (unsigned long long)index);
                        served = expected_substitute(rank, taken->record->epoch, idx);
                        ck_assert_int_eq(taken->columns.substitutes[i], (int64_t)served);
                        ck_assert_int_ge(taken->columns.idx_errors[i], 0);
                        ck_assert_ptr_nonnull(strstr(
                                dlp_error_text(rank->control, taken->idx_slot, (uint32_t)taken->columns.idx_errors[i]),
                                named));
                        n_here++;
                } else {
                        ck_assert_int_eq(taken->columns.substitutes[i], -1);
                }
                check_picture(taken, i, (uint32_t)served);
        }
        ck_assert_uint_eq(taken->record->n_errors, n_here);
        *n_substituted += n_here;
}

START_TEST(substitutes_follow_the_order_alone) {
        static const uint32_t SHAPES[][2] = { { 1, 40 }, { 1, 1 }, { 1, 7 }, { 2, 5 }, { 3, 4 } }; /* world, batch */
        struct rank_options options = { .world = SHAPES[_i][0],
                                        .batch_size = SHAPES[_i][1],
                                        .shuffle = true,
                                        .seed = 3,
                                        .on_error = ON_ERROR_SUBSTITUTE };
        uint64_t n_substituted = 0;
        struct taken taken;
        struct rank rank;

        serving_start(&serving, &(struct serving_options){ .n_samples = 40, .n_classes = 2, .spoil = damage });
        for (options.rank = 0; options.rank < options.world; options.rank++) {
                rank_attach(&rank, &serving, &options);
                for (uint64_t epoch = 0; epoch < 4; epoch++)
                        for (uint64_t step = 0; step < rank.feed->whole.n_batches; step++) {
                                ck_assert(rank_next(&rank, SOON_MS, &taken));
                                ck_assert_uint_eq(taken.record->step, step);
                                check_substituted(&rank, &taken, &n_substituted);
                                rank_release(&rank, &taken);
                        }
                rank_leave(&rank);
        }
        ck_assert_uint_ge(n_substituted, 12);
        serving_stop(&serving);
}
END_TEST

static void damage_all(struct serving_options *options, const struct tree *tree) {
        char path[64];

        for (uint32_t i = 0; i < options->n_samples; i++) {
                serving_path(options, i, path);
                write_bytes(tree, path, "no picture", 10);
        }
}

START_TEST(a_dataset_without_a_good_sample_ends_the_job) {
        struct taken taken;
        struct rank rank;

        serving_start(&serving, &(struct serving_options){ .n_samples = 9, .n_classes = 1, .spoil = damage_all });
        rank_attach(&rank, &serving,
                    &(struct rank_options){ .world = 1, .batch_size = 2, .on_error = ON_ERROR_SUBSTITUTE });
        ck_assert(rank_next(&rank, SOON_MS, &taken));
        ck_assert_uint_eq(taken.record->status, DLP_BATCH_FAILED);
        ck_assert_ptr_nonnull(strstr(taken.record->text, "no good sample found"));
        rank_leave(&rank);
        serving_stop(&serving);
}
END_TEST

/* on_error = fail: the rank that meets it is told in its turn, and so is the other, which holds all its slots. */
START_TEST(a_jobs_failure_reaches_each_rank_in_its_turn) {
        struct rank_options options = { .world = 2, .batch_size = 2 };
        struct taken taken;
        struct rank even, odd;

        serving_start(&serving, &(struct serving_options){ .n_samples = 40, .n_classes = 2, .spoil = damage });
        options.rank = 0;
        rank_attach(&even, &serving, &options); /* meets sample 4 in its step 1 */
        for (uint32_t i = 0; i < 1; i++) {
                ck_assert(rank_next(&even, SOON_MS, &taken));
                rank_check(&even, &taken, 0, i);
                rank_release(&even, &taken);
        }
        ck_assert(rank_next(&even, SOON_MS, &taken));
        ck_assert_uint_eq(taken.record->status, DLP_BATCH_FAILED);
        ck_assert_uint_eq(taken.record->n_samples, 0);
        ck_assert_ptr_nonnull(strstr(taken.record->text, "photos: sample 4 (class_000/00000004.png)"));
        rank_leave(&even);

        options.job = "both";
        options.seed = 1;
        ck_assert_int_eq(rank_make(&even, &serving, &options, NULL), 0);
        options.rank = 1;
        ck_assert_int_eq(rank_make(&odd, &serving, &options, NULL), 0); /* meets sample 3 in its step 0 */
        rank_add(&even);
        rank_add(&odd);
        /* Neither learns of it before its own damaged sample or the other's failure has its turn. */
        while (rank_next(&odd, SOON_MS, &taken) && taken.record->status == DLP_BATCH_OK)
                rank_release(&odd, &taken);
        ck_assert_uint_eq(taken.record->status, DLP_BATCH_FAILED);
        ck_assert_ptr_nonnull(strstr(taken.record->text, "photos: sample "));
        while (rank_next(&even, SOON_MS, &taken) && taken.record->status == DLP_BATCH_OK)
                rank_release(&even, &taken);
        ck_assert_uint_eq(taken.record->status, DLP_BATCH_FAILED);
        ck_assert_ptr_nonnull(strstr(taken.record->text, "photos: sample "));

        /* Who asks again is told again. */
        rank_release(&even, &taken);
        rank_seek(&even, &(struct cursor){ .epoch = 1 });
        ck_assert(rank_next(&even, SOON_MS, &taken));
        ck_assert_uint_eq(taken.record->status, DLP_BATCH_FAILED);
        rank_leave(&even);
        rank_leave(&odd);
        serving_stop(&serving);
}
END_TEST

/* The ring of the rank that has to be told is full: it is told when it gives a slot back. */
START_TEST(a_rank_whose_ring_is_full_is_told_when_it_gives_a_slot_back) {
        struct rank_options options = { .world = 1, .batch_size = 2, .n_slots = 2 };
        struct taken held[2], taken;
        struct rank rank;

        serving_start(&serving, &(struct serving_options){ .n_samples = 40, .n_classes = 2 });
        rank_attach(&rank, &serving, &options);
        ck_assert(rank_next(&rank, SOON_MS, &held[0]));
        ck_assert(rank_next(&rank, SOON_MS, &held[1]));
        ck_assert(job_fail(rank.job, EBADMSG, "another rank's reason"));
        ck_assert(!rank_next(&rank, 50, &taken));
        rank_check(&rank, &held[0], 0, 0);
        rank_check(&rank, &held[1], 0, 1);
        rank_release(&rank, &held[0]);
        ck_assert(rank_next(&rank, SOON_MS, &taken));
        ck_assert_uint_eq(taken.record->status, DLP_BATCH_FAILED);
        ck_assert_str_eq(taken.record->text, "another rank's reason");
        rank_leave(&rank);
        serving_stop(&serving);
}
END_TEST

/* A progressive JPEG whose header claims this size: its coefficients are kept, six bytes a pixel, however small the
 * crop. */
static void write_claim(struct serving_options *options, const struct tree *tree, uint32_t idx, uint16_t side) {
        static const struct jpeg_layout layout = { .colours = JPEG_YCC, .progressive = true };
        char path[64], *full = NULL;
        uint8_t *bytes, *size;
        size_t n_bytes;
        FILE *file;

        bytes = jpeg_make(&layout, 16, 16, idx, &n_bytes);
        size = memmem(bytes, n_bytes, "\xff\xc2", 2);
        size[5] = size[7] = (uint8_t)(side >> 8);
        size[6] = size[8] = (uint8_t)side;
        serving_path(options, idx, path);
        ck_assert_int_gt(asprintf(&full, "%s/%s", tree->root, path), 0);
        file = fopen(full, "w");
        ck_assert(file && fwrite(bytes, 1, n_bytes, file) == n_bytes);
        fclose(file);
        free(full);
        free(bytes);
}

static void make_large(struct serving_options *options, const struct tree *tree) {
        write_claim(options, tree, 2, 1600); /* 15 MiB to decode */
        write_claim(options, tree, 7, 4400); /* 111 MiB: above a quarter of the limit, whoever else is there */
}

/* What large pictures take was reserved before anybody came. So whose memory is all taken is served what others are. */
START_TEST(a_lack_of_memory_changes_nothing_for_who_was_admitted) {
        struct rank_options options = { .world = 1, .batch_size = 5, .on_error = ON_ERROR_SUBSTITUTE };
        struct taken taken;
        struct rank rank;
        uint64_t used;

        for (uint32_t is_full = 0; is_full < 2; is_full++) {
                serving_start(&serving, &(struct serving_options){ .n_samples = 10,
                                                                   .n_classes = 1,
                                                                   .memory_limit = 100 << 20,
                                                                   .spoil = make_large });
                ck_assert_int_eq(rank_make(&rank, &serving, &options, NULL), 0);
                take_all_memory(is_full ? 0 : 10 << 20, &used);
                rank_add(&rank);
                ck_assert(rank_next(&rank, SOON_MS, &taken));
                ck_assert_msg(taken.record->status == DLP_BATCH_OK, "%s", taken.record->text);
                ck_assert_uint_eq(taken.record->n_errors, 0);
                ck_assert(rank_next(&rank, SOON_MS, &taken));
                ck_assert_msg(taken.record->status == DLP_BATCH_OK, "%s", taken.record->text);
                ck_assert_uint_eq(taken.record->n_errors, 1);
                ck_assert_int_eq(taken.columns.indices[2], 7);
                ck_assert_int_eq(taken.columns.substitutes[2], 8);
                check_picture(&taken, 2, 8);
                rank_leave(&rank);
                budget_release(&serving.budget, used);
                serving_stop(&serving);
        }
}
END_TEST

static void make_all_large(struct serving_options *options, const struct tree *tree) {
        for (uint32_t i = 0; i < options->n_samples; i += 2)
                write_claim(options, tree, i, i % 4 == 0 ? 1900 : 1300); /* 21 and 10 MiB of a pool of 25 */
}

/* Eight workers and room for one or two: the others wait in line, and small pictures pass them. */
START_TEST(large_pictures_wait_for_each_others_memory_and_none_fails) {
        struct rank_options options = { .world = 1, .batch_size = 8 };
        uint64_t most = 0, used;
        struct taken taken;
        struct rank rank;

        serving_start(&serving, &(struct serving_options){ .n_samples = 48,
                                                           .n_classes = 1,
                                                           .n_workers = 8,
                                                           .memory_limit = 100 << 20,
                                                           .spoil = make_all_large });
        ck_assert_int_eq(rank_make(&rank, &serving, &options, NULL), 0);
        take_all_memory(0, &used);
        rank_add(&rank);
        for (uint32_t i = 0; i < 3 * 6; i++) {
                ck_assert(rank_next(&rank, SOON_MS, &taken));
                ck_assert_msg(taken.record->status == DLP_BATCH_OK, "%s", taken.record->text);
                ck_assert_uint_eq(taken.record->n_samples, 8);
                rank_release(&rank, &taken);
                most = budget_used(&serving.budget) > most ? budget_used(&serving.budget) : most;
        }
        ck_assert_uint_eq(most, serving.budget.limit_bytes);
        ck_assert_uint_gt(counter_get(&pipeline_counters(serving.pipeline)->n_scratch_waits), 0);
        rank_leave(&rank);
        budget_release(&serving.budget, used);
        serving_stop(&serving);
}
END_TEST

/* It leaves while its samples stand in line: they pass through and the memory is there for the next. */
START_TEST(a_rank_may_leave_while_its_pictures_wait_for_memory) {
        struct rank_options options = { .world = 1, .batch_size = 8 };
        struct taken taken;
        struct rank rank;

        serving_start(&serving, &(struct serving_options){ .n_samples = 48,
                                                           .n_classes = 1,
                                                           .n_workers = 8,
                                                           .memory_limit = 100 << 20,
                                                           .spoil = make_all_large });
        for (uint32_t i = 0; i < 20; i++) {
                ck_assert_int_eq(rank_make(&rank, &serving, &options, NULL), 0);
                rank_add(&rank);
                usleep(i * 1000);
                rank_leave(&rank);
        }
        rank_attach(&rank, &serving, &options);
        ck_assert(rank_next(&rank, SOON_MS, &taken));
        ck_assert_msg(taken.record->status == DLP_BATCH_OK, "%s", taken.record->text);
        rank_leave(&rank);
        serving_stop(&serving);
}
END_TEST

static void cut_one_of_another_size(struct serving_options *options, const struct tree *tree) {
        char path[64];

        serving_path(options, 5, path);
        write_picture(tree, path, 5, 64, 64);
        cut_file(tree, path, 40);
}

/* Its header was believed; its size must not stay when it turns out to be damaged. */
START_TEST(a_damaged_picture_does_not_decide_the_size_of_its_batch) {
        struct taken taken;
        struct rank rank;

        serving_start(&serving,
                      &(struct serving_options){ .n_samples = 8, .n_classes = 1, .spoil = cut_one_of_another_size });
        rank_attach(&rank, &serving,
                    &(struct rank_options){
                            .world = 1, .batch_size = 1, .pipeline = "decode", .on_error = ON_ERROR_SUBSTITUTE });
        for (uint32_t i = 0; i < 8; i++) {
                ck_assert(rank_next(&rank, SOON_MS, &taken));
                ck_assert_msg(taken.record->status == DLP_BATCH_OK, "%s", taken.record->text);
                ck_assert_int_eq(taken.columns.substitutes[0], i == 5 ? 6 : -1);
                ck_assert_int_eq(taken.record->tensors[0].shape[1], PICTURE_SIDE);
                check_picture(&taken, 0, i == 5 ? 6 : i);
                rank_release(&rank, &taken);
        }
        rank_leave(&rank);
        serving_stop(&serving);
}
END_TEST

START_TEST(pictures_of_different_sizes_in_one_batch_are_refused_with_both_sizes) {
        struct taken taken;
        struct rank rank;
        char path[64];

        serving_start(&serving, &(struct serving_options){ .n_samples = 4, .n_classes = 1 });
        serving_path(&serving.options, 2, path);
        write_picture(&serving.tree, path, 2, PICTURE_SIDE, PICTURE_SIDE);
        rank_attach(&rank, &serving, &(struct rank_options){ .world = 1, .batch_size = 4, .pipeline = "decode" });
        ck_assert(rank_next(&rank, SOON_MS, &taken));
        rank_check(&rank, &taken, 0, 0);
        rank_leave(&rank);
        serving_stop(&serving);
}
END_TEST

/* ---- encoded bytes ------------------------------------------------------------------------------------------- */

static void check_raw(const struct rank *rank, const struct taken *taken, uint32_t place) {
        const struct dlp_place *where = &dlp_places(rank->control, taken->idx_slot, 0)[place];
        const uint8_t *slot = rank->payload + dlp_slot_offset(rank->control, taken->idx_slot);
        char path[64], bytes[4096];
        ssize_t n;
        int fd;

        serving_path(&rank->serving->options, (uint32_t)taken->columns.indices[place], path);
        fd = openat(rank->serving->tree.fd, path, O_RDONLY | O_CLOEXEC);
        n = read(fd, bytes, sizeof(bytes));
        close(fd);
        ck_assert_int_gt(n, 0);
        ck_assert_uint_eq(where->n_bytes, (uint64_t)n);
        ck_assert_uint_eq(where->offset % DLP_TENSOR_ALIGN, 0);
        ck_assert_uint_le(where->offset + where->n_bytes, rank->control->slot_bytes);
        ck_assert_mem_eq(slot + where->offset, bytes, (size_t)n);
}

START_TEST(raw_serves_the_files_as_they_are) {
        struct taken taken;
        struct rank rank;

        serving_start(&serving, &(struct serving_options){ .n_samples = 30, .n_classes = 3 });
        rank_attach(&rank, &serving,
                    &(struct rank_options){ .world = 2, .batch_size = 4, .pipeline = "raw", .shuffle = true });
        for (uint64_t n = 0; n < rank.feed->whole.n_batches * 3; n++) {
                ck_assert(rank_next(&rank, SOON_MS, &taken));
                ck_assert_msg(taken.record->status == DLP_BATCH_OK, "%s", taken.record->text);
                for (uint32_t i = 0; i < taken.record->n_samples; i++) {
                        uint64_t idx = taken.record->step * 4 + i;

                        ck_assert_int_eq(taken.columns.indices[i],
                                         (int64_t)expected_index(&rank, taken.record->epoch, idx));
                        check_raw(&rank, &taken, i);
                }
                rank_release(&rank, &taken);
        }
        rank_leave(&rank);
        serving_stop(&serving);
}
END_TEST

static void break_link(struct serving_options *options, const struct tree *tree) {
        char path[64];

        serving_path(options, 0, path);
        ck_assert_int_eq(unlinkat(tree->fd, path, 0), 0);
        tree_link(tree, path, "../../elsewhere");
}

/* The index could not know how long it is; it must not take the room of the others. */
START_TEST(a_file_that_appeared_larger_than_all_others_spoils_only_its_own_sample) {
        uint8_t *large = calloc(1, 100000);
        struct taken taken;
        struct rank rank;

        serving_start(&serving, &(struct serving_options){ .n_samples = 8, .n_classes = 1, .spoil = break_link });
        write_bytes(&serving.tree, "elsewhere", large, 100000);
        free(large);
        rank_attach(&rank, &serving,
                    &(struct rank_options){
                            .world = 1, .batch_size = 4, .pipeline = "raw", .on_error = ON_ERROR_SUBSTITUTE });
        ck_assert(rank_next(&rank, SOON_MS, &taken));
        ck_assert_msg(taken.record->status == DLP_BATCH_OK, "%s", taken.record->text);
        ck_assert_int_eq(taken.columns.substitutes[0], 1);
        for (uint32_t i = 1; i < 4; i++) {
                ck_assert_int_eq(taken.columns.substitutes[i], -1);
                check_raw(&rank, &taken, i);
        }
        rank_leave(&rank);
        serving_stop(&serving);
}
END_TEST

static void write_long(struct serving_options *options, const struct tree *tree, uint32_t idx, size_t n_bytes) {
        uint8_t *bytes = calloc(1, n_bytes);
        char path[64];

        serving_path(options, idx, path);
        memset(bytes, (int)idx + 1, n_bytes);
        write_bytes(tree, path, bytes, n_bytes);
        free(bytes);
}

static void make_long(struct serving_options *options, const struct tree *tree) {
        for (uint32_t i = 0; i < options->n_samples; i++)
                write_long(options, tree, i, 1000 + i * 10);
}

static void make_one_long(struct serving_options *options, const struct tree *tree) {
        write_long(options, tree, 5, 3000000);
}

static void make_one_wide(struct serving_options *options, const struct tree *tree) {
        char path[64];

        serving_path(options, 1, path);
        write_picture(tree, path, 1, 2000, 1000);
}

/* Its slots have room for whatever the dataset holds, whoever takes the rest of the memory meanwhile. */
START_TEST(a_raw_rank_that_was_admitted_needs_no_memory_later) {
        struct taken taken;
        struct rank rank;
        uint64_t used;

        serving_start(&serving, &(struct serving_options){ .n_samples = 300, .n_classes = 1, .spoil = make_long });
        ck_assert_int_eq(rank_make(&rank, &serving,
                                   &(struct rank_options){ .world = 1, .batch_size = 150, .pipeline = "raw" }, NULL),
                         0);
        take_all_memory(0, &used);
        rank_add(&rank);
        for (uint64_t n = 0; n < 2 * rank.feed->whole.n_batches; n++) {
                ck_assert(rank_next(&rank, SOON_MS, &taken));
                ck_assert_msg(taken.record->status == DLP_BATCH_OK, "%s", taken.record->text);
                for (uint32_t i = 0; i < taken.record->n_samples; i++)
                        check_raw(&rank, &taken, i);
                rank_release(&rank, &taken);
        }
        rank_leave(&rank);
        budget_release(&serving.budget, used);
        serving_stop(&serving);
}
END_TEST

static void make_huge(struct serving_options *options, const struct tree *tree) {
        for (uint32_t i = 0; i < options->n_samples; i++)
                write_long(options, tree, i, (300 + i * 50) << 10);
}

/* Buffers for a file or two at a time, and no more memory: the others wait for them. */
START_TEST(large_files_wait_for_each_other_and_none_fails) {
        struct taken taken;
        struct rank rank;
        uint64_t used;

        serving_start(&serving,
                      &(struct serving_options){
                              .n_samples = 40, .n_classes = 1, .memory_limit = 128 << 20, .spoil = make_huge });
        ck_assert_int_eq(rank_make(&rank, &serving,
                                   &(struct rank_options){ .world = 1, .batch_size = 5, .pipeline = "raw" }, NULL),
                         0);
        take_all_memory(0, &used);
        rank_add(&rank);
        for (uint64_t n = 0; n < 3 * rank.feed->whole.n_batches; n++) {
                ck_assert(rank_next(&rank, SOON_MS, &taken));
                ck_assert_msg(taken.record->status == DLP_BATCH_OK, "%s", taken.record->text);
                ck_assert_uint_eq(taken.record->n_samples, 5);
                rank_release(&rank, &taken);
        }
        rank_leave(&rank);
        budget_release(&serving.budget, used);
        serving_stop(&serving);
}
END_TEST

/* A file of a quarter of the limit could be read by nobody: said at once, or a damaged sample if damage is allowed. */
START_TEST(a_file_that_no_buffer_can_hold_is_refused_or_left_out) {
        struct rank_options options = { .world = 1, .batch_size = 5, .pipeline = "center_crop(8)" };
        struct taken taken;
        struct rank rank;
        struct why why;

        serving_start(&serving,
                      &(struct serving_options){
                              .n_samples = 10, .n_classes = 1, .memory_limit = 8 << 20, .spoil = make_one_long });
        ck_assert_int_eq(rank_make(&rank, &serving, &options, &why), -EFBIG);
        ck_assert_ptr_nonnull(strstr(why.text, "raise memory_limit"));
        options.on_error = ON_ERROR_SKIP;
        rank_attach(&rank, &serving, &options);
        ck_assert(rank_next(&rank, SOON_MS, &taken));
        ck_assert_uint_eq(taken.record->n_samples, 5);
        ck_assert(rank_next(&rank, SOON_MS, &taken));
        ck_assert_uint_eq(taken.record->n_samples, 4);
        rank_leave(&rank);
        serving_stop(&serving);
}
END_TEST

/* The room of a slot is that of the longest files together, not of the longest one times their number. */
START_TEST(a_raw_ring_pays_for_the_longest_files_of_a_batch) {
        struct rank_options options = { .world = 1, .batch_size = 10, .pipeline = "raw", .n_slots = 2 };
        struct rank rank;

        serving_start(&serving, &(struct serving_options){ .n_samples = 20, .n_classes = 1, .spoil = make_one_long });
        ck_assert_int_eq(rank_make(&rank, &serving, &options, NULL), 0);
        ck_assert_uint_ge(rank.feed->layout.slot_bytes, 3000000);
        ck_assert_uint_lt(rank.feed->layout.slot_bytes, 3100000);
        rank_add(&rank);
        rank_leave(&rank);
        options.on_error = ON_ERROR_SUBSTITUTE; /* one file may then stand in a batch more than once */
        ck_assert_int_eq(rank_make(&rank, &serving, &options, NULL), 0);
        ck_assert_uint_ge(rank.feed->layout.slot_bytes, 30000000);
        rank_add(&rank);
        rank_leave(&rank);
        serving_stop(&serving);
}
END_TEST

/* Pictures of any size share what a ring of them may take; that is a cap which others do not change. */
START_TEST(a_picture_above_the_room_of_its_slot_is_damage_whatever_else_runs) {
        struct rank_options options = { .world = 1, .batch_size = 1, .pipeline = "decode", .on_error = ON_ERROR_SKIP };
        uint64_t used;

        for (uint32_t is_full = 0; is_full < 2; is_full++) {
                struct taken taken;
                struct rank rank;

                serving_start(&serving, &(struct serving_options){ .n_samples = 3,
                                                                   .n_classes = 1,
                                                                   .memory_limit = 64 << 20,
                                                                   .spoil = make_one_wide });
                ck_assert_int_eq(rank_make(&rank, &serving, &options, NULL), 0);
                take_all_memory(is_full ? 0 : budget_used(&serving.budget) / 4, &used);
                rank_add(&rank);
                for (uint32_t i = 0; i < 3; i++) {
                        ck_assert(rank_next(&rank, SOON_MS, &taken));
                        ck_assert_msg(taken.record->status == DLP_BATCH_OK, "%s", taken.record->text);
                        ck_assert_uint_eq(taken.record->n_samples, i == 1 ? 0 : 1);
                        rank_release(&rank, &taken);
                }
                rank_leave(&rank);
                budget_release(&serving.budget, used);
                serving_stop(&serving);
        }
}
END_TEST

/* ---- hostile ------------------------------------------------------------------------------------------------- */

START_TEST(a_client_that_scribbles_is_reported_and_stands_still_alone) {
        struct rank_options options = { .world = 2, .batch_size = 2, .n_slots = 2 };
        struct taken taken;
        struct rank bad, good;
        uint64_t one = 1;

        serving_start(&serving, &(struct serving_options){ .n_samples = 40, .n_classes = 2 });
        rank_attach(&bad, &serving, &options);
        options.rank = 1;
        rank_attach(&good, &serving, &options);
        ck_assert(rank_next(&bad, SOON_MS, &taken));
        ck_assert(rank_next(&bad, SOON_MS, &taken));
        for (uint32_t i = 0; i < bad.payload_bytes && i < DLP_CLIENT_PAGE_BYTES; i++)
                bad.payload[i] = (uint8_t)(0x5a + i);
        ck_assert_int_eq(write(bad.release_fd, &one, sizeof(one)), sizeof(one));
        for (uint32_t i = 0; i < SOON_MS && atomic_load(&serving.n_broken) == 0; i++)
                nap_ms(1);
        ck_assert_uint_ge(atomic_load(&serving.n_broken), 1);
        ck_assert(atomic_load(&bad.feed->broken));
        rank_eat_epoch(&good, 0);
        rank_leave(&bad);
        rank_eat_epoch(&good, 1);
        rank_leave(&good);
        serving_stop(&serving);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("pipeline");
        TCase *order = tcase_create("order"), *life = tcase_create("life"), *wrong = tcase_create("wrong");
        SRunner *runner = srunner_create(suite);
        int n_failed;

        tcase_add_loop_test(order, each_rank_gets_its_samples_in_its_order, 0, (int)ARRAY_LENGTH(WORLDS));
        tcase_add_test(order, no_more_epochs_come_than_were_asked_for);
        tcase_add_test(order, a_rank_without_samples_is_served_nothing_and_hangs_nothing);
        tcase_add_test(order, a_slow_rank_does_not_hold_up_a_fast_one);
        tcase_add_test(order, a_sample_gives_way_to_other_users_once);
        tcase_add_test(order, batches_may_be_held_and_given_back_in_any_order);
        tcase_add_test(order, many_streams_share_two_tasks);
        tcase_add_test(order, raw_serves_the_files_as_they_are);
        tcase_add_test(order, a_raw_rank_that_was_admitted_needs_no_memory_later);
        tcase_add_test(order, large_files_wait_for_each_other_and_none_fails);
        tcase_add_test(order, a_file_that_no_buffer_can_hold_is_refused_or_left_out);
        tcase_add_test(order, a_raw_ring_pays_for_the_longest_files_of_a_batch);
        tcase_add_test(order, a_picture_above_the_room_of_its_slot_is_damage_whatever_else_runs);
        tcase_set_timeout(order, 180);
        suite_add_tcase(suite, order);

        tcase_add_test(life, a_seek_goes_on_elsewhere_and_back);
        tcase_add_test(life, a_seek_behind_the_end_goes_on_with_the_next_epoch);
        tcase_add_test(life, a_draining_stream_begins_no_batch);
        tcase_add_loop_test(life, a_rank_may_leave_while_its_samples_are_under_way, 0, 2);
        tcase_add_test(life, what_is_published_for_a_rank_that_is_removed_is_whole);
        tcase_add_test(life, a_rank_may_leave_while_its_memory_is_being_touched);
        tcase_add_test(life, hundreds_of_epochs_leave_no_more_memory_in_use);
        tcase_add_test(life, a_rank_that_runs_goes_on_when_all_memory_is_taken);
        tcase_add_test(life, ranks_far_apart_share_the_memory_of_two_orders);
        tcase_add_test(life, four_ranks_in_four_epochs_all_come_to_their_end);
        tcase_add_test(life, a_ring_that_does_not_fit_is_refused_and_leaves_nothing);
        tcase_add_test(life, a_ring_waits_for_the_memory_of_one_that_a_client_has_let_go_of);
        tcase_set_timeout(life, 180);
        suite_add_tcase(suite, life);

        tcase_add_loop_test(wrong, substitutes_follow_the_order_alone, 0, 5);
        tcase_add_test(wrong, a_dataset_without_a_good_sample_ends_the_job);
        tcase_add_test(wrong, a_jobs_failure_reaches_each_rank_in_its_turn);
        tcase_add_test(wrong, a_rank_whose_ring_is_full_is_told_when_it_gives_a_slot_back);
        tcase_add_test(wrong, a_lack_of_memory_changes_nothing_for_who_was_admitted);
        tcase_add_test(wrong, large_pictures_wait_for_each_others_memory_and_none_fails);
        tcase_add_test(wrong, a_rank_may_leave_while_its_pictures_wait_for_memory);
        tcase_add_test(wrong, a_damaged_picture_does_not_decide_the_size_of_its_batch);
        tcase_add_test(wrong, pictures_of_different_sizes_in_one_batch_are_refused_with_both_sizes);
        tcase_add_test(wrong, a_file_that_appeared_larger_than_all_others_spoils_only_its_own_sample);
        tcase_add_test(wrong, a_client_that_scribbles_is_reported_and_stands_still_alone);
        tcase_set_timeout(wrong, 180);
        suite_add_tcase(suite, wrong);

        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed != 0;
}
