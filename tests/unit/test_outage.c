/* A dataset that cannot be read for a while: nothing of it is lost, substituted or left out, whatever on_error says. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/data/look.h"
#include "daemon/pipeline/failure/outage.h"
#include "proto/base/clock.h"
#include "proto/ring.h"
#include "tests/support/serving.h"

#define SOON_MS   60000
#define N_SAMPLES 60u
#define N_CLASSES 3u
#define BATCH     4u

static struct serving serving;

/* ---- what errors say ----------------------------------------------------------------------------------------- */

static const struct {
        int error;
        enum read_error kind;
} ERRORS[] = {
        { -EINVAL, READ_ERROR_OWN },       { -EISDIR, READ_ERROR_OWN },       { -EBADMSG, READ_ERROR_OWN },
        { -EFBIG, READ_ERROR_OWN },        { -ENOENT, READ_ERROR_CLEAR },     { -EACCES, READ_ERROR_CLEAR },
        { -EPERM, READ_ERROR_CLEAR },      { -ENOTDIR, READ_ERROR_CLEAR },    { -EIO, READ_ERROR_VAGUE },
        { -ESTALE, READ_ERROR_VAGUE },     { -EUCLEAN, READ_ERROR_VAGUE },    { -ENOTCONN, READ_ERROR_OUTAGE },
        { -ETIMEDOUT, READ_ERROR_OUTAGE }, { -EHOSTDOWN, READ_ERROR_OUTAGE }, { -ENODEV, READ_ERROR_OUTAGE },
};

START_TEST(an_error_says_whether_the_file_can_be_meant) {
        for (size_t i = 0; i < sizeof(ERRORS) / sizeof(ERRORS[0]); i++)
                ck_assert_msg(read_error_kind(ERRORS[i].error) == ERRORS[i].kind, "%s", strerror(-ERRORS[i].error));
}
END_TEST

/* ---- a folder that is away ----------------------------------------------------------------------------------- */

static void rename_classes(const char *from, const char *to) {
        for (uint32_t i = 0; i < N_CLASSES; i++) {
                char here[64], there[64];

                snprintf(here, sizeof(here), "%s/class_%03u", from, i);
                snprintf(there, sizeof(there), "%s/class_%03u", to, i);
                ck_assert_int_eq(renameat(serving.tree.fd, here, serving.tree.fd, there), 0);
        }
}

static void take_away(void) {
        rename_classes("photos", "away");
}

static void bring_back(void) {
        rename_classes("away", "photos");
}

static void start(const char *reader, uint32_t outage_timeout) {
        serving_start(&serving, &(struct serving_options){ .n_samples = N_SAMPLES,
                                                           .n_classes = N_CLASSES,
                                                           .reader = reader,
                                                           .outage_timeout = outage_timeout });
        tree_dir(&serving.tree, "away");
}

static void attach(struct rank *rank, enum on_error on_error) {
        rank_attach(rank, &serving,
                    &(struct rank_options){
                            .world = 1, .batch_size = BATCH, .shuffle = true, .n_slots = 2, .on_error = on_error });
}

static void wait_held(const struct rank *rank, struct dlp_wait *wait) {
        for (int i = 0; !dlp_ring_waits(rank->control, wait); i++) {
                ck_assert_msg(i < SOON_MS, "never on hold");
                nap_ms(1);
        }
}

static void wait_not_held(const struct rank *rank) {
        struct dlp_wait wait;

        for (int i = 0; dlp_ring_waits(rank->control, &wait); i++) {
                ck_assert_msg(i < SOON_MS, "for ever on hold");
                nap_ms(1);
        }
}

static void eat(struct rank *rank, uint64_t first_step, uint64_t end_step) {
        for (uint64_t step = first_step; step < end_step; step++) {
                struct taken taken;

                ck_assert(rank_next(rank, SOON_MS, &taken));
                rank_check(rank, &taken, 0, step);
                rank_release(rank, &taken);
        }
}

/* Takes what had been read before. Returns the step that comes next. */
static uint64_t eat_until_held(struct rank *rank, uint64_t step, struct dlp_wait *wait) {
        struct taken taken;

        while (!dlp_ring_waits(rank->control, wait)) {
                ck_assert_uint_lt(step, N_SAMPLES / BATCH);
                if (!rank_next(rank, 10, &taken))
                        continue;
                rank_check(rank, &taken, 0, step++);
                rank_release(rank, &taken);
        }
        return step;
}

/* Both ways of reading, each policy. */
START_TEST(a_dataset_that_is_gone_for_a_while_costs_no_sample) {
        static const enum on_error POLICIES[] = { ON_ERROR_FAIL, ON_ERROR_SUBSTITUTE, ON_ERROR_SKIP };
        char text[DLP_TEXT_MAX];
        struct dlp_wait wait;
        struct rank rank;
        uint64_t step;

        start(_i % 2 ? "threads" : "auto", 0);
        attach(&rank, POLICIES[_i / 2]);
        eat(&rank, 0, 3);
        take_away();
        step = eat_until_held(&rank, 3, &wait);
        ck_assert_uint_eq(wait.reason, DLP_WAIT_OUTAGE);
        ck_assert(wait.since_ns > 0 && wait.since_ns <= clock_now_ns());
        dlp_wait_sentence(&wait, "photos", clock_now_ns(), text);
        ck_assert_ptr_nonnull(strstr(text, serving.tree.root));
        ck_assert_ptr_nonnull(strstr(text, "(ENOENT)"));
        bring_back();
        eat(&rank, step, N_SAMPLES / BATCH);
        wait_not_held(&rank);
        ck_assert_uint_eq(atomic_load(&rank.job->damage.n_met), 0);
        ck_assert_uint_eq(ledger_n_samples(serving.dataset->ledger), 0);
        rank_leave(&rank);
        serving_stop(&serving);
}
END_TEST

START_TEST(what_lasts_longer_than_outage_timeout_ends_the_job_with_the_reason) {
        struct taken taken;
        struct rank rank;

        start(NULL, 1);
        attach(&rank, ON_ERROR_SKIP);
        eat(&rank, 0, 3);
        take_away();
        for (;;) {
                ck_assert(rank_next(&rank, SOON_MS, &taken));
                if (taken.record->status == DLP_BATCH_FAILED)
                        break;
                rank_release(&rank, &taken); /* read before */
        }
        ck_assert_ptr_nonnull(strstr(taken.record->text, "photos could not be read for 1 s (outage_timeout): "));
        /* What the look at the folder found, or, if it has not ended on a busy machine, the error of the read. */
        ck_assert_msg(strstr(taken.record->text, "No such file or directory") != NULL, "%s", taken.record->text);
        rank_release(&rank, &taken);
        rank_leave(&rank);
        bring_back();
        serving_stop(&serving);
}
END_TEST

START_TEST(a_rank_on_hold_may_leave_or_go_on_elsewhere) {
        struct dlp_wait wait;
        struct rank rank;

        start(NULL, 0);
        attach(&rank, ON_ERROR_FAIL);
        eat(&rank, 0, 3);
        take_away();
        eat_until_held(&rank, 3, &wait);
        rank_leave(&rank);
        serving_settle(&serving); /* nothing of it waits for the dataset */

        attach(&rank, ON_ERROR_FAIL);
        wait_held(&rank, &wait);
        rank_seek(&rank, &(struct cursor){ .epoch = 1 });
        bring_back();
        rank_eat_epoch(&rank, 1);
        rank_leave(&rank);
        serving_stop(&serving);
}
END_TEST

/* All tasks could be with the first one. */
START_TEST(ranks_that_come_while_it_is_gone_wait_likewise_and_lose_nothing) {
        struct dlp_wait wait;
        struct rank ranks[3];

        start(NULL, 0);
        take_away();
        for (uint32_t i = 0; i < 3; i++)
                rank_attach(&ranks[i], &serving,
                            &(struct rank_options){ .world = 3, .rank = i, .batch_size = BATCH, .shuffle = true });
        for (uint32_t i = 0; i < 3; i++)
                wait_held(&ranks[i], &wait);
        bring_back();
        for (uint32_t i = 0; i < 3; i++) {
                rank_eat_epoch(&ranks[i], 0);
                rank_eat_epoch(&ranks[i], 1);
                rank_leave(&ranks[i]);
        }
        serving_stop(&serving);
}
END_TEST

/* ---- a file that is --------------------------------------------------------------------------------------------- */

START_TEST(a_file_that_is_missing_in_a_folder_that_is_there_is_damage) {
        char path[64];
        struct taken taken;
        struct rank rank;
        uint32_t n_skipped = 0, n = 0;

        start(NULL, 0);
        for (uint32_t i = 0; i < 6; i++) {
                serving_path(&serving.options, i * 7, path);
                ck_assert_int_eq(unlinkat(serving.tree.fd, path, 0), 0);
        }
        attach(&rank, ON_ERROR_SKIP);
        while (n + n_skipped < N_SAMPLES) {
                ck_assert(rank_next(&rank, SOON_MS, &taken));
                ck_assert_uint_eq(taken.record->status, DLP_BATCH_OK);
                n += taken.record->n_samples;
                n_skipped += taken.record->n_skipped;
                for (uint32_t i = 0; i < taken.record->n_samples; i++)
                        ck_assert(taken.columns.indices[i] % 7 != 0 || taken.columns.indices[i] > 35);
                rank_release(&rank, &taken);
        }
        ck_assert_uint_eq(n_skipped, 6);
        ck_assert_uint_eq(ledger_n_samples(serving.dataset->ledger), 6);
        rank_leave(&rank);
        serving_stop(&serving);
}
END_TEST

/* ---- a file that was written to -----------------------------------------------------------------------------------
 */

static void wait_for(bool (*has_come)(struct outage *outage, uint64_t round), struct outage *outage, uint64_t round) {
        for (int i = 0; !has_come(outage, round); i++) {
                ck_assert_msg(i < SOON_MS, "it never comes");
                nap_ms(1);
        }
}

static bool is_without_memory(struct outage *outage, uint64_t round) {
        struct why why;

        return outage_is_held(outage, &why) && strstr(why.text, "memory_limit");
}

START_TEST(what_could_not_be_compared_for_want_of_memory_is_compared_later) {
        static struct budget budget = { .limit_bytes = 64u << 20 }; /* outlives the thread that looks */
        uint64_t n_others, round;
        struct dataset *dataset;
        struct outage *outage;
        struct tree tree;
        int64_t settled_ns;

        tree_make(&tree);
        tree_file(&tree, "0.csv", "x,t\n1,a\n");
        tree_age(&tree, ".");
        ck_assert_int_eq(
                dataset_open(
                        &(struct dataset_spec){ .name = "d", .path = tree.root, .format = "csv", .budget = &budget },
                        "/proc/nowhere", NULL, &dataset, NULL, NULL),
                0);
        ck_assert_int_eq(outage_new(dataset, &outage), 0);
        n_others = budget.limit_bytes - budget_used(&budget);
        ck_assert_int_eq(budget_reserve(&budget, n_others, "others", NULL), 0);
        ck_assert_int_eq(utimensat(tree.fd, "0.csv", NULL, 0), 0);
        ck_assert_int_eq(outage_judge(outage, 0, -EREMCHG, &round), OUTAGE_WAIT);
        wait_for(is_without_memory, outage, round);
        budget_release(&budget, n_others);
        wait_for(outage_has_cleared, outage, round);
        ck_assert(dataset_has_stamps(dataset, &settled_ns) && !dataset_has_changed(dataset));
        ck_assert_msg(settled_ns > INT64_MIN, "it was not compared");
        outage_free(outage);
        dataset_unref(dataset);
        tree_remove(&tree);
}
END_TEST

int main(void) {
        TCase *errors = tcase_create("errors"), *outages = tcase_create("outages");
        Suite *suite = suite_create("outage");
        SRunner *runner;
        int n_failed;

        tcase_add_test(errors, an_error_says_whether_the_file_can_be_meant);
        suite_add_tcase(suite, errors);
        tcase_set_timeout(outages, 120);
        tcase_add_loop_test(outages, a_dataset_that_is_gone_for_a_while_costs_no_sample, 0, 6);
        tcase_add_test(outages, what_lasts_longer_than_outage_timeout_ends_the_job_with_the_reason);
        tcase_add_test(outages, a_rank_on_hold_may_leave_or_go_on_elsewhere);
        tcase_add_test(outages, ranks_that_come_while_it_is_gone_wait_likewise_and_lose_nothing);
        tcase_add_test(outages, a_file_that_is_missing_in_a_folder_that_is_there_is_damage);
        tcase_add_test(outages, what_could_not_be_compared_for_want_of_memory_is_compared_later);
        suite_add_tcase(suite, outages);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed != 0;
}
