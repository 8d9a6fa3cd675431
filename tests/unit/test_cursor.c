/* unit/test_cursor.c: a rank begins in the middle of an epoch: what is left is dealt out, each sample once, and the run
 * goes on as if it had never stopped. Through the whole pipeline; see tests/support/serving.h. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/serving.h"

#define N_SAMPLES 61u
#define SOON_MS   60000

static struct serving serving;

static void start(void) {
        serving_start(&serving, &(struct serving_options){ .n_samples = N_SAMPLES, .n_classes = 3 });
}

/* Counts the samples of an epoch that a rank still gets. */
static void count_epoch(struct rank *rank, uint64_t epoch, unsigned counts[N_SAMPLES]) {
        for (uint64_t step = rank->cursor.step; step < rank_batches(rank, epoch); step++) {
                struct taken taken;

                ck_assert(rank_next(rank, SOON_MS, &taken));
                rank_check(rank, &taken, epoch, step);
                for (uint32_t i = 0; i < taken.record->n_samples; i++)
                        counts[taken.columns.indices[i]]++;
                rank_release(rank, &taken);
        }
}

/* Of each kind one: { position, world, batch }. */
static const uint32_t RESUMES[][3] = { { 0, 3, 4 },  { 1, 1, 7 },  { 24, 2, 4 }, { 30, 4, 5 },
                                       { 59, 3, 2 }, { 60, 5, 1 }, { 61, 2, 3 } };

START_TEST(what_is_left_of_an_epoch_is_dealt_out_once_among_any_ranks) {
        const uint32_t position = RESUMES[_i][0], world = RESUMES[_i][1];
        unsigned counts[N_SAMPLES] = { 0 };

        start();
        for (uint32_t i = 0; i < world; i++) {
                struct rank_options options = { .world = world,
                                                .rank = i,
                                                .batch_size = RESUMES[_i][2],
                                                .seed = 9,
                                                .first_epoch = 4,
                                                .first_position = position,
                                                .shuffle = true,
                                                .partition = DLP_PARTITION_EXACT,
                                                .order = _i % 2 ? DLP_ORDER_TDPERM : DLP_ORDER_TORCH };
                struct rank rank, whole = { .serving = &serving, .options = options };

                rank_attach(&rank, &serving, &options);
                count_epoch(&rank, 4, counts);
                rank_eat_epoch(&rank, 5); /* which is a whole one again */
                rank_leave(&rank);

                whole.options.world = 1; /* those before the position were another run's */
                whole.options.rank = 0;
                for (uint64_t k = 0; i == 0 && k < position; k++)
                        counts[expected_index(&whole, 4, k)]++;
        }
        for (uint32_t i = 0; i < N_SAMPLES; i++)
                ck_assert_msg(counts[i] == 1, "sample %u came %u times", i, counts[i]);
        serving_stop(&serving);
}
END_TEST

START_TEST(padding_repeats_fewer_than_the_ranks_and_dropping_loses_fewer) {
        static const uint32_t POSITIONS[] = { 0, 10, 31, 58, 60, 61 };

        start();
        for (size_t k = 0; k < sizeof(POSITIONS) / sizeof(POSITIONS[0]); k++)
                for (unsigned drop = 0; drop < 2; drop++) {
                        unsigned counts[N_SAMPLES] = { 0 }, n_left = N_SAMPLES - POSITIONS[k], n_got = 0;

                        for (uint32_t i = 0; i < 4; i++) {
                                struct rank_options options = { .world = 4,
                                                                .rank = i,
                                                                .batch_size = 3,
                                                                .first_position = POSITIONS[k],
                                                                .shuffle = true,
                                                                .partition = drop ? DLP_PARTITION_DROP
                                                                                  : DLP_PARTITION_PAD };
                                struct rank rank;

                                rank_attach(&rank, &serving, &options);
                                count_epoch(&rank, 0, counts);
                                rank_leave(&rank);
                        }
                        for (uint32_t i = 0; i < N_SAMPLES; i++)
                                n_got += counts[i];
                        ck_assert_uint_eq(n_got, drop ? n_left / 4 * 4 : (n_left + 3) / 4 * 4);
                }
        serving_stop(&serving);
}
END_TEST

/* Batch k after a stop is batch stop + k of the run that did not stop, its padding included. */
START_TEST(at_the_same_world_and_batch_the_run_goes_on_as_if_it_had_never_stopped) {
        start();
        for (uint32_t stop = 0; stop < 7; stop++) {
                struct rank_options options = { .world = 3,
                                                .rank = stop % 3,
                                                .batch_size = 3,
                                                .shuffle = true,
                                                .first_position = stop * 9,
                                                .partition = _i };
                struct rank rank, whole;

                rank_attach(&rank, &serving, &options);
                whole = rank;
                whole.cursor = (struct cursor){ 0 };
                for (uint64_t step = stop; step < rank_batches(&whole, 0); step++) {
                        struct taken taken;

                        ck_assert(rank_next(&rank, SOON_MS, &taken));
                        ck_assert_uint_eq(taken.record->step, step - stop);
                        ck_assert_uint_eq(taken.record->epoch, 0);
                        for (uint32_t i = 0; i < taken.record->n_samples; i++)
                                ck_assert_int_eq(taken.columns.indices[i],
                                                 (int64_t)expected_index(&whole, 0, step * 3 + i));
                        ck_assert(step + 1 < rank_batches(&whole, 0) ||
                                  taken.record->n_samples == rank_samples(&whole, 0) - step * 3);
                        rank_release(&rank, &taken);
                }
                rank_eat_epoch(&rank, 1);
                rank_leave(&rank);
        }
        serving_stop(&serving);
}
END_TEST

START_TEST(a_cursor_has_a_step_behind_its_position) {
        struct rank_options options = { .world = 2,
                                        .rank = 1,
                                        .batch_size = 4,
                                        .shuffle = true,
                                        .first_epoch = 2,
                                        .first_position = 13,
                                        .first_step = 3 };
        struct rank rank;

        start();
        rank_attach(&rank, &serving, &options);
        rank_eat_epoch(&rank, 2);
        rank_eat_epoch(&rank, 3);
        rank_seek(&rank, &(struct cursor){ .epoch = 7, .position = 40, .step = 1 });
        rank_eat_epoch(&rank, 7);
        rank_eat_epoch(&rank, 8);
        rank_seek(&rank, &(struct cursor){ .epoch = 7, .position = 40, .step = 3 }); /* all that it has: the end */
        rank_eat_epoch(&rank, 8);
        rank_leave(&rank);
        serving_stop(&serving);
}
END_TEST

START_TEST(an_epoch_of_which_nothing_is_left_is_passed_over_unless_it_is_the_last) {
        struct rank_options options = {
                .world = 1, .batch_size = 7, .shuffle = true, .n_epochs = 2, .first_position = N_SAMPLES
        };
        struct taken taken;
        struct rank rank;

        start();
        rank_attach(&rank, &serving, &options);
        rank_eat_epoch(&rank, 1);
        ck_assert(!rank_next(&rank, 50, &taken));
        rank_seek(&rank, &(struct cursor){ .epoch = 0, .position = N_SAMPLES });
        rank_eat_epoch(&rank, 1);
        rank_seek(&rank, &(struct cursor){ .epoch = 1, .position = N_SAMPLES });
        ck_assert(!rank_next(&rank, 50, &taken));
        rank_leave(&rank);

        options.n_epochs = 1;
        rank_attach(&rank, &serving, &options);
        ck_assert(!rank_next(&rank, 50, &taken));
        rank_seek(&rank, &(struct cursor){ .epoch = 5 }); /* from where it can still go anywhere */
        rank_eat_epoch(&rank, 5);
        rank_leave(&rank);
        serving_stop(&serving);
}
END_TEST

/* With "exact", ranks may differ: one has a last sample, the other has none and goes on. */
START_TEST(a_rank_for_which_nothing_is_left_goes_on_while_another_has_a_last_sample) {
        start();
        for (uint32_t i = 0; i < 3; i++) {
                struct rank_options options = { .world = 3,
                                                .rank = i,
                                                .batch_size = 2,
                                                .shuffle = true,
                                                .first_position = N_SAMPLES - 1,
                                                .partition = DLP_PARTITION_EXACT };
                struct rank rank;

                rank_attach(&rank, &serving, &options);
                ck_assert_uint_eq(rank_batches(&rank, 0), i == 0);
                rank_eat_epoch(&rank, 0);
                rank_eat_epoch(&rank, 1);
                rank_leave(&rank);
        }
        serving_stop(&serving);
}
END_TEST

static uint64_t order_bytes(struct job *job) {
        uint64_t n_bytes;

        pthread_mutex_lock(&job->lock);
        n_bytes = job->orders_used_bytes;
        pthread_mutex_unlock(&job->lock);
        return n_bytes;
}

START_TEST(an_ended_stream_gives_its_order_back) {
        struct rank_options options = { .world = 1, .batch_size = 8, .shuffle = true, .n_epochs = 1 };
        struct rank rank;

        start();
        rank_attach(&rank, &serving, &options);
        rank_eat_epoch(&rank, 0);
        for (int i = 0; order_bytes(rank.job) > 0; i++) {
                ck_assert_msg(i < SOON_MS, "%llu bytes too many are held", (unsigned long long)order_bytes(rank.job));
                nap_ms(1);
        }
        rank_seek(&rank, &(struct cursor){ .epoch = 3, .position = 20 }); /* and takes it again */
        rank_eat_epoch(&rank, 3);
        rank_leave(&rank);
        serving_stop(&serving);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("cursor");
        TCase *tcase = tcase_create("cursor");
        SRunner *runner;
        int n_failed;

        tcase_set_timeout(tcase, 60);
        tcase_add_loop_test(tcase, what_is_left_of_an_epoch_is_dealt_out_once_among_any_ranks, 0,
                            (int)(sizeof(RESUMES) / sizeof(RESUMES[0])));
        tcase_add_test(tcase, padding_repeats_fewer_than_the_ranks_and_dropping_loses_fewer);
        tcase_add_loop_test(tcase, at_the_same_world_and_batch_the_run_goes_on_as_if_it_had_never_stopped,
                            DLP_PARTITION_PAD, DLP_PARTITION_EXACT + 1);
        tcase_add_test(tcase, a_cursor_has_a_step_behind_its_position);
        tcase_add_test(tcase, an_epoch_of_which_nothing_is_left_is_passed_over_unless_it_is_the_last);
        tcase_add_test(tcase, a_rank_for_which_nothing_is_left_goes_on_while_another_has_a_last_sample);
        tcase_add_test(tcase, an_ended_stream_gives_its_order_back);
        suite_add_tcase(suite, tcase);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
