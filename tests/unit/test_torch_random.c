/* The generator gives what torch 1.13's gave (tests/vectors/rng.jsonl), and what 2.7 changed has a switch. */

#include "proto/order/torch_random.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/torch_samplers.h"
#include "tests/support/vectors.h"

/* Element `idx` of the array after "key": exactly, also above 2^53. */
static int64_t exact_item(const char *text, const char *key, size_t idx) {
        char quoted[64];
        const char *at;
        char *end;

        snprintf(quoted, sizeof(quoted), "\"%s\":[", key);
        at = strstr(text, quoted);
        ck_assert_ptr_nonnull(at);
        at += strlen(quoted);
        for (; idx > 0; idx--) {
                at = strchr(at, ',');
                ck_assert_ptr_nonnull(at);
                at++;
        }
        errno = 0;
        int64_t value = strtoll(at, &end, 10);
        ck_assert(end != at && errno == 0);
        return value;
}

static uint64_t item_hex(const cJSON *array, size_t idx) {
        return vector_hex(cJSON_GetArrayItem(array, (int)idx)->valuestring);
}

static uint32_t bits_f32(float value) {
        uint32_t bits;

        memcpy(&bits, &value, sizeof(bits));
        return bits;
}

static uint64_t bits_f64(double value) {
        uint64_t bits;

        memcpy(&bits, &value, sizeof(bits));
        return bits;
}

/* FNV of what torch.Generator.get_state() would say: seed, left, seeded, next, the state words, no normal cached. */
static uint64_t state_fnv(const struct dlp_torch_random *random, uint64_t seed, bool fresh) {
        uint8_t blob[5056] = { 0 };
        int32_t left = fresh ? 1 : (int32_t)(DLP_TORCH_BLOCK_WORDS - random->n_used) + 1, seeded = 1;
        uint64_t next = fresh ? 0 : random->n_used;

        memcpy(blob, &seed, 8);
        memcpy(blob + 8, &left, 4);
        memcpy(blob + 12, &seeded, 4);
        memcpy(blob + 16, &next, 8);
        for (size_t i = 0; i < DLP_TORCH_BLOCK_WORDS; i++) {
                uint64_t word = random->state[i];

                memcpy(blob + 24 + 8 * i, &word, 8);
        }
        return fnv1a(blob, sizeof(blob));
}

static void check_words(const struct vectors *vectors) {
        uint64_t seed = vector_u64(vectors->text, "seed");
        struct dlp_torch_random random;
        uint32_t words[800];
        const cJSON *first, *across;
        size_t n;

        dlp_torch_seed(&random, seed);
        ck_assert_uint_eq(state_fnv(&random, seed, true), vector_hex(vector_string(vectors->line, "state_fnv_fresh")));
        for (size_t i = 0; i < 800; i++)
                words[i] = dlp_torch_u32(&random);

        first = vector_array(vectors->line, "u32", &n);
        for (size_t i = 0; i < n; i++)
                ck_assert_uint_eq(words[i], (uint64_t)vector_item(first, i));
        across = vector_array(vectors->line, "u32_620_629", &n);
        for (size_t i = 0; i < n; i++)
                ck_assert_uint_eq(words[620 + i], (uint64_t)vector_item(across, i));
        ck_assert_uint_eq(fnv1a(words, sizeof(words)), vector_hex(vector_string(vectors->line, "fnv_first_800")));
        ck_assert_uint_eq(state_fnv(&random, seed, false),
                          vector_hex(vector_string(vectors->line, "state_fnv_after_800")));
}

static void check_scalars(const struct vectors *vectors) {
        struct dlp_torch_random random;
        const cJSON *list;
        size_t n;

        dlp_torch_seed(&random, vector_u64(vectors->text, "seed"));
        list = vector_array(vectors->line, "rand_f32", &n);
        for (size_t i = 0; i < n; i++)
                ck_assert_uint_eq(bits_f32(dlp_torch_f32(&random)), item_hex(list, i));
        list = vector_array(vectors->line, "rand_f64", &n);
        for (size_t i = 0; i < n; i++)
                ck_assert_uint_eq(bits_f64(dlp_torch_f64(&random)), item_hex(list, i));
        vector_array(vectors->line, "random63", &n);
        for (size_t i = 0; i < n; i++)
                ck_assert_int_eq(dlp_torch_random63(&random), exact_item(vectors->text, "random63", i));
        list = vector_array(vectors->line, "exp1_f64", &n);
        for (size_t i = 0; i < n; i++)
                ck_assert_uint_eq(bits_f64(-1.0 * log(1.0 - dlp_torch_f64(&random))), item_hex(list, i));
        ck_assert_uint_eq(dlp_torch_u64(&random), vector_hex(vector_string(vectors->line, "next_u64")));
}

static void check_randint(const struct vectors *vectors) {
        uint64_t seed = vector_u64(vectors->text, "seed");
        int64_t low = vector_i64(vectors->text, "lo"), high = vector_i64(vectors->text, "hi");
        bool same = vector_bool(vectors->line, "same_from_torch_2_7"), all_same = true;
        struct dlp_torch_random old, new;
        size_t n;

        dlp_torch_seed(&old, seed);
        dlp_torch_seed(&new, seed);
        vector_array(vectors->line, "values", &n);
        for (size_t i = 0; i < n; i++) {
                int64_t expected = exact_item(vectors->text, "values", i);

                ck_assert_int_eq(dlp_torch_randint(&old, low, high, DLP_TORCH_2_6), expected);
                all_same &= dlp_torch_randint(&new, low, high, DLP_TORCH_2_7) == expected;
        }
        ck_assert(all_same == same);
        ck_assert_uint_eq(dlp_torch_u64(&old), vector_hex(vector_string(vectors->line, "next_u64")));
}

START_TEST(every_draw_is_the_one_that_torch_made) {
        unsigned n_words = 0, n_scalars = 0, n_randint = 0;
        struct vectors vectors;

        vectors_open(&vectors, "rng.jsonl");
        while (vectors_next(&vectors))
                if (vectors_kind(&vectors, "words")) {
                        check_words(&vectors);
                        n_words++;
                } else if (vectors_kind(&vectors, "scalars")) {
                        check_scalars(&vectors);
                        n_scalars++;
                } else if (vectors_kind(&vectors, "randint")) {
                        check_randint(&vectors);
                        n_randint++;
                } else
                        ck_abort_msg("rng.jsonl:%u: a kind that this test does not know", vectors.number);

        ck_assert_uint_eq(n_words, 18);
        ck_assert_uint_eq(n_scalars, 18);
        ck_assert_uint_eq(n_randint, 13);
}
END_TEST

START_TEST(only_the_low_32_bits_of_a_seed_count) {
        struct dlp_torch_random a, b;

        dlp_torch_seed(&a, 42);
        dlp_torch_seed(&b, 0xdeadbeef00000000ull + 42);
        for (int i = 0; i < 2000; i++)
                ck_assert_uint_eq(dlp_torch_u32(&a), dlp_torch_u32(&b));
}
END_TEST

/* Published for torch 2.13.0. */
START_TEST(a_newer_torch_draws_small_integers_the_same_way) {
        static const int64_t EXPECTED[] = { 75, 71, 6, 65, 16, 64 };
        struct dlp_torch_random random;

        dlp_torch_seed(&random, 1234);
        for (int i = 0; i < 6; i++)
                ck_assert_int_eq(dlp_torch_randint(&random, 0, 100, DLP_TORCH_2_7), EXPECTED[i]);
}
END_TEST

int main(void) {
        Suite *suite = suite_create("torch_random");
        TCase *tests = tcase_create("all");
        SRunner *runner;
        int n_failed;

        tcase_add_test(tests, every_draw_is_the_one_that_torch_made);
        tcase_add_test(tests, only_the_low_32_bits_of_a_seed_count);
        tcase_add_test(tests, a_newer_torch_draws_small_integers_the_same_way);
        suite_add_tcase(suite, tests);

        runner = srunner_create(suite);
        srunner_run_all(runner, CK_NORMAL);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
