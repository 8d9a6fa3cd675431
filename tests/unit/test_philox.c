/* unit/test_philox.c: a sample's random numbers are those of the definition, and nobody else's. */
#include "daemon/augment/crop.h"
#include "proto/order/philox.h"
#include "tests/support/vectors.h"

#include <check.h>
#include <stdlib.h>

static void read_words(const cJSON *line, const char *key, uint32_t *ret_words) {
        size_t n;
        const cJSON *array = vector_array(line, key, &n);

        for (size_t i = 0; i < n; i++)
                ret_words[i] = (uint32_t)vector_hex(cJSON_GetArrayItem(array, (int)i)->valuestring);
}

static struct range read_range(const cJSON *line, const char *key) {
        const cJSON *array = vector_array(line, key, NULL);

        return (struct range){ cJSON_GetArrayItem(array, 0)->valuedouble, cJSON_GetArrayItem(array, 1)->valuedouble };
}

static struct dlp_philox stream_of(const struct vectors *vectors) {
        struct dlp_philox philox;

        dlp_philox_init(&philox, vector_u64(vectors->text, "seed"), (uint32_t)vector_u64(vectors->text, "epoch"),
                        vector_u64(vectors->text, "index"), (uint16_t)vector_int(vectors->line, "slot"));
        return philox;
}

START_TEST(blocks_equal_the_published_answers) {
        struct vectors vectors;
        unsigned n = 0;

        vectors_open(&vectors, "own_definitions.jsonl");
        while (vectors_next(&vectors)) {
                uint32_t counter[4], key[2], want[4], words[4];

                if (!vectors_kind(&vectors, "philox4x32_10"))
                        continue;
                read_words(vectors.line, "ctr", counter);
                read_words(vectors.line, "key", key);
                read_words(vectors.line, "out", want);
                dlp_philox_block(counter, key, words);
                for (unsigned i = 0; i < 4; i++)
                        ck_assert_uint_eq(words[i], want[i]);
                n++;
        }
        ck_assert_uint_ge(n, 3);
}
END_TEST

START_TEST(a_stream_depends_on_seed_epoch_sample_and_step) {
        struct vectors vectors;
        unsigned n = 0;

        vectors_open(&vectors, "own_definitions.jsonl");
        while (vectors_next(&vectors)) {
                struct dlp_philox philox;
                uint32_t want[9];

                if (!vectors_kind(&vectors, "stream"))
                        continue;
                philox = stream_of(&vectors);
                read_words(vectors.line, "u32", want);
                for (unsigned i = 0; i < 9; i++)
                        ck_assert_uint_eq(dlp_philox_u32(&philox), want[i]);
                n++;
        }
        ck_assert_uint_ge(n, 3);
}
END_TEST

START_TEST(streams_of_draws_have_seeds_of_their_own_and_the_first_is_the_seed) {
        static const uint64_t SEEDS[] = { 0, 1, 3, UINT64_MAX };
        static const uint64_t DRAWS[] = { 0, 1, 2, 1ull << 32, UINT64_MAX };
        uint64_t seen[sizeof(SEEDS) / sizeof(SEEDS[0]) * sizeof(DRAWS) / sizeof(DRAWS[0])];
        size_t n = 0;

        for (size_t i = 0; i < sizeof(SEEDS) / sizeof(SEEDS[0]); i++)
                for (size_t k = 0; k < sizeof(DRAWS) / sizeof(DRAWS[0]); k++) {
                        seen[n] = dlp_philox_seed(SEEDS[i], DRAWS[k]);
                        if (DRAWS[k] == 0)
                                ck_assert_uint_eq(seen[n], SEEDS[i]);
                        for (size_t other = 0; other < n; other++)
                                ck_assert_uint_ne(seen[n], seen[other]);
                        n++;
                }
        /* The block of the key 0 and the counter 1: a stored state must go on with the same draws in later versions. */
        ck_assert_uint_eq(dlp_philox_seed(0, 1), 0x5cb200dbf8e4cca4ull);
}
END_TEST

START_TEST(a_crop_is_drawn_as_the_definition_says) {
        struct vectors vectors;
        unsigned n = 0;

        vectors_open(&vectors, "own_definitions.jsonl");
        while (vectors_next(&vectors)) {
                struct dlp_philox philox;
                struct box box;
                const cJSON *want;

                if (!vectors_kind(&vectors, "stream_rrc"))
                        continue;
                philox = stream_of(&vectors);
                crop_random_resized(&philox, (uint32_t)vector_int(vectors.line, "width"),
                                    (uint32_t)vector_int(vectors.line, "height"), read_range(vectors.line, "scale"),
                                    read_range(vectors.line, "ratio"), &box);
                want = vector_array(vectors.line, "ijhw", NULL);
                ck_assert_int_eq(box.y, vector_item(want, 0));
                ck_assert_int_eq(box.x, vector_item(want, 1));
                ck_assert_int_eq(box.height, vector_item(want, 2));
                ck_assert_int_eq(box.width, vector_item(want, 3));
                n++;
        }
        ck_assert_uint_ge(n, 3);
}
END_TEST

START_TEST(floats_are_below_one_and_use_the_high_bits) {
        struct dlp_philox a, b;

        dlp_philox_init(&a, 7, 1, 2, 3);
        b = a;
        for (unsigned i = 0; i < 10000; i++) {
                uint32_t word = dlp_philox_u32(&b);
                float value = dlp_philox_f32(&a);

                if (!(value >= 0 && value < 1 && value == (float)(word >> 8) / 16777216.0f))
                        ck_abort_msg("word 0x%08x gives %g", word, (double)value);
        }
        for (unsigned i = 0; i < 10000; i++) {
                double value = dlp_philox_f64(&a);

                if (!(value >= 0 && value < 1))
                        ck_abort_msg("%g is not in [0, 1)", value);
        }
}
END_TEST

START_TEST(below_n_reaches_every_value_and_no_other) {
        unsigned seen[7] = {};
        struct dlp_philox philox;

        dlp_philox_init(&philox, 1, 0, 0, 0);
        for (unsigned i = 0; i < 7000; i++) {
                uint32_t value = dlp_philox_below(&philox, 7);

                if (value >= 7)
                        ck_abort_msg("%u is not below 7", value);
                seen[value]++;
        }
        for (unsigned i = 0; i < 7; i++)
                ck_assert_uint_gt(seen[i], 800); /* 1,000 expected, deviation 29 */
        ck_assert_uint_eq(dlp_philox_below(&philox, 1), 0);
}
END_TEST

/* Every picture has a crop that lies within it and is not empty, strips and extreme ratios included. */
START_TEST(a_random_crop_lies_within_the_picture) {
        static const struct range scales[] = { { 0.08, 1 }, { 0, 1 }, { 1, 1 }, { 50, 100 }, { 0, 1e-9 } };
        static const struct range ratios[] = { { 0.75, 4.0 / 3 }, { 0.001, 1000 }, { 1000, 1000 }, { 0.001, 0.001 } };
        struct dlp_philox sizes;

        dlp_philox_init(&sizes, 99, 0, 0, 0);
        for (unsigned i = 0; i < 20000; i++) {
                uint32_t width = 1 + dlp_philox_below(&sizes, i % 3 ? 5000 : 5),
                         height = 1 + dlp_philox_below(&sizes, i % 5 ? 5000 : 3);
                struct dlp_philox philox;
                struct box box;

                dlp_philox_init(&philox, i, 1, 2, 3);
                crop_random_resized(&philox, width, height, scales[i % 5], ratios[i % 4], &box);
                if (box.width < 1 || box.width > width || box.x > width - box.width || box.height < 1 ||
                    box.height > height || box.y > height - box.height)
                        ck_abort_msg("crop %u of %u x %u: %u x %u at (%u, %u)", i, width, height, box.width, box.height,
                                     box.x, box.y);
        }
}
END_TEST

int main(void) {
        Suite *suite = suite_create("philox");
        TCase *tcase = tcase_create("philox");
        SRunner *runner;
        int n_failed;

        tcase_add_test(tcase, blocks_equal_the_published_answers);
        tcase_add_test(tcase, a_stream_depends_on_seed_epoch_sample_and_step);
        tcase_add_test(tcase, a_crop_is_drawn_as_the_definition_says);
        tcase_add_test(tcase, streams_of_draws_have_seeds_of_their_own_and_the_first_is_the_seed);
        tcase_add_test(tcase, floats_are_below_one_and_use_the_high_bits);
        tcase_add_test(tcase, below_n_reaches_every_value_and_no_other);
        tcase_add_test(tcase, a_random_crop_lies_within_the_picture);
        suite_add_tcase(suite, tcase);
        runner = srunner_create(suite);
        srunner_run_all(runner, CK_ENV);
        n_failed = srunner_ntests_failed(runner);
        srunner_free(runner);
        return n_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
