/* unit/test_tdperm.c: the order without a table is the one that was defined, and a permutation both ways. */
#include "proto/order/tdperm.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/vectors.h"

#define WHOLE_UP_TO 70000u /* larger vectors have a few positions only */

/* A number of a line's list exactly: cJSON's doubles end at 2^53. */
static uint64_t exact_item(const char *text, const char *key, size_t idx) {
        char pattern[32];
        const char *at;

        snprintf(pattern, sizeof(pattern), "\"%s\":[", key);
        at = strstr(text, pattern);
        ck_assert_ptr_nonnull(at);
        at += strlen(pattern);
        while (idx-- > 0)
                at = strchr(at, ',') + 1;
        return strtoull(at, NULL, 10);
}

/* The rounds of tdperm.c, backwards: what says that each index stands at one position alone. */
static uint64_t round_of(uint64_t half, uint64_t key, uint32_t n_bits) {
        uint64_t mixed = (half ^ key) * 0x9e3779b97f4a7c15ull;

        mixed = (mixed ^ mixed >> 32) * 0xd6e8feb86659fd93ull;
        mixed = (mixed ^ mixed >> 32) * 0xd6e8feb86659fd93ull;
        return mixed >> (64 - n_bits);
}

static uint64_t back(const struct dlp_tdperm *tdperm, uint64_t value) {
        uint64_t high = value >> tdperm->low_bits, low = value & ((1ull << tdperm->low_bits) - 1);

        for (unsigned i = DLP_TDPERM_ROUNDS; i > 0; i -= 2) {
                low ^= round_of(high, tdperm->keys[i - 1], tdperm->low_bits);
                high ^= round_of(low, tdperm->keys[i - 2], tdperm->high_bits);
        }
        return high << tdperm->low_bits | low;
}

/* The position of `index` < n. */
static uint64_t find_position(const struct dlp_tdperm *tdperm, uint64_t index) {
        uint64_t position = index < 2 ? index ^ tdperm->flip : index;

        do
                position = back(tdperm, position);
        while (position >= tdperm->n);
        return position;
}

static void check_keys(const struct vectors *vectors, const struct dlp_tdperm *tdperm) {
        const cJSON *keys = vector_array(vectors->line, "round_keys", NULL);

        for (int i = 0; i < (int)DLP_TDPERM_ROUNDS; i++)
                ck_assert_uint_eq(tdperm->keys[i], vector_hex(cJSON_GetArrayItem(keys, i)->valuestring));
        ck_assert_uint_eq(tdperm->flip, (unsigned)vector_int(vectors->line, "flip"));
}

static void check_whole(const struct vectors *vectors, const struct dlp_tdperm *tdperm) {
        uint64_t hash = FNV1A_BEGIN;

        for (uint64_t i = 0; i < tdperm->n; i++) {
                int64_t index = (int64_t)dlp_tdperm_at(tdperm, i);

                hash = fnv1a_more(hash, &index, sizeof(index));
        }
        ck_assert_uint_eq(hash, vector_hex(vector_string(vectors->line, "fnv_all")));
}

START_TEST(the_order_is_the_one_of_the_vectors) {
        struct vectors vectors;
        unsigned n_lines = 0;

        vectors_open(&vectors, "own_definitions.jsonl");
        while (vectors_next(&vectors)) {
                struct dlp_tdperm tdperm;
                size_t n_positions;

                if (!vectors_kind(&vectors, "tdperm1"))
                        continue;
                dlp_tdperm_init(&tdperm, vector_u64(vectors.text, "seed"), vector_u64(vectors.text, "epoch"), 0,
                                vector_u64(vectors.text, "n"));
                vector_array(vectors.line, "positions", &n_positions);
                for (size_t i = 0; i < n_positions; i++) {
                        uint64_t position = exact_item(vectors.text, "positions", i);
                        uint64_t index = exact_item(vectors.text, "indices", i);

                        ck_assert_uint_eq(dlp_tdperm_at(&tdperm, position), index);
                        ck_assert_uint_eq(find_position(&tdperm, index), position);
                }
                if (vector_has(vectors.line, "round_keys"))
                        check_keys(&vectors, &tdperm);
                if (tdperm.n <= WHOLE_UP_TO)
                        check_whole(&vectors, &tdperm);
                n_lines++;
        }
        ck_assert_uint_eq(n_lines, 57);
}
END_TEST

START_TEST(each_index_comes_once_and_finds_its_position) {
        static const uint64_t SIZES[] = { 1, 2, 3, 127, 128, 129, 255, 256, 257, 1000, 4097, 65536, 100003 };

        for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++) {
                uint8_t *seen = calloc(SIZES[i], 1);
                struct dlp_tdperm tdperm;

                dlp_tdperm_init(&tdperm, 7 + i, i, 0, SIZES[i]);
                for (uint64_t position = 0; position < SIZES[i]; position++) {
                        uint64_t index = dlp_tdperm_at(&tdperm, position);

                        if (index >= SIZES[i] || seen[index]++ || find_position(&tdperm, index) != position)
                                ck_abort_msg("n %ju: position %ju gives %ju", (uintmax_t)SIZES[i], (uintmax_t)position,
                                             (uintmax_t)index);
                }
                free(seen);
        }
}
END_TEST

START_TEST(the_largest_datasets_have_an_order_too) {
        static const uint64_t SIZES[] = { 1ull << 40, (1ull << 40) - 1, (1ull << 62) + 1, 1ull << 63 };

        for (size_t i = 0; i < sizeof(SIZES) / sizeof(SIZES[0]); i++) {
                struct dlp_tdperm tdperm;

                dlp_tdperm_init(&tdperm, UINT64_MAX, UINT32_MAX, 0, SIZES[i]);
                for (uint64_t k = 0; k < 1000; k++) {
                        uint64_t position = k % 2 ? SIZES[i] - 1 - k : k, index = dlp_tdperm_at(&tdperm, position);

                        ck_assert(index < SIZES[i]);
                        ck_assert_uint_eq(find_position(&tdperm, index), position);
                }
        }
}
END_TEST

/* Seed 0 of epoch 1 is not seed 1 of epoch 0, as it is for torch; and all 64 bits of a seed count. */
START_TEST(seed_and_epoch_each_make_another_order) {
        static const uint64_t PAIRS[][2] = { { 0, 0 }, { 0, 1 }, { 1, 0 }, { 1ull << 32, 0 }, { 0, UINT32_MAX } };
        struct dlp_tdperm a, b;

        for (size_t i = 0; i < 5; i++)
                for (size_t k = 0; k < i; k++) {
                        unsigned n_same = 0;

                        dlp_tdperm_init(&a, PAIRS[i][0], PAIRS[i][1], 0, 10000);
                        dlp_tdperm_init(&b, PAIRS[k][0], PAIRS[k][1], 0, 10000);
                        for (uint64_t position = 0; position < 10000; position++)
                                n_same += dlp_tdperm_at(&a, position) == dlp_tdperm_at(&b, position);
                        ck_assert_uint_lt(n_same, 20); /* one is expected */
                }
}
END_TEST

int main(void) {
        Suite *suite = suite_create("tdperm");
        TCase *tcase = tcase_create("tdperm");
        SRunner *runner;
        int n_failed;

        tcase_add_test(tcase, the_order_is_the_one_of_the_vectors);
        tcase_add_test(tcase, each_index_comes_once_and_finds_its_position);
        tcase_add_test(tcase, the_largest_datasets_have_an_order_too);
        tcase_add_test(tcase, seed_and_epoch_each_make_another_order);
        suite_add_tcase(suite, tcase);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
