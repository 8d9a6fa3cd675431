/* Damaged samples that are left out, and how many a job tolerates. */

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "daemon/pipeline/failure/damage.h"
#include "tests/support/serving.h"

#define SOON_MS             60000
#define N_SAMPLES           40u
#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))

static struct serving serving;

/* ---- what is damaged ----------------------------------------------------------------------------------------- */

static const uint32_t GONE[] = { 3, 4, 17, 24, 39 }; /* links to nowhere: damaged for everybody */
static const uint32_t CUT[] = { 5, 18 };             /* found out in the middle of decoding; raw does not look */

static bool is_among(uint64_t index, const uint32_t *list, size_t n) {
        for (size_t i = 0; i < n; i++)
                if (list[i] == index)
                        return true;
        return false;
}

static bool is_damaged(uint64_t index, bool raw) {
        return is_among(index, GONE, ARRAY_LENGTH(GONE)) || (!raw && is_among(index, CUT, ARRAY_LENGTH(CUT)));
}

static void damage(struct serving_options *options, const struct tree *tree) {
        char path[64];

        for (size_t i = 0; i < ARRAY_LENGTH(GONE); i++) {
                serving_path(options, GONE[i], path);
                ck_assert_int_eq(unlinkat(tree->fd, path, 0), 0);
                tree_link(tree, path, "../../nowhere");
        }
        for (size_t i = 0; i < ARRAY_LENGTH(CUT); i++) {
                serving_path(options, CUT[i], path);
                cut_file(tree, path, 30);
        }
}

static void damage_all(struct serving_options *options, const struct tree *tree) {
        char path[64];

        for (uint32_t i = 0; i < options->n_samples; i++) {
                serving_path(options, i, path);
                write_bytes(tree, path, "no picture", 10);
        }
}

/* ---- what is left -------------------------------------------------------------------------------------------- */

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
        ck_assert_mem_eq(slot + where->offset, bytes, (size_t)n);
}

/* The batch is its part of the order without those that are damaged, each being what it says. */
static void check_survivors(const struct rank *rank, const struct taken *taken, bool raw) {
        const struct dlp_slot_record *record = taken->record;
        uint64_t begin = record->step * rank->options.batch_size, n_planned = rank->feed->whole.n_samples - begin;
        uint32_t n = 0;

        if (n_planned > rank->options.batch_size)
                n_planned = rank->options.batch_size;
        ck_assert_msg(record->status == DLP_BATCH_OK, "%s", record->text);
        for (uint64_t i = 0; i < n_planned; i++) {
                uint64_t index = expected_index(rank, record->epoch, begin + i);

                if (is_damaged(index, raw))
                        continue;
                ck_assert_uint_lt(n, record->n_samples);
                ck_assert_int_eq(taken->columns.indices[n], (int64_t)index);
                ck_assert_int_eq(taken->columns.substitutes[n], -1);
                ck_assert_int_eq(taken->columns.idx_errors[n], -1);
                ck_assert_int_eq(taken->labels[n],
                                 (int64_t)(index * serving.options.n_classes / serving.options.n_samples));
                if (raw)
                        check_raw(rank, taken, n);
                else
                        check_picture(taken, n, (uint32_t)index);
                n++;
        }
        ck_assert_uint_eq(record->n_samples, n);
        ck_assert_uint_eq(record->n_skipped, n_planned - n);
        ck_assert_uint_eq(record->n_planned, n_planned);
        ck_assert_uint_eq(record->n_errors, 0);
        ck_assert_uint_eq(record->n_tensors, n ? 2 : 0);
        for (uint32_t i = 0; i < record->n_tensors; i++)
                ck_assert_int_eq(record->tensors[i].shape[0], n);
        if (n > 0)
                check_times(record);
}

static const struct {
        uint32_t world, batch_size, n_workers;
        const char *pipeline;
} SHAPES[] = {
        { 1, 40, 1, "center_crop(8)" },
        { 1, 7, 4, "center_crop(8)" },
        { 1, 1, 2, "center_crop(8)" },
        { 2, 5, 3, "center_crop(8)" },
        { 3, 4, 1, "center_crop(8)" },
        { 1, 40, 4, "decode" },
        { 2, 3, 2, "decode" },
        { 1, 1, 2, "decode" },
        { 1, 40, 4, "raw" },
        { 3, 4, 2, "raw" },
        { 1, 1, 1, "raw" },
};

START_TEST(what_is_left_is_the_order_without_the_damaged_ones) {
        struct rank_options options = {
                .world = SHAPES[_i].world,
                .batch_size = SHAPES[_i].batch_size,
                .pipeline = SHAPES[_i].pipeline,
                .shuffle = true,
                .seed = 3,
                .on_error = ON_ERROR_SKIP,
        };
        bool raw = strcmp(options.pipeline, "raw") == 0;
        uint64_t n_skipped = 0;
        struct taken taken;
        struct rank rank;

        serving_start(&serving, &(struct serving_options){ .n_samples = N_SAMPLES,
                                                           .n_classes = 4,
                                                           .n_workers = SHAPES[_i].n_workers,
                                                           .spoil = damage });
        for (options.rank = 0; options.rank < options.world; options.rank++) {
                rank_attach(&rank, &serving, &options);
                for (uint64_t epoch = 0; epoch < 4; epoch++)
                        for (uint64_t step = 0; step < rank.feed->whole.n_batches; step++) {
                                ck_assert(rank_next(&rank, SOON_MS, &taken));
                                ck_assert_uint_eq(taken.record->step, step);
                                check_survivors(&rank, &taken, raw);
                                n_skipped += taken.record->n_skipped;
                                rank_release(&rank, &taken);
                        }
                rank_leave(&rank);
        }
        /* Those that padding repeats are met twice. */
        ck_assert_uint_ge(n_skipped, 4 * (ARRAY_LENGTH(GONE) + (raw ? 0 : ARRAY_LENGTH(CUT))));
        serving_stop(&serving);
}
END_TEST

START_TEST(a_batch_of_which_nothing_is_left_is_published_empty) {
        struct taken taken;
        struct rank rank;

        serving_start(&serving, &(struct serving_options){ .n_samples = 9, .n_classes = 1, .spoil = damage_all });
        rank_attach(&rank, &serving, &(struct rank_options){ .world = 1, .batch_size = 4, .on_error = ON_ERROR_SKIP });
        for (uint32_t i = 0; i < 9; i++) {
                ck_assert(rank_next(&rank, SOON_MS, &taken));
                ck_assert_uint_eq(taken.record->status, DLP_BATCH_OK);
                ck_assert_uint_eq(taken.record->n_samples, 0);
                ck_assert_uint_eq(taken.record->n_skipped, i % 3 < 2 ? 4 : 1);
                ck_assert_uint_eq(taken.record->n_planned, taken.record->n_skipped);
                rank_release(&rank, &taken);
        }
        ck_assert_uint_eq(atomic_load(&rank.job->damage.n_met), 9);
        rank_leave(&rank);
        serving_stop(&serving);
}
END_TEST

/* After a seek there are batches that nobody filled: they must not be taken for batches with gaps. */
START_TEST(seeking_among_damaged_samples_loses_nothing) {
        struct taken taken;
        struct rank rank;

        serving_start(&serving, &(struct serving_options){ .n_samples = N_SAMPLES, .n_classes = 4, .spoil = damage });
        rank_attach(&rank, &serving,
                    &(struct rank_options){
                            .world = 1, .batch_size = 6, .shuffle = true, .on_error = ON_ERROR_SKIP, .n_slots = 3 });
        for (uint64_t i = 0; i < 200; i++) {
                rank.number = pipeline_seek(serving.pipeline, rank.feed,
                                            &(struct cursor){ .epoch = i % 7, .step = i % 6 });
                if (i % 3 == 0)
                        continue;
                ck_assert(rank_next(&rank, SOON_MS, &taken));
                ck_assert_uint_eq(taken.record->epoch, i % 7);
                check_survivors(&rank, &taken, false);
                rank_release(&rank, &taken);
        }
        rank_leave(&rank);
        serving_stop(&serving);
}
END_TEST

/* ---- how many are tolerated -------------------------------------------------------------------------------------- */

/* Reads epochs until the job fails; false if it does not. */
static bool fails(struct rank *rank, uint64_t n_epochs, struct taken *ret_taken) {
        for (uint64_t i = 0; i < n_epochs * rank->feed->whole.n_batches; i++) {
                ck_assert(rank_next(rank, SOON_MS, ret_taken));
                if (ret_taken->record->status == DLP_BATCH_FAILED)
                        return true;
                rank_release(rank, ret_taken);
        }
        return false;
}

static const struct {
        double max_errors;
        bool fails;
} LIMITS[] = {
        { 0, false },     { 7, false },    { 6, true },    { 1, true },
        { 0.175, false }, { 0.16, false }, { 0.15, true }, { 1000, false },
};

START_TEST(so_many_are_borne_however_often_they_are_met) {
        static const enum on_error POLICIES[] = { ON_ERROR_SKIP, ON_ERROR_SUBSTITUTE };
        struct rank_options options = { .world = 2,
                                        .batch_size = 3,
                                        .shuffle = true,
                                        .max_errors = LIMITS[_i % (int)ARRAY_LENGTH(LIMITS)].max_errors,
                                        .on_error = POLICIES[_i / (int)ARRAY_LENGTH(LIMITS)] };
        bool expected = LIMITS[_i % (int)ARRAY_LENGTH(LIMITS)].fails, failed;
        struct taken taken;
        struct rank ranks[2];

        serving_start(&serving, &(struct serving_options){ .n_samples = N_SAMPLES, .n_classes = 4, .spoil = damage });
        for (options.rank = 0; options.rank < 2; options.rank++) /* before the first one fails */
                ck_assert_int_eq(rank_make(&ranks[options.rank], &serving, &options, NULL), 0);
        rank_add(&ranks[0]);
        rank_add(&ranks[1]);
        failed = fails(&ranks[0], 4, &taken) || fails(&ranks[1], 4, &taken);
        ck_assert_int_eq(failed, expected);
        if (failed) {
                ck_assert_msg(strstr(taken.record->text, "damaged samples, max_errors allows") != NULL, "%s",
                              taken.record->text);
                ck_assert_ptr_nonnull(strstr(taken.record->text, "dlctl errors photos"));
                ck_assert_uint_eq(taken.record->code, ENOTRECOVERABLE);
                ck_assert_uint_gt(atomic_load(&ranks[0].job->damage.n_met), ranks[0].job->damage.n_allowed);
        } else {
                ck_assert_uint_eq(atomic_load(&ranks[0].job->damage.n_met), 7);
        }
        rank_leave(&ranks[0]);
        rank_leave(&ranks[1]);
        serving_stop(&serving);
}
END_TEST

static const struct {
        double max_errors;
        uint64_t n_samples, n_allowed;
} ALLOWED[] = {
        { 0, 1000, 0 },
        { 1, 1000, 1 },
        { 10, 1000, 10 },
        { 0.01, 1000, 10 },
        { 0.07, 100, 7 },
        { 0.0701, 100, 8 },
        { 1e-9, 1000, 1 },
        { 0.999, 1000, 999 },
        { 0.5, 1, 1 },
        { 1e12, 5, 1000000000000 },
        { 0.1, 1099511627776, 109951162778 },
};

START_TEST(a_share_is_rounded_up) {
        ck_assert_int_eq(max_errors_check(ALLOWED[_i].max_errors, NULL), 0);
        ck_assert_uint_eq(max_errors_allowed(ALLOWED[_i].max_errors, ALLOWED[_i].n_samples), ALLOWED[_i].n_allowed);
}
END_TEST

START_TEST(what_is_no_number_of_samples_is_refused) {
        const double WRONG[] = { -1, -0.01, 1.5, 10.000001, 2e12, NAN, -NAN, INFINITY, -INFINITY };
        struct why why;

        for (size_t i = 0; i < ARRAY_LENGTH(WRONG); i++) {
                ck_assert_int_eq(max_errors_check(WRONG[i], &why), -EINVAL);
                ck_assert_ptr_nonnull(strstr(why.text, "max_errors:"));
        }
}
END_TEST

START_TEST(a_bitmap_knows_what_was_added) {
        struct bitmap bitmap;

        ck_assert_int_eq(bitmap_init(&bitmap, 1ull << 40), 0); /* takes what is touched */
        ck_assert(bitmap_add(&bitmap, 0));
        ck_assert(!bitmap_add(&bitmap, 0));
        ck_assert(bitmap_add(&bitmap, 63));
        ck_assert(bitmap_add(&bitmap, 64));
        ck_assert(bitmap_add(&bitmap, (1ull << 40) - 1));
        ck_assert(!bitmap_add(&bitmap, (1ull << 40) - 1));
        ck_assert(!bitmap_add(&bitmap, 1ull << 40));
        bitmap_fini(&bitmap);
        ck_assert_int_eq(bitmap_init(&bitmap, 0), 0);
        ck_assert(!bitmap_add(&bitmap, 0));
        bitmap_fini(&bitmap);
        bitmap_fini(&bitmap);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("skip");
        TCase *left = tcase_create("left"), *tolerated = tcase_create("tolerated");
        SRunner *runner;
        int n_failed;

        tcase_add_loop_test(left, what_is_left_is_the_order_without_the_damaged_ones, 0, (int)ARRAY_LENGTH(SHAPES));
        tcase_add_test(left, a_batch_of_which_nothing_is_left_is_published_empty);
        tcase_add_test(left, seeking_among_damaged_samples_loses_nothing);
        tcase_set_timeout(left, 180);
        suite_add_tcase(suite, left);

        tcase_add_loop_test(tolerated, so_many_are_borne_however_often_they_are_met, 0, 2 * (int)ARRAY_LENGTH(LIMITS));
        tcase_add_loop_test(tolerated, a_share_is_rounded_up, 0, (int)ARRAY_LENGTH(ALLOWED));
        tcase_add_test(tolerated, what_is_no_number_of_samples_is_refused);
        tcase_add_test(tolerated, a_bitmap_knows_what_was_added);
        tcase_set_timeout(tolerated, 180);
        suite_add_tcase(suite, tolerated);

        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed != 0;
}
