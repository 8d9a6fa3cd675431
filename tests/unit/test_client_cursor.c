/* Where a loader goes on: epochs, positions within them, and what it says to a run that resumes. */

#include <check.h>
#include <errno.h>
#include <string.h>

#include "tests/support/client.h"
#include "tests/support/suite.h"

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

/* ---- positions ----------------------------------------------------------------------------------------------------
 */

static void expect_cursor(struct dlc_loader *loader, uint64_t epoch, uint64_t position) {
        uint64_t at_epoch = 77, at_position = 77;

        ck_assert_int_eq(dlc_get_cursor(loader, &at_epoch, &at_position), 0);
        ck_assert_uint_eq(at_epoch, epoch);
        ck_assert_uint_eq(at_position, position);
}

START_TEST(an_epoch_may_begin_at_a_position) {
        struct stand_in_manners manners = { .n_samples = 103 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader;

        options.world_size = 3;
        options.rank = 2;
        options.first_epoch = 6;
        options.first_position = 50;
        options.max_errors = 0.25;
        loader = open_loader(&options);
        ck_assert_uint_eq(manners.first_epoch, 6);
        ck_assert_uint_eq(manners.first_position, 50);
        ck_assert_uint_eq(manners.first_step, 0);
        ck_assert(manners.max_errors == 0.25);
        ck_assert_uint_eq(dlc_epoch_samples(loader), 35); /* of a whole epoch */
        ck_assert_uint_eq(dlc_epoch_batches(loader), 9);
        expect_cursor(loader, 6, 50);
        check_steps_from(loader, 6, 50, 0, 5); /* ceil(53 / 3) = 18 samples */
        expect_cursor(loader, 6, 103);
        check_end(loader);
        expect_cursor(loader, 7, 0);
        check_epoch(loader, 7);
        ck_assert_uint_eq(manners.n_seeks, 0);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(a_seek_goes_to_any_position_and_what_is_no_position_is_refused) {
        struct stand_in_manners manners = { .n_samples = 100 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 8);
        struct dlc_loader *loader = open_loader(&options);

        check_steps(loader, 0, 0, 2);
        ck_assert_int_eq(dlc_seek(loader, 3, 37), 0);
        expect_cursor(loader, 3, 37);
        ck_assert_int_eq(dlc_seek(loader, 3, 37), 0); /* there already */
        ck_assert_uint_eq(manners.n_seeks, 1);
        check_steps_from(loader, 3, 37, 0, 3);
        ck_assert_int_eq(dlc_seek(loader, 3, 61), 0); /* where it is: the same samples come next */
        check_steps_from(loader, 3, 61, 0, 5);
        check_end(loader);
        check_epoch(loader, 4);
        ck_assert_int_eq(dlc_seek(loader, 5, 0), 0); /* what comes next anyway */
        ck_assert_uint_eq(manners.n_seeks, 2);
        check_steps(loader, 5, 0, 1);
        ck_assert_int_eq(dlc_seek(loader, 5, 100), 0); /* after the last one */
        expect_cursor(loader, 5, 100);
        check_end(loader);
        check_epoch(loader, 6);
        ck_assert_int_eq(dlc_seek(loader, 2, 90), 0);
        ck_assert_int_eq(dlc_set_epoch(loader, 2), 0); /* its beginning is elsewhere */
        check_epoch(loader, 2);

        ck_assert_int_eq(dlc_seek(loader, 2, 101), -EINVAL);
        ck_assert_ptr_nonnull(strstr(dlc_error(loader), "position: 101; 0 to 100"));
        ck_assert_int_eq(dlc_seek(loader, 1ull << 32, 0), -EINVAL);
        ck_assert_int_eq(dlc_seek(NULL, 0, 0), -EINVAL);
        check_epoch(loader, 3);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

static const struct {
        const char *partition;
        bool drop_last;
        uint64_t base;
} DEALS[] = {
        { "pad", false, 0 },   { "pad", true, 0 },    { "pad", false, 17 },
        { "drop", false, 0 },  { "drop", true, 5 },   { "exact", false, 0 },
        { "exact", true, 40 }, { "exact", false, 1 }, { "exact", false, 58 },
};

/* All ranks of a step say the same, and after the last step nothing is left. */
START_TEST(a_batchs_position_is_that_of_all_ranks) {
        enum {
                WORLD = 4,
                BATCH = 3,
                N = 61
        };
        uint64_t positions[WORLD][N], n_steps[WORLD], most = 0;

        for (int rank = 0; rank < WORLD; rank++) {
                struct stand_in_manners manners = { .n_samples = N };
                struct stand_in *stand_in = stand_in_start(&manners);
                struct dlc_options options = options_for(stand_in, BATCH);
                const struct dlc_batch *batch;
                struct dlc_loader *loader;

                options.world_size = WORLD;
                options.rank = rank;
                options.partition = DEALS[_i].partition;
                options.drop_last = DEALS[_i].drop_last;
                options.first_position = DEALS[_i].base;
                loader = open_loader(&options);
                for (n_steps[rank] = 0; dlc_next(loader, PATIENCE_MS, &batch) == 0; n_steps[rank]++) {
                        uint64_t begin = DEALS[_i].base + n_steps[rank] * WORLD * BATCH;

                        expect_cursor(loader, 0, begin);
                        check_batch_from(loader, batch, 0, DEALS[_i].base, n_steps[rank]);
                        positions[rank][n_steps[rank]] = batch->position;
                        ck_assert(batch->position == begin + WORLD * BATCH || batch->position == N);
                        ck_assert_int_eq(dlc_release(loader, batch), 0);
                }
                expect_cursor(loader, 1, 0);
                most = n_steps[rank] > most ? n_steps[rank] : most;
                dlc_close(loader);
                stand_in_stop(stand_in);
        }
        for (int rank = 0; rank < WORLD; rank++)
                for (uint64_t step = 0; step < n_steps[rank]; step++) {
                        ck_assert_uint_eq(positions[rank][step], positions[0][step]);
                        ck_assert_uint_eq(positions[rank][step] == N, step + 1 == most);
                }
        ck_assert_uint_gt(most, 0);
}
END_TEST

/* Batch by batch, through three epochs and into the next one. */
START_TEST(where_a_run_will_stand_is_known_without_running_it) {
        struct stand_in_manners manners = { .n_samples = 61 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 3);
        uint64_t n_batches = 0, epoch, position, base;
        struct dlc_loader *loader;

        options.world_size = 4;
        options.rank = 0; /* with "exact" the one that has the most */
        options.partition = DEALS[_i].partition;
        options.drop_last = DEALS[_i].drop_last;
        options.first_epoch = 7;
        options.first_position = base = DEALS[_i].base;
        loader = open_loader(&options);
        while (n_batches < 17) {
                const struct dlc_batch *batch;
                int r = dlc_next(loader, PATIENCE_MS, &batch);

                if (r == DLC_END_OF_EPOCH)
                        continue;
                ck_assert_int_eq(r, 0);
                n_batches++;
                ck_assert_int_eq(dlc_cursor_after(&options, 61, 7, base, n_batches, &epoch, &position), 0);
                ck_assert_uint_eq(epoch, batch->position == 61 ? batch->epoch + 1 : batch->epoch);
                ck_assert_uint_eq(position, batch->position == 61 ? 0 : batch->position);
                ck_assert_int_eq(dlc_release(loader, batch), 0);
        }
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

START_TEST(what_cannot_be_computed_is_refused_with_what_is_allowed) {
        struct dlc_options options = DLC_OPTIONS_INIT;
        uint64_t epoch = 77, position = 77;

        options.dataset = "photos";
        options.batch_size = 4;
        options.world_size = 2;
        options.rank = 0;
        ck_assert_int_eq(dlc_cursor_after(&options, 61, 0, 62, 0, &epoch, &position), -EINVAL);
        ck_assert_ptr_nonnull(strstr(dlc_last_error(), "position: 62; 0 to 61"));
        ck_assert_int_eq(dlc_cursor_after(&options, 61, 1ull << 32, 0, 0, &epoch, &position), -EINVAL);
        ck_assert_ptr_nonnull(strstr(dlc_last_error(), "epoch: 4294967296; 0 to 4294967295"));
        ck_assert_int_eq(dlc_cursor_after(&options, 61, 0, 0, UINT64_MAX, &epoch, &position), -EINVAL);
        ck_assert_ptr_nonnull(strstr(dlc_last_error(), "epoch: "));
        ck_assert_int_eq(dlc_cursor_after(&options, UINT64_MAX - 1, 0, 0, 1, &epoch, &position), -EINVAL);
        ck_assert_ptr_nonnull(strstr(dlc_last_error(), "n_samples: "));
        ck_assert_int_eq(dlc_cursor_after(&options, 61, 0, 0, 1, NULL, &position), -EINVAL);
        ck_assert_int_eq(dlc_cursor_after(NULL, 61, 0, 0, 1, &epoch, &position), -EINVAL);
        options.partition = "some";
        ck_assert_int_eq(dlc_cursor_after(&options, 61, 0, 0, 1, &epoch, &position), -EINVAL);
        ck_assert_ptr_nonnull(strstr(dlc_last_error(), "partition: \"some\""));
        ck_assert(epoch == 77 && position == 77);

        options.partition = "pad";
        ck_assert_int_eq(dlc_cursor_after(&options, 61, 0xffffffffu, 61, 0, &epoch, &position), 0);
        ck_assert(epoch == 1ull << 32 && position == 0);
        ck_assert_int_eq(dlc_cursor_after(&options, 0, 3, 0, 5, &epoch, &position), 0); /* of an empty dataset */
        ck_assert(epoch == 8 && position == 0);
}
END_TEST

START_TEST(the_cursor_stops_at_the_first_batch_that_is_held) {
        struct stand_in_manners manners = { .n_samples = 22, .n_slots = 8 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, 4);
        struct dlc_loader *loader = open_loader(&options);
        const struct dlc_batch *batches[6], *other;

        for (int i = 0; i < 4; i++)
                batches[i] = take(loader);
        expect_cursor(loader, 0, 0);
        dlc_release(loader, batches[2]);
        expect_cursor(loader, 0, 0);
        dlc_release(loader, batches[0]);
        expect_cursor(loader, 0, 4);
        dlc_release(loader, batches[1]);
        expect_cursor(loader, 0, 12);
        dlc_release(loader, batches[3]);
        expect_cursor(loader, 0, 16);
        batches[4] = take(loader);
        batches[5] = take(loader);
        ck_assert_uint_eq(batches[5]->position, 22);
        check_end(loader);
        expect_cursor(loader, 0, 16); /* the end was told, but that batch may be worked at still */
        ck_assert_int_eq(dlc_set_epoch(loader, 1), 0);
        other = take(loader);
        dlc_release(loader, other);
        expect_cursor(loader, 0, 16);
        dlc_release(loader, batches[4]);
        expect_cursor(loader, 0, 20);
        dlc_release(loader, batches[5]);
        expect_cursor(loader, 1, 4);

        /* What is held from before a seek does not lie before it. */
        other = take(loader);
        ck_assert_int_eq(dlc_seek(loader, 9, 10), 0);
        expect_cursor(loader, 9, 10);
        dlc_release(loader, other);
        expect_cursor(loader, 9, 10);
        ck_assert_int_eq(dlc_get_cursor(loader, NULL, NULL), -EINVAL);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

/* ---- skipped samples ----------------------------------------------------------------------------------------------
 */

/* Sample 0, 7, 14, ... are left out: of batches of 7 one, of batches of 1 all. */
START_TEST(batches_shrink_by_what_was_skipped_and_empty_ones_are_passed_over) {
        struct stand_in_manners manners = { .n_samples = 29, .skip_each = 7 };
        struct stand_in *stand_in = stand_in_start(&manners);
        struct dlc_options options = options_for(stand_in, _i ? 7 : 1);
        const struct dlc_batch *batch;
        struct dlc_loader *loader;
        struct dlc_stats stats;
        uint64_t n_samples = 0;

        options.on_error = "skip";
        loader = open_loader(&options);
        for (int epoch = 0; epoch < 2; epoch++) {
                int64_t next_index = 0;
                int r;

                while ((r = dlc_next(loader, PATIENCE_MS, &batch)) == 0) {
                        ck_assert_uint_eq(batch->epoch, (uint64_t)epoch);
                        ck_assert_uint_eq(batch->n_skipped, _i ? 1 : 0);
                        for (uint32_t i = 0; i < batch->n_samples; i++) {
                                next_index += next_index % 7 == 0;
                                ck_assert_int_eq(batch->indices[i], next_index++);
                        }
                        ck_assert_uint_eq(batch->position, (batch->step + 1) * (_i ? 7 : 1));
                        n_samples += batch->n_samples;
                        ck_assert_int_eq(dlc_release(loader, batch), 0);
                }
                ck_assert_int_eq(r, DLC_END_OF_EPOCH); /* the last batch, sample 28, is none */
                ck_assert_int_eq(next_index, 28);
                expect_cursor(loader, (uint64_t)epoch + 1, 0);
        }
        ck_assert_uint_eq(n_samples, 2 * 24);
        ck_assert_int_eq(dlc_get_stats(loader, &stats, sizeof(stats)), 0);
        ck_assert_uint_eq(stats.n_samples, 2 * 24);
        ck_assert_uint_eq(stats.n_skipped, 2 * 5);
        dlc_close(loader);
        stand_in_stop(stand_in);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "epochs", set_epoch_goes_anywhere_and_old_batches_are_passed_over },
                { "epochs", a_seek_leaves_held_batches_as_they_are },
                { "epochs", past_the_prepared_epochs_the_daemon_is_asked },
                { "positions", an_epoch_may_begin_at_a_position },
                { "positions", a_seek_goes_to_any_position_and_what_is_no_position_is_refused },
                { "positions", a_batchs_position_is_that_of_all_ranks, sizeof(DEALS) / sizeof(DEALS[0]) },
                { "positions", where_a_run_will_stand_is_known_without_running_it, sizeof(DEALS) / sizeof(DEALS[0]) },
                { "positions", what_cannot_be_computed_is_refused_with_what_is_allowed },
                { "positions", the_cursor_stops_at_the_first_batch_that_is_held },
                { "skipping", batches_shrink_by_what_was_skipped_and_empty_ones_are_passed_over, 2 },
        };

        return suite_run("client_cursor", rows, sizeof(rows) / sizeof(rows[0]));
}
