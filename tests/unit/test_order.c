/* Orders are torch's (tests/vectors/), whole or in steps, and each partition deals out what it promises. */

#include "proto/order/epoch_plan.h"

#include <check.h>
#include <errno.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>

#include "proto/limits.h"
#include "tests/support/torch_samplers.h"
#include "tests/support/vectors.h"

#define N_ELEMENTS(array) (sizeof(array) / sizeof((array)[0]))

/* Loops over many elements test with `if`, not ck_assert: each of those writes a message to a file. */

/* randperm(n) in steps of different sizes, as indices. `inside_out` forces the large algorithm at a small n. */
static int64_t *permutation(struct dlp_torch_random *random, uint64_t n, enum dlp_torch_compat compat,
                            bool inside_out) {
        void *table = calloc(n + 1, dlp_shuffle_element_bytes(n));
        int64_t *indices = malloc((n + 1) * sizeof(*indices));
        struct dlp_shuffle shuffle;
        uint64_t n_seen = 0;

        ck_assert(table && indices);
        dlp_shuffle_init(&shuffle, random, table, n, compat);
        shuffle.inside_out |= inside_out;
        for (uint64_t step = 1; n_seen < n; step = step * 3 + 1) {
                uint64_t n_final = dlp_shuffle_advance(&shuffle, step);

                ck_assert_uint_le(n_final, n);
                for (; n_seen < n_final; n_seen++) /* read as soon as said to be final */
                        indices[n_seen] = (int64_t)dlp_shuffle_element(table, n, n_seen);
        }
        ck_assert_uint_eq(dlp_shuffle_advance(&shuffle, 1), n);
        for (uint64_t i = 0; i < n; i++)
                if ((int64_t)dlp_shuffle_element(table, n, i) != indices[i])
                        ck_abort_msg("element %ju changed after it was said to be final", (uintmax_t)i);
        free(table);
        return indices;
}

/* A list given whole under `key`, or by its first and last elements and the FNV of all. */
static void check_list(const struct vectors *vectors, const char *key, const int64_t *indices, size_t n) {
        const cJSON *list;
        size_t n_listed;

        if (vector_has(vectors->line, key)) {
                list = vector_array(vectors->line, key, &n_listed);
                ck_assert_uint_eq(n_listed, n);
                for (size_t i = 0; i < n; i++)
                        ck_assert_int_eq(indices[i], vector_item(list, i));
                return;
        }
        list = vector_array(vectors->line, "first", &n_listed);
        for (size_t i = 0; i < n_listed; i++)
                ck_assert_int_eq(indices[i], vector_item(list, i));
        list = vector_array(vectors->line, "last", &n_listed);
        for (size_t i = 0; i < n_listed; i++)
                ck_assert_int_eq(indices[n - n_listed + i], vector_item(list, i));
        ck_assert_uint_eq(fnv1a(indices, n * sizeof(*indices)), vector_hex(vector_string(vectors->line, "fnv")));
}

START_TEST(randperm_is_torchs_and_draws_as_many_words) {
        struct vectors vectors;
        unsigned n_lines = 0;

        vectors_open(&vectors, "randperm.jsonl");
        for (; vectors_next(&vectors); n_lines++)
                for (enum dlp_torch_compat compat = DLP_TORCH_2_7; compat <= DLP_TORCH_BEFORE_2_6; compat++) {
                        uint64_t n = vector_u64(vectors.text, "n");
                        struct dlp_torch_random random;
                        int64_t *indices;

                        dlp_torch_seed(&random, vector_u64(vectors.text, "seed"));
                        indices = permutation(&random, n, compat, false);
                        check_list(&vectors, "perm", indices, n);
                        ck_assert_uint_eq(dlp_torch_u64(&random), vector_hex(vector_string(vectors.line, "next_u64")));
                        free(indices);
                }
        ck_assert_uint_eq(n_lines, 132);
}
END_TEST

START_TEST(the_algorithm_for_large_n_is_torchs) {
        unsigned n_forced = 0;
        struct vectors vectors;

        vectors_open(&vectors, "randperm_branch64.jsonl");
        while (vectors_next(&vectors)) {
                uint64_t n = vector_u64(vectors.text, "n");
                struct dlp_torch_random random;
                int64_t *indices;

                if (!vector_bool(vectors.line, "forced"))
                        continue;
                dlp_torch_seed(&random, vector_u64(vectors.text, "seed"));
                indices = permutation(&random, n, DLP_TORCH_2_7, true);
                check_list(&vectors, "perm", indices, n);
                free(indices);
                n_forced++;
        }
        ck_assert_uint_eq(n_forced, 12);
}
END_TEST

/* First 16 hex digits of the SHA-256 over the table as little-endian int64. */
static uint64_t table_sha256_16(const void *table, uint64_t n) {
        EVP_MD_CTX *context = EVP_MD_CTX_new();
        uint8_t digest[EVP_MAX_MD_SIZE];
        uint64_t chunk[4096], begin = 0;
        size_t n_chunk = 0;

        EVP_DigestInit_ex(context, EVP_sha256(), NULL);
        for (uint64_t i = 0; i < n; i++) {
                chunk[n_chunk++] = dlp_shuffle_element(table, n, i);
                if (n_chunk == N_ELEMENTS(chunk) || i + 1 == n) {
                        EVP_DigestUpdate(context, chunk, n_chunk * sizeof(chunk[0]));
                        n_chunk = 0;
                }
        }
        EVP_DigestFinal_ex(context, digest, NULL);
        EVP_MD_CTX_free(context);
        for (int i = 0; i < 8; i++)
                begin = begin << 8 | digest[i];
        return begin;
}

/* 860 MB and about a minute: only with DLP_TEST_LARGE set. */
START_TEST(the_algorithms_change_at_the_size_at_which_torchs_do) {
        struct vectors vectors;

        vectors_open(&vectors, "randperm_branch64.jsonl");
        while (getenv("DLP_TEST_LARGE") && vectors_next(&vectors)) {
                uint64_t n = vector_u64(vectors.text, "n");
                enum dlp_torch_compat compat = DLP_TORCH_2_6;
                struct dlp_torch_random random;
                struct dlp_shuffle shuffle;
                const cJSON *first;
                size_t n_first;
                void *table;

                if (vector_bool(vectors.line, "forced"))
                        continue;
                if (vector_has(vectors.line, "torch") && strcmp(vector_string(vectors.line, "torch"), "<= 2.5") == 0)
                        compat = DLP_TORCH_BEFORE_2_6;
                table = calloc(n, dlp_shuffle_element_bytes(n));
                ck_assert_ptr_nonnull(table);
                dlp_torch_seed(&random, vector_u64(vectors.text, "seed"));
                dlp_shuffle_init(&shuffle, &random, table, n, compat);
                ck_assert(shuffle.inside_out == (vector_int(vectors.line, "branch") == 64));
                dlp_shuffle_advance(&shuffle, n);
                first = vector_array(vectors.line, "first", &n_first);
                for (size_t i = 0; i < n_first; i++)
                        ck_assert_int_eq((int64_t)dlp_shuffle_element(table, n, i), vector_item(first, i));
                if (vector_has(vectors.line, "sha256_16"))
                        ck_assert_uint_eq(table_sha256_16(table, n),
                                          vector_hex(vector_string(vectors.line, "sha256_16")));
                free(table);
        }
        vectors_close(&vectors);
}
END_TEST

START_TEST(the_large_algorithm_starts_where_torch_starts_it) {
        struct dlp_shuffle shuffle;

        dlp_shuffle_init(&shuffle, NULL, NULL, DLP_SHUFFLE_WIDE_FROM - 1, DLP_TORCH_2_7);
        ck_assert(!shuffle.inside_out);
        dlp_shuffle_init(&shuffle, NULL, NULL, DLP_SHUFFLE_WIDE_FROM, DLP_TORCH_2_7);
        ck_assert(shuffle.inside_out);
        dlp_shuffle_init(&shuffle, NULL, NULL, DLP_SHUFFLE_WIDE_FROM, DLP_TORCH_2_6);
        ck_assert(shuffle.inside_out);
        dlp_shuffle_init(&shuffle, NULL, NULL, DLP_SHUFFLE_WIDE_FROM, DLP_TORCH_BEFORE_2_6);
        ck_assert(!shuffle.inside_out);
        ck_assert_uint_eq(dlp_shuffle_element_bytes(1ull << 32), 4);
        ck_assert_uint_eq(dlp_shuffle_element_bytes((1ull << 32) + 1), 8);
}
END_TEST

START_TEST(tables_of_64_bits_hold_the_same_order) {
        for (uint64_t n = 1; n < 70; n++)
                for (int inside_out = 0; inside_out < 2; inside_out++) {
                        struct dlp_torch_random random;
                        uint64_t table[70] = { 0 };
                        struct dlp_shuffle shuffle;
                        int64_t *expected;

                        dlp_torch_seed(&random, n);
                        expected = permutation(&random, n, DLP_TORCH_2_7, inside_out);
                        dlp_torch_seed(&random, n);
                        dlp_shuffle_init(&shuffle, &random, table, n, DLP_TORCH_2_7);
                        shuffle.table.u64 = table;
                        shuffle.elements_are_wide = true;
                        shuffle.inside_out = inside_out;
                        dlp_shuffle_advance(&shuffle, n / 2);
                        dlp_shuffle_advance(&shuffle, UINT64_MAX);
                        for (uint64_t i = 0; i < n; i++)
                                ck_assert_int_eq((int64_t)table[i], expected[i]);
                        free(expected);
                }
}
END_TEST

static struct dlp_epoch_plan whole_epoch(uint64_t n, uint32_t world, uint32_t rank, enum dlp_partition partition) {
        const struct dlp_epoch_terms terms = {
                .n_positions = n, .world = world, .batch_size = 1, .partition = partition
        };

        return dlp_epoch_plan_make(&terms, rank, 0);
}

START_TEST(distributed_sampler_is_torchs) {
        struct vectors vectors;
        unsigned n_lines = 0;

        vectors_open(&vectors, "distributed.jsonl");
        for (; vectors_next(&vectors); n_lines++) {
                uint64_t n = vector_u64(vectors.text, "n");
                uint32_t world = (uint32_t)vector_int(vectors.line, "replicas");
                uint32_t rank = (uint32_t)vector_int(vectors.line, "rank");
                bool shuffled = vector_bool(vectors.line, "shuffle");
                enum dlp_partition partition = vector_bool(vectors.line, "drop_last") ? DLP_PARTITION_DROP
                                                                                      : DLP_PARTITION_PAD;
                struct dlp_epoch_plan plan = whole_epoch(n, world, rank, partition);
                uint64_t n_samples = plan.n_samples;
                int64_t *order, *indices = malloc((n_samples + 1) * sizeof(*indices));
                struct dlp_torch_random random;

                dlp_torch_seed(&random,
                               dlp_order_seed(vector_u64(vectors.text, "seed"), vector_u64(vectors.text, "epoch")));
                order = permutation(&random, n, DLP_TORCH_2_7, false);
                for (uint64_t step = 0; step < n_samples; step++) {
                        uint64_t position = dlp_epoch_plan_position(&plan, step);

                        indices[step] = shuffled ? order[position] : (int64_t)position;
                }
                ck_assert_uint_eq(n_samples, vector_u64(vectors.text, "len"));
                check_list(&vectors, "indices", indices, n_samples);
                free(indices);
                free(order);
        }
        ck_assert_uint_eq(n_lines, 316);
}
END_TEST

static void check_random_sampler(const struct vectors *vectors, enum dlp_torch_compat compat) {
        bool own = vectors_kind(vectors, "generator");
        uint64_t n = vector_u64(vectors->text, "n");
        uint64_t n_samples = vector_has(vectors->line, "num_samples") ? vector_u64(vectors->text, "num_samples") : n;
        bool replacement = vector_bool(vectors->line, "replacement");
        uint64_t *indices = malloc((n_samples + 1) * sizeof(*indices));
        void *table = replacement ? NULL : malloc((n + 1) * dlp_shuffle_element_bytes(n));
        struct dlp_torch_random fresh, given, *used = &given;

        dlp_torch_seed(&given, vector_u64(vectors->text, own ? "seed" : "default_seed"));
        if (!own) {
                dlp_torch_seed(&fresh, (uint64_t)dlp_torch_random63(&given));
                used = &fresh;
        }
        dlp_random_sampler(used, n, n_samples, replacement, compat, table, indices);
        check_list(vectors, "indices", (const int64_t *)indices, n_samples);
        ck_assert_uint_eq(dlp_torch_u64(&given),
                          vector_hex(vector_string(vectors->line, own ? "next_u64" : "next_u64_of_default")));
        free(table);
        free(indices);
}

static void check_subset(const struct vectors *vectors) {
        uint64_t subset[2048], table[2048], indices[2048];
        struct dlp_torch_random random;
        const cJSON *list;
        size_t n;

        list = vector_array(vectors->line, "subset", &n);
        ck_assert_uint_le(n, N_ELEMENTS(subset));
        for (size_t i = 0; i < n; i++)
                subset[i] = (uint64_t)vector_item(list, i);
        dlp_torch_seed(&random, vector_u64(vectors->text, "seed"));
        dlp_subset_random_sampler(&random, subset, n, DLP_TORCH_2_7, table, indices);
        check_list(vectors, "indices", (const int64_t *)indices, n);
        ck_assert_uint_eq(dlp_torch_u64(&random), vector_hex(vector_string(vectors->line, "next_u64")));
}

static void check_batches(const struct vectors *vectors) {
        uint64_t n = vector_u64(vectors->text, "n");
        uint32_t batch = (uint32_t)vector_int(vectors->line, "batch");
        const struct dlp_epoch_terms terms = {
                .n_positions = n, .world = 1, .batch_size = batch, .drop_last = vector_bool(vectors->line, "drop_last")
        };
        struct dlp_epoch_plan plan = dlp_epoch_plan_make(&terms, 0, 0);
        const cJSON *batches;
        int64_t expected = 0;
        size_t n_batches;

        batches = vector_array(vectors->line, "batches", &n_batches);
        ck_assert_uint_eq(plan.n_batches, n_batches);
        for (size_t i = 0; i < n_batches; i++) {
                const cJSON *one = cJSON_GetArrayItem(batches, (int)i);
                size_t n_in_batch = (size_t)cJSON_GetArraySize(one);

                ck_assert_uint_eq(dlp_epoch_plan_batch(&plan, i).first, (uint64_t)expected);
                ck_assert_uint_eq(dlp_epoch_plan_batch(&plan, i).n_samples, n_in_batch);
                for (size_t k = 0; k < n_in_batch; k++)
                        ck_assert_int_eq(vector_item(one, k), expected++);
        }
}

START_TEST(the_other_samplers_are_torchs) {
        struct vectors vectors;
        unsigned n_lines = 0;

        vectors_open(&vectors, "random_sampler.jsonl");
        for (; vectors_next(&vectors); n_lines++) {
                bool same = !vector_has(vectors.line, "same_from_torch_2_7") ||
                            vector_bool(vectors.line, "same_from_torch_2_7");

                if (vectors_kind(&vectors, "subset"))
                        check_subset(&vectors);
                else if (vectors_kind(&vectors, "batch_sequential"))
                        check_batches(&vectors);
                else {
                        check_random_sampler(&vectors, DLP_TORCH_BEFORE_2_6);
                        if (same)
                                check_random_sampler(&vectors, DLP_TORCH_2_7);
                }
        }
        ck_assert_uint_eq(n_lines, 49);
}
END_TEST

/* ---- properties of our own ----------------------------------------------------------------------------------- */

/* How often each position of 0 .. n-1 is dealt out, over all ranks. */
static void deal(uint64_t n, uint32_t world, enum dlp_partition partition, unsigned *ret_counts) {
        memset(ret_counts, 0, n * sizeof(*ret_counts));
        for (uint32_t rank = 0; rank < world; rank++) {
                struct dlp_epoch_plan plan = whole_epoch(n, world, rank, partition);

                for (uint64_t k = 0; k < plan.n_samples; k++)
                        ret_counts[dlp_epoch_plan_position(&plan, k)]++;
        }
}

START_TEST(each_partition_deals_out_what_it_promises) {
        unsigned counts[64];

        for (uint64_t n = 1; n < 64; n++)
                for (uint32_t world = 1; world < 80; world++) {
                        uint64_t n_dealt = 0;

                        bool exact = true, drop = true, pad = true;

                        deal(n, world, DLP_PARTITION_EXACT, counts);
                        for (uint64_t i = 0; i < n; i++)
                                exact &= counts[i] == 1;
                        deal(n, world, DLP_PARTITION_DROP, counts);
                        for (uint64_t i = 0; i < n; i++)
                                drop &= counts[i] == (i < n / world * world);
                        deal(n, world, DLP_PARTITION_PAD, counts);
                        for (uint64_t i = 0; i < n; i++) {
                                pad &= counts[i] >= 1;
                                n_dealt += counts[i];
                        }
                        ck_assert(exact && drop && pad);
                        ck_assert_uint_eq(n_dealt, (n + world - 1) / world * world);
                }
}
END_TEST

START_TEST(nothing_and_the_largest_things_are_fine) {
        struct dlp_epoch_terms terms = { .n_positions = 10, .world = 1 };
        uint64_t n = DLP_SAMPLES_MAX;
        struct dlp_epoch_plan plan;

        for (enum dlp_partition partition = DLP_PARTITION_PAD; partition <= DLP_PARTITION_EXACT; partition++) {
                ck_assert_uint_eq(whole_epoch(0, 7, 3, partition).n_batches, 0);
                ck_assert_uint_eq(whole_epoch(10, 7, 7, partition).n_batches, 0);
                ck_assert_uint_eq(whole_epoch(10, 0, 0, partition).n_batches, 0);
        }
        ck_assert_uint_eq(dlp_epoch_plan_make(&terms, 0, 0).n_batches, 0); /* of no samples */

        plan = whole_epoch(n - 1, DLP_WORLD_MAX, DLP_WORLD_MAX - 1, DLP_PARTITION_PAD);
        ck_assert_uint_eq(plan.n_samples, n / DLP_WORLD_MAX);
        ck_assert_uint_eq(dlp_epoch_plan_position(&plan, plan.n_samples - 1), 0); /* n - 1: padded with the first */
        ck_assert_uint_eq(dlp_dealing_position(n, DLP_WORLD_MAX, DLP_WORLD_MAX - 1, 1),
                          n * DLP_WORLD_MAX + DLP_WORLD_MAX - 1);
}
END_TEST

START_TEST(partitions_have_names) {
        enum dlp_partition partition;

        for (int i = 0; i < 3; i++) {
                ck_assert_int_eq(dlp_partition_from_name(dlp_partition_name((enum dlp_partition)i), &partition), 0);
                ck_assert_int_eq((int)partition, i);
        }
        ck_assert_ptr_null(dlp_partition_name((enum dlp_partition)3));
        ck_assert_ptr_null(dlp_partition_name((enum dlp_partition) - 1));
        ck_assert_int_eq(dlp_partition_from_name("Pad", &partition), -EINVAL);
        ck_assert_int_eq(dlp_partition_from_name("", &partition), -EINVAL);
}
END_TEST

/* Streaming must not look ahead: what is said to be final after a few steps is the whole permutation's beginning. */
START_TEST(the_first_elements_of_a_large_order_come_at_once) {
        uint64_t n = 3000000;
        uint32_t *table = calloc(n, sizeof(*table));
        struct dlp_torch_random random;
        struct dlp_shuffle shuffle;
        int64_t *whole;

        dlp_torch_seed(&random, 7);
        dlp_shuffle_init(&shuffle, &random, table, n, DLP_TORCH_2_7);
        ck_assert_uint_eq(dlp_shuffle_advance(&shuffle, 0), 0);
        ck_assert_uint_eq(dlp_shuffle_advance(&shuffle, 1000), 1000);
        dlp_torch_seed(&random, 7);
        whole = permutation(&random, n, DLP_TORCH_2_7, false);
        for (uint64_t i = 0; i < 1000; i++)
                if (table[i] != whole[i])
                        ck_abort_msg("element %ju differs", (uintmax_t)i);
        free(whole);
        free(table);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("order");
        TCase *tests = tcase_create("all");
        SRunner *runner;
        int n_failed;

        tcase_set_timeout(tests, 300);
        tcase_add_test(tests, randperm_is_torchs_and_draws_as_many_words);
        tcase_add_test(tests, the_algorithm_for_large_n_is_torchs);
        tcase_add_test(tests, the_algorithms_change_at_the_size_at_which_torchs_do);
        tcase_add_test(tests, the_large_algorithm_starts_where_torch_starts_it);
        tcase_add_test(tests, tables_of_64_bits_hold_the_same_order);
        tcase_add_test(tests, distributed_sampler_is_torchs);
        tcase_add_test(tests, the_other_samplers_are_torchs);
        tcase_add_test(tests, each_partition_deals_out_what_it_promises);
        tcase_add_test(tests, nothing_and_the_largest_things_are_fine);
        tcase_add_test(tests, partitions_have_names);
        tcase_add_test(tests, the_first_elements_of_a_large_order_come_at_once);
        suite_add_tcase(suite, tests);

        runner = srunner_create(suite);
        srunner_run_all(runner, CK_NORMAL);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
