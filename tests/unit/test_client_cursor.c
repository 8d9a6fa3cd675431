/* Where a loader goes on: epochs, positions within them, and what it says to a run that resumes. */

#include <check.h>
#include <errno.h>

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

int main(void) {
        const struct suite_row rows[] = {
                { "epochs", set_epoch_goes_anywhere_and_old_batches_are_passed_over },
                { "epochs", a_seek_leaves_held_batches_as_they_are },
                { "epochs", past_the_prepared_epochs_the_daemon_is_asked },
        };

        return suite_run("client_cursor", rows, sizeof(rows) / sizeof(rows[0]));
}
