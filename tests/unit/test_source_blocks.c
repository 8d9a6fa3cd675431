/* unit/test_source_blocks.c: what the blocks of a dataset are: shards, those of tables cut where they are long, and rows of
 * samples where there are no shards. */
#include "daemon/data/orders/source_blocks.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/data/source_type.h"

static const uint64_t SHARDS[] = { 5, 2500005, 2500006, 3548582, 3548583 }; /* where they end */

static bool shard_end(const struct source *source, uint64_t sample, uint64_t *ret_end) {
        for (size_t i = 0;; i++)
                if (sample < SHARDS[i]) {
                        *ret_end = SHARDS[i] < source->n_samples ? SHARDS[i] : source->n_samples;
                        return true;
                }
}

static const struct source_type SHARDED = { .shard_end = shard_end }, PLAIN = { 0 };

static struct source source_of(const struct source_type *type, const char *format, uint64_t n_samples) {
        return (struct source){ .type = type, .format = format, .n_samples = n_samples };
}

static void check_ends(const struct source *source, const uint64_t *ends, uint32_t n) {
        struct budget budget = { .limit_bytes = 1 << 20 };
        struct dlp_blocks blocks;
        struct why why;

        ck_assert_int_eq(source_blocks_find(source, &budget, &blocks, &why), 0);
        ck_assert_uint_eq(blocks.n, n);
        for (uint32_t b = 0; b < n; b++)
                ck_assert_uint_eq(blocks.ends[b], ends[b]);
        ck_assert_uint_eq(budget.used_bytes, n * sizeof(*ends));
        free((uint64_t *)(uintptr_t)blocks.ends);
}

START_TEST(a_file_that_is_read_through_is_a_block_however_long_it_is) {
        static const char *const FORMATS[] = { "webdataset", "tfrecord", "jsonl", "csv", "text", "plugin(own.lines)" };

        for (size_t i = 0; i < sizeof(FORMATS) / sizeof(FORMATS[0]); i++) {
                struct source source = source_of(&SHARDED, FORMATS[i], 3548583);

                check_ends(&source, SHARDS, 5);
        }
}
END_TEST

START_TEST(a_long_file_of_rows_is_cut_from_its_beginning_on) {
        static const char *const FORMATS[] = { "parquet", "arrow", "mds", "litdata", "packed" };
        static const uint64_t ENDS[] = { 5, 1048581, 2097157, 2500005, 2500006, 3548582, 3548583 };

        for (size_t i = 0; i < sizeof(FORMATS) / sizeof(FORMATS[0]); i++) {
                struct source source = source_of(&SHARDED, FORMATS[i], 3548583);

                check_ends(&source, ENDS, 7);
        }
}
END_TEST

START_TEST(without_shards_a_block_is_a_row_of_samples_and_none_goes_over_the_end_of_a_part) {
        static const uint64_t ENDS[] = { 1024, 2048, 2049 }, JOINED[] = { 1024, 1500, 1505, 1506 };
        struct source plain = source_of(&PLAIN, "imagefolder", 2049);
        struct source parts[] = { source_of(&PLAIN, "npy", 1500), source_of(&PLAIN, "npy", 0),
                                  source_of(&SHARDED, "jsonl", 6) };
        struct source_part joined[] = { { "a", &parts[0], 0 }, { "b", &parts[1], 1500 }, { "c", &parts[2], 1500 } };
        struct source all = source_of(&PLAIN, "joined", 1506);

        check_ends(&plain, ENDS, 3);
        all.parts = joined;
        all.n_parts = 3;
        check_ends(&all, JOINED, 4);
}
END_TEST

START_TEST(their_table_is_paid_for) {
        struct source source = source_of(&PLAIN, "npy", 1024 * 1000);
        struct budget budget = { .limit_bytes = 7999 };
        struct dlp_blocks blocks;
        struct why why;

        ck_assert_int_eq(source_blocks_find(&source, &budget, &blocks, &why), -ENOMEM);
        ck_assert_ptr_nonnull(strstr(why.text, "blocks"));
        ck_assert_uint_eq(budget.used_bytes, 0);
}
END_TEST

START_TEST(the_digest_says_where_they_end) {
        const uint64_t one[] = { 3, 7 }, other[] = { 4, 7 };
        char a[65], b[65];

        ck_assert_int_eq(source_blocks_digest(&(struct dlp_blocks){ one, 2 }, a), 0);
        ck_assert_int_eq(source_blocks_digest(&(struct dlp_blocks){ other, 2 }, b), 0);
        ck_assert_uint_eq(strlen(a), 64);
        ck_assert_str_ne(a, b);
        ck_assert_int_eq(source_blocks_digest(&(struct dlp_blocks){ one, 2 }, b), 0);
        ck_assert_str_eq(a, b);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("source_blocks");
        TCase *tcase = tcase_create("source_blocks");
        SRunner *runner;
        int n_failed;

        tcase_add_test(tcase, a_file_that_is_read_through_is_a_block_however_long_it_is);
        tcase_add_test(tcase, a_long_file_of_rows_is_cut_from_its_beginning_on);
        tcase_add_test(tcase, without_shards_a_block_is_a_row_of_samples_and_none_goes_over_the_end_of_a_part);
        tcase_add_test(tcase, their_table_is_paid_for);
        tcase_add_test(tcase, the_digest_says_where_they_end);
        suite_add_tcase(suite, tcase);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
