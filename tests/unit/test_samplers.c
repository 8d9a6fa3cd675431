/* Samplers made of steps are torch's where torch has them (tests/vectors/), and choose each sample as often as they
 * promise. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/maker.h"
#include "tests/support/suite.h"
#include "tests/support/vectors.h"

static struct maker maker;

/* ---- help ------------------------------------------------------------------------------------------------------ */

static void must_make(const char *text) {
        int r = maker_order(&maker, text);

        if (r < 0)
                ck_abort_msg("%s: %s", text, maker.why.text);
}

static void must_refuse(const char *text, const char *reason) {
        int r = maker_order(&maker, text);

        if (r != -EINVAL)
                ck_abort_msg("%s: %d instead of -EINVAL", text, r);
        ck_assert_str_eq(maker.why.text, reason);
}

static void must_be(const uint64_t *samples, uint64_t n) {
        ck_assert_uint_eq(maker.order.n_positions, n);
        for (uint64_t i = 0; i < n; i++)
                ck_assert_uint_eq(dlp_order_sample(&maker.order, i), samples[i]);
}

/* A list that is given whole under `key`, or by its first and last elements and the FNV of all. */
static void must_be_listed(const struct vectors *vectors, const char *key) {
        uint64_t n = maker.order.n_positions, hash = FNV1A_BEGIN;
        const cJSON *list;
        size_t n_listed;

        if (vector_has(vectors->line, key)) {
                list = vector_array(vectors->line, key, &n_listed);
                ck_assert_uint_eq(n_listed, n);
                for (size_t i = 0; i < n; i++)
                        ck_assert_int_eq((int64_t)dlp_order_sample(&maker.order, i), vector_item(list, i));
                return;
        }
        for (uint64_t i = 0; i < n; i++) {
                int64_t sample = (int64_t)dlp_order_sample(&maker.order, i);

                hash = fnv1a_more(hash, &sample, sizeof(sample));
        }
        ck_assert_uint_eq(hash, vector_hex(vector_string(vectors->line, "fnv")));
}

/* Numbers for tests, the same in each run. */
static uint64_t drawn;

static uint64_t draw(uint64_t n) {
        drawn = drawn * 6364136223846793005ull + 1442695040888963407ull;
        return (drawn >> 33) % n;
}

/* ---- weighted -------------------------------------------------------------------------------------------------- */

static uint64_t read_weights(const struct vectors *vectors, double **ret_weights) {
        const cJSON *list = NULL;
        uint64_t n;
        size_t n_listed;

        if (vector_has(vectors->line, "weights")) {
                list = vector_array(vectors->line, "weights", &n_listed);
                n = n_listed;
        } else {
                n = vector_u64(vectors->text, "n");
        }
        *ret_weights = calloc(n, sizeof(**ret_weights));
        for (uint64_t i = 0; i < n; i++)
                (*ret_weights)[i] = list ? cJSON_GetArrayItem(list, (int)i)->valuedouble : (double)(i % 97 + 1);
        return n;
}

static void check_weighted(const struct vectors *vectors, enum dlp_torch_compat compat, const char *key) {
        double *weights;
        char text[128];

        maker_init(&maker, read_weights(vectors, &weights));
        maker_column(&maker, "w", DLP_DTYPE_FLOAT64, weights, maker.terms.base.n_samples);
        maker.terms.base.seed = vector_u64(vectors->text, "seed");
        maker.terms.base.compat = compat;
        snprintf(text, sizeof(text), "weighted(column=w, n=%d, replacement=%s)",
                 vector_int(vectors->line, "num_samples"),
                 vector_bool(vectors->line, "replacement") ? "true" : "false");
        must_make(text);
        must_be_listed(vectors, key);
        maker_fini(&maker);
        free(weights);
}

START_TEST(weighted_draws_are_torchs) {
        struct vectors vectors;
        unsigned n_lines = 0, n_single = 0;

        vectors_open(&vectors, "weighted.jsonl");
        for (; vectors_next(&vectors); n_lines++) {
                bool is_single = vector_has(vectors.line, "indices_from_torch_2_0_no_mkl");

                check_weighted(&vectors, DLP_TORCH_BEFORE_2_6, "indices");
                check_weighted(&vectors, DLP_TORCH_2_7, is_single ? "indices_from_torch_2_0_no_mkl" : "indices");
                n_single += is_single;
        }
        ck_assert_uint_eq(n_lines, 55);
        ck_assert_uint_gt(n_single, 5);
}
END_TEST

/* What the definition says, without blocks and guides. */
static uint64_t drawn_plainly(const double *weights, uint64_t n, double u) {
        double sum = 0, total = 0;

        for (uint64_t i = 0; i < n; i++)
                total += weights[i];
        for (uint64_t i = 0; i < n; i++) {
                sum += weights[i];
                if (sum / total >= u)
                        return i;
        }
        return n - 1;
}

START_TEST(weighted_draws_are_the_first_sum_that_reaches_them) {
        for (unsigned round = 0; round < 300; round++) {
                uint64_t n = 1 + draw(1000);
                double *weights = calloc(n, sizeof(*weights));
                struct dlp_torch_random random;

                for (uint64_t i = 0; i < n; i++)
                        weights[i] = draw(4) == 0 ? 0 : exp((double)draw(1000) / 1000 * (double)(round % 60));
                weights[draw(n)] = 1;
                maker_init(&maker, n);
                maker_column(&maker, "w", DLP_DTYPE_FLOAT64, weights, n);
                maker.terms.base.seed = round;
                must_make("weighted(w, n=500)");
                dlp_torch_seed(&random, round);
                for (uint64_t i = 0; i < 500; i++) {
                        double u = (double)(dlp_torch_u64(&random) & ((1ull << 53) - 1)) * 0x1p-53;

                        ck_assert(dlp_order_sample(&maker.order, i) == drawn_plainly(weights, n, u));
                }
                maker_fini(&maker);
                free(weights);
        }
}
END_TEST

START_TEST(more_weights_than_torch_takes_are_drawn_as_often_as_they_say) {
        uint64_t n = (1u << 24) + 1000, n_first = 0, n_zero = 0;
        float *weights = calloc(n, sizeof(*weights));

        for (uint64_t i = 0; i < n; i++)
                weights[i] = i % 64 == 63 ? 0 : i < n / 2 ? 3 : 1;
        maker_init(&maker, n);
        maker_column(&maker, "w", DLP_DTYPE_FLOAT32, weights, n);
        must_make("weighted(w, n=100000)");
        for (uint64_t i = 0; i < 100000; i++) {
                n_first += dlp_order_sample(&maker.order, i) < n / 2;
                n_zero += weights[dlp_order_sample(&maker.order, i)] == 0;
        }
        ck_assert_uint_eq(n_zero, 0);
        ck_assert_uint_gt(n_first, 74000);
        ck_assert_uint_lt(n_first, 76000);
        maker_fini(&maker);
        free(weights);
}
END_TEST

START_TEST(weights_that_cannot_be_drawn_are_refused_with_their_sample) {
        double weights[100] = { 0 };
        int64_t wholes[3] = { 1, 2, -3 };

        maker_init(&maker, 100);
        maker_column(&maker, "w", DLP_DTYPE_FLOAT64, weights, 100);
        must_refuse("weighted(column=w)", "weighted: all 100 weights of \"w\" are 0");
        must_refuse("weighted(column=w, replacement=false)", "weighted: all 100 weights of \"w\" are 0");
        weights[0] = 1;
        weights[73] = -0.5;
        must_refuse("weighted(column=w)",
                    "weighted: \"w\" has the weight -0.5 at sample 73; a weight is a finite number, 0 or more");
        must_refuse("weighted(column=w, replacement=false)",
                    "weighted: \"w\" has the weight -0.5 at sample 73; a weight is a finite number, 0 or more");
        weights[73] = INFINITY;
        must_refuse("weighted(column=w)",
                    "weighted: \"w\" has the weight inf at sample 73; a weight is a finite number, 0 or more");
        weights[73] = NAN;
        ck_assert_int_eq(maker_order(&maker, "weighted(column=w)"), -EINVAL);
        ck_assert_ptr_nonnull(strstr(maker.why.text, "nan at sample 73"));
        weights[73] = 1e308;
        weights[74] = 1e308;
        must_refuse("weighted(column=w)", "weighted: the 100 weights of \"w\" have an infinite sum");
        weights[73] = weights[74] = 1;
        must_refuse("weighted(column=w, n=4, replacement=false)",
                    "weighted: n = 4, but \"w\" has 3 weights above 0; give a smaller n, or replacement=true");
        must_refuse("weighted(column=v)", "weighted: there is no column \"v\"");
        maker.columns[0].n_values = 99;
        must_refuse("weighted(column=w)", "weighted: \"w\" has 99 values, but the dataset has 100 samples");
        maker_init(&maker, 3);
        maker_column(&maker, "w", DLP_DTYPE_INT64, wholes, 3);
        must_refuse("weighted(column=w)",
                    "weighted: \"w\" has the weight -3 at sample 2; a weight is a finite number, 0 or more");
        maker_init(&maker, 0);
        maker_column(&maker, "w", DLP_DTYPE_INT64, wholes, 0);
        must_refuse("weighted(column=w)", "weighted: the dataset has no samples");
}
END_TEST

/* ---- classes --------------------------------------------------------------------------------------------------- */

START_TEST(balanced_classes_are_drawn_as_torch_draws_their_weights) {
        static const int64_t SPREAD[] = { 1, 1000003, -77777777777 };

        for (unsigned way = 0; way < 3; way++) {
                uint64_t n = 5000, counts[7] = { 0 }, *classes = calloc(n, sizeof(*classes));
                int64_t *labels = calloc(n, sizeof(*labels));
                double *weights = calloc(n, sizeof(*weights));
                uint64_t samples[2000];

                for (uint64_t i = 0; i < n; i++)
                        counts[classes[i] = draw(7) * draw(7) / 6]++;
                for (uint64_t i = 0; i < n; i++) {
                        labels[i] = (int64_t)classes[i] * SPREAD[way] - 3;
                        weights[i] = 1.0 / (double)counts[classes[i]];
                }
                maker_init(&maker, n);
                maker_column(&maker, "label", DLP_DTYPE_INT64, labels, n);
                maker_column(&maker, "w", DLP_DTYPE_FLOAT64, weights, n);
                must_make("weighted(w, n=2000)");
                for (uint64_t i = 0; i < 2000; i++)
                        samples[i] = dlp_order_sample(&maker.order, i);
                must_make("class_balanced(column=label, n=2000)");
                must_be(samples, 2000);
                maker_fini(&maker);
                free(classes);
                free(labels);
                free(weights);
        }
}
END_TEST

START_TEST(labels_that_are_no_classes_are_refused) {
        double labels[4] = { 0 };

        maker_init(&maker, 4);
        maker_column(&maker, "label", DLP_DTYPE_FLOAT64, labels, 4);
        must_refuse("class_balanced(label)", "class_balanced: \"label\" has float64; labels are whole numbers");
}
END_TEST

/* ---- random, subset, random_split ------------------------------------------------------------------------------ */

START_TEST(random_is_torchs_random_sampler) {
        struct vectors vectors;
        unsigned n_lines = 0;

        vectors_open(&vectors, "random_sampler.jsonl");
        while (vectors_next(&vectors)) {
                char text[128], n[48] = "";

                if (!vectors_kind(&vectors, "generator") || vector_u64(vectors.text, "n") > 1u << 20)
                        continue;
                maker_init(&maker, vector_u64(vectors.text, "n"));
                maker.terms.base.seed = vector_u64(vectors.text, "seed");
                if (vector_has(vectors.line, "num_samples"))
                        snprintf(n, sizeof(n), ", n=%d", vector_int(vectors.line, "num_samples"));
                snprintf(text, sizeof(text), "random(replacement=%s%s)",
                         vector_bool(vectors.line, "replacement") ? "true" : "false", n);
                must_make(text);
                must_be_listed(&vectors, "indices");
                maker_fini(&maker);
                n_lines++;
        }
        ck_assert_uint_gt(n_lines, 30);
}
END_TEST

START_TEST(subset_is_torchs_subset_random_sampler) {
        struct vectors vectors;
        unsigned n_lines = 0;

        vectors_open(&vectors, "random_sampler.jsonl");
        while (vectors_next(&vectors)) {
                int64_t indices[1000];
                const cJSON *list;
                size_t n;

                if (!vectors_kind(&vectors, "subset"))
                        continue;
                list = vector_array(vectors.line, "subset", &n);
                for (size_t i = 0; i < n; i++)
                        indices[i] = vector_item(list, i);
                maker_init(&maker, 1000);
                maker.terms.base.seed = vector_u64(vectors.text, "seed");
                maker_column(&maker, "indices.txt", DLP_DTYPE_INT64, indices, n);
                must_make("subset(indices.txt)");
                must_be_listed(&vectors, "indices");
                maker_fini(&maker);
                n_lines++;
        }
        ck_assert_uint_eq(n_lines, 3);
}
END_TEST

static void check_split(const struct vectors *vectors, const char *lengths, size_t n_parts) {
        const cJSON *splits = vector_array(vectors->line, "splits", NULL);

        for (size_t part = 0; part < n_parts; part++) {
                const cJSON *split = cJSON_GetArrayItem(splits, (int)part);
                uint64_t n = (uint64_t)cJSON_GetArraySize(split);
                char text[640];

                snprintf(text, sizeof(text), "random_split(%s, part=%zu, seed=%d)", lengths, part,
                         vector_int(vectors->line, "seed"));
                if (n == 0) {
                        ck_assert_int_eq(maker_order(&maker, text), -EINVAL);
                        continue;
                }
                must_make(text);
                ck_assert_uint_eq(maker.order.n_positions, n);
                for (uint64_t i = 0; i < n; i++)
                        ck_assert_int_eq((int64_t)dlp_order_sample(&maker.order, i), vector_item(split, i));
        }
}

START_TEST(random_split_is_torchs) {
        struct vectors vectors;
        unsigned n_lines = 0;

        vectors_open(&vectors, "random_split.jsonl");
        for (; vectors_next(&vectors); n_lines++) {
                size_t n_lengths, at = 0;
                const cJSON *list = vector_array(vectors.line, "lengths", &n_lengths);
                char lengths[512] = "";

                if (!vector_has(vectors.line, "splits"))
                        continue;
                for (size_t i = 0; i < n_lengths; i++)
                        at += (size_t)snprintf(lengths + at, sizeof(lengths) - at, "%s%.17g", i ? ", " : "",
                                               cJSON_GetArrayItem(list, (int)i)->valuedouble);
                maker_init(&maker, vector_u64(vectors.text, "n"));
                maker.terms.base.shuffle = false; /* the part as it was split */
                check_split(&vectors, lengths, n_lengths);
                maker_fini(&maker);
        }
        ck_assert_uint_eq(n_lines, 24);
}
END_TEST

START_TEST(parts_of_a_split_are_all_samples_once_in_each_epoch) {
        maker_init(&maker, 1003);
        for (uint32_t kind = DLP_ORDER_TORCH; kind <= DLP_ORDER_TDPERM; kind++)
                for (uint64_t epoch = 0; epoch < 3; epoch++) {
                        uint8_t seen[1003] = { 0 };
                        uint64_t n_all = 0;

                        maker.terms.base.kind = kind;
                        maker.terms.base.epoch = epoch;
                        for (unsigned part = 0; part < 3; part++) {
                                char text[64];

                                snprintf(text, sizeof(text), "random_split(0.7, 0.2, 0.1, part=%u, seed=7)", part);
                                must_make(text);
                                n_all += maker.order.n_positions;
                                for (uint64_t i = 0; i < maker.order.n_positions; i++)
                                        ck_assert_int_eq(seen[dlp_order_sample(&maker.order, i)]++, 0);
                        }
                        ck_assert_uint_eq(n_all, 1003);
                }
        must_refuse("random_split(0.7, 0.2, part=0)", "sampler, column 1: random_split: the shares add up to "
                                                      "0.89999999999999991; they must add up to 1, else give numbers "
                                                      "of samples");
        must_refuse("random_split(700, 200, part=0)",
                    "random_split: the parts have 900 samples together, the dataset has 1003");
        must_refuse("random_split(0.5, 0.5, part=2)", "sampler, column 1: random_split: part 2; there are 2, from 0 "
                                                      "on");
        maker_fini(&maker);
}
END_TEST

/* ---- orders of other programs ----------------------------------------------------------------------------------- */

/* The lists of the ranks, dealt as DistributedSampler does: position k * world + rank, from the start again at the end.
 */
static void must_be_dealt(const struct vectors *vectors) {
        size_t world, n;
        const cJSON *ranks = vector_array(vectors->line, "ranks", &world);

        for (size_t rank = 0; rank < world; rank++) {
                const cJSON *list = cJSON_GetArrayItem(ranks, (int)rank);

                n = (size_t)cJSON_GetArraySize(list);
                for (size_t k = 0; k < n; k++) {
                        uint64_t position = (k * world + rank) % maker.order.n_positions;

                        ck_assert((int64_t)dlp_order_sample(&maker.order, position) == vector_item(list, k));
                }
        }
}

START_TEST(length_grouped_is_hugging_faces) {
        struct vectors vectors;
        unsigned n_lines = 0;

        vectors_open(&vectors, "samplers.jsonl");
        while (vectors_next(&vectors)) {
                int32_t lengths[1000];
                const cJSON *list;
                char text[64];
                size_t n;

                if (!vectors_kind(&vectors, "length_grouped"))
                        continue;
                list = vector_array(vectors.line, "lengths", &n);
                for (size_t i = 0; i < n; i++)
                        lengths[i] = (int32_t)vector_item(list, i);
                maker_init(&maker, n);
                maker_column(&maker, "length", DLP_DTYPE_INT32, lengths, n);
                maker.terms.base.seed = vector_u64(vectors.text, "seed");
                maker.terms.base.epoch = vector_u64(vectors.text, "epoch");
                snprintf(text, sizeof(text), "length_grouped(length, batch=%d)", vector_int(vectors.line, "batch"));
                must_make(text);
                ck_assert_uint_eq(maker.order.n_positions, n);
                must_be_dealt(&vectors);
                maker.terms.batch_size = (uint32_t)vector_int(vectors.line, "batch");
                must_make("length_grouped(length)");
                must_be_dealt(&vectors);
                maker_fini(&maker);
                n_lines++;
        }
        ck_assert_uint_eq(n_lines, 6);
}
END_TEST

START_TEST(lengths_that_are_none_are_refused) {
        int64_t lengths[4] = { 1, -2, 3, 4 };
        float reals[4] = { 1, 2, 3, 4 };

        maker_init(&maker, 4);
        maker_column(&maker, "length", DLP_DTYPE_INT64, lengths, 4);
        maker_column(&maker, "real", DLP_DTYPE_FLOAT32, reals, 4);
        must_refuse("length_grouped(length)",
                    "length_grouped: \"length\" has the length -2 at sample 1; 0 to 4294967295 is allowed");
        must_refuse("length_grouped(real)", "length_grouped: \"real\" has float32; lengths are whole numbers");
        must_refuse(
                "length_grouped(length, mega=10000, batch=10000)",
                "length_grouped: mega = 10000 batches of 10000 are 100000000 samples; at most 16777216 are allowed");
}
END_TEST

START_TEST(repeat_is_timms) {
        struct vectors vectors;
        unsigned n_lines = 0;

        vectors_open(&vectors, "samplers.jsonl");
        while (vectors_next(&vectors)) {
                char text[64];

                if (!vectors_kind(&vectors, "repeat"))
                        continue;
                maker_init(&maker, vector_u64(vectors.text, "n"));
                maker.terms.base.epoch = vector_u64(vectors.text, "epoch");
                snprintf(text, sizeof(text), "repeat(%d, n=%d)", vector_int(vectors.line, "times"),
                         vector_int(vectors.line, "num_samples"));
                must_make(text);
                ck_assert_uint_eq(maker.order.n_positions, vector_u64(vectors.text, "num_samples"));
                must_be_dealt(&vectors);
                maker_fini(&maker);
                n_lines++;
        }
        ck_assert_uint_eq(n_lines, 4);
}
END_TEST

START_TEST(repeat_gives_each_sample_so_many_times_in_a_row) {
        uint32_t *counts;

        maker_init(&maker, 1000);
        must_make("repeat(3)");
        ck_assert_uint_eq(maker.order.n_positions, 3000);
        counts = maker_counts(&maker);
        for (uint64_t i = 0; i < 1000; i++)
                ck_assert(counts[i] == 3);
        for (uint64_t i = 0; i < 3000; i++)
                ck_assert(dlp_order_sample(&maker.order, i) == dlp_order_sample(&maker.order, i / 3 * 3));
        free(counts);
        must_refuse("repeat(3, n=3001)", "repeat: n = 3001, but 1000 samples, 3 times each, are 3000");
        maker_fini(&maker);
}
END_TEST

START_TEST(repeat_factor_is_detectrons) {
        struct vectors vectors;
        unsigned n_lines = 0;

        vectors_open(&vectors, "samplers.jsonl");
        while (vectors_next(&vectors)) {
                int64_t values[4000];
                uint64_t ends[1000], n_values = 0;
                const cJSON *list;
                char text[64];
                size_t n;

                if (!vectors_kind(&vectors, "repeat_factor"))
                        continue;
                list = vector_array(vectors.line, "labels", &n);
                for (size_t i = 0; i < n; i++) {
                        const cJSON *each = cJSON_GetArrayItem(list, (int)i);

                        for (int k = 0; k < cJSON_GetArraySize(each); k++)
                                values[n_values++] = vector_item(each, (size_t)k);
                        ends[i] = n_values;
                }
                maker_init(&maker, n);
                if (n_values == n) /* one label each: not as lists, too */
                        maker_column(&maker, "label", DLP_DTYPE_INT64, values, n);
                else
                        maker_lists(&maker, "label", values, ends);
                maker.terms.base.seed = vector_u64(vectors.text, "seed");
                snprintf(text, sizeof(text), "repeat_factor(label, t=%.17g)", vector_number(vectors.line, "t"));
                must_make(text);
                must_be_listed(&vectors, "indices");
                maker_fini(&maker);
                n_lines++;
        }
        ck_assert_uint_eq(n_lines, 4);
}
END_TEST

/* ---- stratified, curriculum ------------------------------------------------------------------------------------- */

START_TEST(each_beginning_of_a_stratified_order_has_the_classes_in_proportion) {
        for (unsigned round = 0; round < 60; round++) {
                uint64_t n = 1 + draw(3000), n_classes = 1 + draw(round % 3 == 0 ? 500 : 12), counts[500] = { 0 };
                uint64_t given[500] = { 0 };
                int32_t *column = calloc(n, sizeof(*column));
                uint32_t *seen;

                for (uint64_t i = 0; i < n; i++)
                        counts[column[i] = (int32_t)(draw(n_classes) * draw(n_classes) / n_classes)]++;
                maker_init(&maker, n);
                maker_column(&maker, "label", DLP_DTYPE_INT32, column, n);
                maker.terms.base.seed = round;
                must_make("stratified(label)");
                for (uint64_t k = 0; k < n; k++) {
                        given[column[dlp_order_sample(&maker.order, k)]]++;
                        for (uint64_t i = 0; i < n_classes; i++) {
                                uint64_t exact = counts[i] * (k + 1); /* times n */

                                ck_assert(given[i] * n < exact + n && exact < given[i] * n + n);
                        }
                }
                seen = maker_counts(&maker);
                for (uint64_t i = 0; i < n; i++)
                        ck_assert(seen[i] == 1);
                free(seen);
                free(column);
                maker_fini(&maker);
        }
}
END_TEST

START_TEST(stratified_keeps_the_sequence_within_a_class) {
        uint64_t last[3] = { 0 };
        uint8_t column[300];

        for (unsigned i = 0; i < 300; i++)
                column[i] = (uint8_t)(i % 7 % 3);
        maker_init(&maker, 300);
        maker_column(&maker, "label", DLP_DTYPE_UINT8, column, 300);
        maker.terms.base.shuffle = false;
        must_make("stratified(label)");
        for (uint64_t i = 0; i < 300; i++) {
                uint64_t sample = dlp_order_sample(&maker.order, i);

                ck_assert_uint_ge(sample + 1, last[column[sample]]);
                last[column[sample]] = sample + 1;
        }
        maker_fini(&maker);
}
END_TEST

START_TEST(a_curriculum_has_the_easiest_samples_of_its_stage) {
        static const uint64_t N_STAGE[] = { 250, 250, 500, 500, 1000, 1000 };
        double column[1000];

        maker_init(&maker, 1000);
        for (unsigned i = 0; i < 1000; i++)
                column[i] = (double)((i * 7 + 3) % 1000) - 500;
        maker_column(&maker, "c", DLP_DTYPE_FLOAT64, column, 1000);
        for (uint64_t epoch = 0; epoch < 6; epoch++)
                for (int descends = 0; descends < 2; descends++) {
                        uint8_t seen[1000] = { 0 };

                        maker.terms.base.epoch = epoch;
                        must_make(descends ? "curriculum(c, stages=0.25:0.5, epochs=2:4, descending=true)"
                                           : "curriculum(c, stages=0.25:0.5:1, epochs=2:4)");
                        ck_assert_uint_eq(maker.order.n_positions, N_STAGE[epoch]);
                        for (uint64_t i = 0; i < N_STAGE[epoch]; i++) {
                                uint64_t sample = dlp_order_sample(&maker.order, i);
                                double hard = descends ? 499 - column[sample] : column[sample] + 500;

                                ck_assert(hard < (double)N_STAGE[epoch] && seen[sample]++ == 0);
                        }
                }
        maker.terms.base.shuffle = false;
        maker.terms.base.epoch = 0;
        must_make("curriculum(c, stages=0.25:0.5:1, epochs=2:4)");
        for (uint64_t i = 0; i < 250; i++)
                ck_assert(column[dlp_order_sample(&maker.order, i)] == (double)i - 500);
        column[77] = NAN;
        must_refuse("curriculum(c, stages=0.25, epochs=2)", "curriculum: \"c\" is not a number at sample 77");
        must_refuse("curriculum(c, stages=0.25:0.5, epochs=2)",
                    "sampler, column 1: curriculum: stage 2, a share of 0.5, never ends: there are 1 epochs for 2 "
                    "stages; give each stage the epoch at which it ends");
        must_refuse("curriculum(c, stages=0.5:0.25, epochs=2:4)",
                    "sampler, column 1: curriculum: stages: 0.25 after 0.5; each stage has more samples than the one "
                    "before");
        must_refuse("curriculum(c, stages=0.25:0.5, epochs=4:4)",
                    "sampler, column 1: curriculum: epochs: 4 after 4; each stage ends later than the one before");
        must_refuse("curriculum(c, stages=0.25, epochs=2:4)",
                    "sampler, column 1: curriculum: 2 epochs for 1 stages; give each stage the epoch at which it ends");
        maker_fini(&maker);
}
END_TEST

/* ---- mixtures --------------------------------------------------------------------------------------------------- */

static uint32_t part_of(uint64_t sample) {
        uint32_t i = 0;

        while (sample >= maker.parts[i].first + maker.parts[i].n_samples)
                i++;
        return i;
}

START_TEST(a_blend_is_megatrons) {
        struct vectors vectors;
        unsigned n_lines = 0;

        vectors_open(&vectors, "samplers.jsonl");
        while (vectors_next(&vectors)) {
                static const char *const NAMES[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k" };
                const cJSON *list, *parts;
                char text[256] = "mix(";
                size_t n_parts, n;

                if (!vectors_kind(&vectors, "blend"))
                        continue;
                list = vector_array(vectors.line, "weights", &n_parts);
                parts = vector_array(vectors.line, "parts", &n);
                maker_init(&maker, 60 * n_parts);
                for (size_t i = 0; i < n_parts; i++) {
                        maker_part(&maker, NAMES[i], 60);
                        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s=%.17g, ", NAMES[i],
                                 cJSON_GetArrayItem(list, (int)i)->valuedouble);
                }
                snprintf(text + strlen(text), sizeof(text) - strlen(text), "n=%zu, how=blend)", n);
                must_make(text);
                ck_assert_uint_eq(maker.order.n_positions, n);
                for (size_t i = 0; i < n; i++)
                        ck_assert_int_eq(part_of(dlp_order_sample(&maker.order, i)), vector_item(parts, i));
                maker_fini(&maker);
                n_lines++;
        }
        ck_assert_uint_eq(n_lines, 5);
}
END_TEST

/* Makes epochs 0 .. n_epochs-1 and checks after each that no sample of a part has come two times more than another. */
static void check_passes(const char *text, uint64_t n_epochs) {
        uint64_t n_samples = maker.terms.base.n_samples;
        uint32_t *sums = calloc(n_samples, sizeof(*sums));

        for (uint64_t epoch = 0; epoch < n_epochs; epoch++) {
                uint32_t *counts, least[MAKER_PARTS_MAX], most[MAKER_PARTS_MAX] = { 0 };

                memset(least, 0xff, sizeof(least));
                maker.terms.base.epoch = epoch;
                must_make(text);
                counts = maker_counts(&maker);
                for (uint64_t i = 0; i < n_samples; i++) {
                        uint32_t part = part_of(i);

                        sums[i] += counts[i];
                        least[part] = sums[i] < least[part] ? sums[i] : least[part];
                        most[part] = sums[i] > most[part] ? sums[i] : most[part];
                }
                for (uint32_t i = 0; i < maker.terms.n_parts; i++)
                        if (most[i] > least[i] + 1 && maker.parts[i].n_samples > 0)
                                ck_abort_msg("%s: epoch %ju, part %u: %u and %u times", text, (uintmax_t)epoch, i,
                                             least[i], most[i]);
                free(counts);
        }
        free(sums);
        maker_fini(&maker);
}

static void prepare_parts(void) {
        maker_init(&maker, 360);
        maker_part(&maker, "a", 100);
        maker_part(&maker, "b", 200);
        maker_part(&maker, "c", 10);
        maker_part(&maker, "empty", 0);
        maker_part(&maker, "d", 50);
}

static const char *const MIXTURES[] = {
        "mix(a=0.7, b=0.3)",
        "mix(b=0.7, a=0.2, c=0.1, n=333)",
        "mix(a=1, b=1, even=true, n=77)",
        "mix(a=2.5, c=0.35, empty=0, how=repeat)",
        "mix(a=17, c=3, d=1000, how=choose)",
        "mix(a=1, b=2, d=0.7, how=blend, n=123)",
        "mix(temperature=3)",
        "mix(a=1, b=1, c=1, until=first)",
        "mix(a=1, b=1, c=1, until=all, even=true)",
        "mix(a=0.9, to=0.1:0.9:0:1, c=0.1, at=3:5, n=91)",
        "mix(a=1, b=0.1, to=0:2, at=4, how=repeat)",
};

#define N_MIXTURES (sizeof(MIXTURES) / sizeof(MIXTURES[0]))

START_TEST(no_sample_of_a_mixture_comes_twice_before_all_of_its_part_have_come) {
        for (int kind = 0; kind < 3; kind++) {
                prepare_parts();
                maker.terms.base.kind = kind == 1 ? DLP_ORDER_TDPERM : DLP_ORDER_TORCH;
                maker.terms.base.shuffle = kind != 2;
                maker.terms.base.seed = 5;
                check_passes(MIXTURES[_i], 9);
        }
}
END_TEST

/* How many samples of a, b, c, d. */
static void must_mix(const char *text, uint64_t epoch, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
        uint64_t n[MAKER_PARTS_MAX] = { 0 };

        maker.terms.base.epoch = epoch;
        must_make(text);
        for (uint64_t i = 0; i < maker.order.n_positions; i++)
                n[part_of(dlp_order_sample(&maker.order, i))]++;
        if (n[0] != a || n[1] != b || n[2] != c || n[4] != d)
                ck_abort_msg("%s, epoch %ju: %ju %ju %ju %ju", text, (uintmax_t)epoch, (uintmax_t)n[0], (uintmax_t)n[1],
                             (uintmax_t)n[2], (uintmax_t)n[4]);
}

START_TEST(a_mixture_has_as_many_samples_of_a_part_as_its_weight_says) {
        prepare_parts();
        must_mix("mix(a=0.7, b=0.3, n=1000)", 0, 700, 300, 0, 0);
        must_mix("mix(a=7, b=3)", 0, 210, 90, 0, 0);
        must_mix("mix(a=1, b=1, c=1, n=100)", 0, 34, 33, 33, 0);
        must_mix("mix(a=1, b=1, c=1, d=1, n=2)", 0, 1, 1, 0, 0);
        must_mix("mix()", 0, 100, 200, 10, 50);
        must_mix("mix(temperature=1000000)", 0, 90, 90, 90, 90);
        must_mix("mix(temperature=2, n=1000)", 0, 291, 411, 92, 206); /* shares are as square roots of sizes */
        must_mix("mix(a=2.5, c=0.39, how=repeat)", 0, 250, 0, 3, 0);
        must_mix("mix(a=17, d=1000, how=choose)", 0, 17, 0, 0, 1000);
        must_mix("mix(a=1, b=1, c=1, until=first)", 0, 10, 10, 10, 0);
        must_mix("mix(a=1, b=1, c=1, until=all)", 0, 200, 200, 200, 0);
        must_mix("mix(empty=0, a=0, b=1, how=blend, n=100)", 0, 0, 100, 0, 0);
        must_mix("mix(a=1, b=0, to=0:1, at=10, n=100)", 0, 100, 0, 0, 0);
        must_mix("mix(a=1, b=0, to=0:1, at=10, n=100)", 3, 70, 30, 0, 0);
        must_mix("mix(a=1, b=0, to=0:1, at=10, n=100)", 10, 0, 100, 0, 0);
        must_mix("mix(a=1, b=0, to=0:1, at=10, n=100)", 4000000000, 0, 100, 0, 0);
        must_mix("mix(a=1, b=0, to=0:1:1:1, at=10:20, n=100)", 15, 33, 67, 0, 0);
        maker_fini(&maker);
}
END_TEST

START_TEST(an_even_mixture_has_its_shares_in_each_beginning) {
        uint64_t n_first = 0;

        prepare_parts();
        must_make("mix(a=0.3, b=0.7, n=5000, even=true)");
        for (uint64_t k = 0; k < 5000; k++) {
                n_first += part_of(dlp_order_sample(&maker.order, k)) == 0;
                ck_assert_double_lt(fabs((double)n_first - 0.3 * (double)(k + 1)), 1);
        }
        maker_fini(&maker);
}
END_TEST

START_TEST(mixtures_that_cannot_be_made_are_refused) {
        prepare_parts();
        must_refuse("mix(a=1, x=2)", "mix: there is no part \"x\"; the parts are: a b c empty d");
        must_refuse("mix(a=1, empty=2)", "mix: part \"empty\" has no samples, but the weight 2; give it the weight 0");
        must_refuse("mix(a=0, b=0)", "sampler, column 1: mix: all weights are 0");
        must_refuse("mix(a=1, b=1, to=0:0, at=3)", "sampler, column 1: mix: all weights are 0 from epoch 3 on");
        must_refuse("mix(a=1, b=1, to=0.5, at=3)",
                    "sampler, column 1: mix: to has 1 numbers; 2 parts and 1 epochs in `at` need 2: the weights of all "
                    "parts for each of these epochs");
        must_refuse("mix(a=0.001, how=repeat)", "mix: the weights leave no sample of 100 in epoch 0");
        must_refuse("mix(a=0.5, how=choose)",
                    "sampler, column 1: mix: a = 0.5; how=choose takes whole numbers of samples");
        must_refuse("mix(a=1, n=5, until=all)",
                    "sampler, column 1: mix: n and until both say how long an epoch is; give one of them");
        must_refuse("mix(a=1, n=5, how=repeat)",
                    "sampler, column 1: mix: the weights say how many samples an epoch has; n and until are for "
                    "how=proportion and how=blend");
        must_refuse("mix(a=1, how=repeat, temperature=2)",
                    "sampler, column 1: mix: temperature is for how=proportion and how=blend");
        must_refuse("mix(how=choose)", "sampler, column 1: mix: the parts and their weights are missing");
        must_refuse(
                "mix(a=1, b=1, to=1:0, at=3, how=blend)",
                "sampler, column 1: mix: how=blend keeps its weights; with `to`, take how=proportion and even=true");
        must_refuse(
                "mix(a=1e-300, b=1, until=all)",
                "mix: all parts come once in 1e+302 samples, at most 1099511627776 are allowed; give larger weights "
                "to the large parts");
        maker_init(&maker, 10);
        must_refuse("mix(a=1)", "mix: the dataset is not made of several; there are no parts to mix");
}
END_TEST

/* ---- every sampler --------------------------------------------------------------------------------------------- */

START_TEST(a_subset_may_be_longer_than_its_dataset) {
        static int64_t indices[30000];

        for (int64_t i = 0; i < 30000; i++)
                indices[i] = i % 10;
        maker_init(&maker, 10);
        maker_column(&maker, "i", DLP_DTYPE_INT64, indices, 30000);
        must_make("subset(i)"); /* within the memory that was promised */
        ck_assert_uint_eq(maker.order.n_positions, 30000);
        maker_fini(&maker);
}
END_TEST

static const char *const TEXTS[] = {
        "random(replacement=true, n=70000)",
        "random(n=70001)",
        "weighted(column=w, n=70000)",
        "weighted(column=w, replacement=false, n=300)",
        "class_balanced(column=label)",
        "random_split(0.5, 0.5, part=1, seed=3)",
        "length_grouped(label)",
        "length_grouped(label, mega=10000, batch=3)",
        "stratified(label)",
        "repeat(2)",
        "repeat(3, n=70000)",
        "repeat_factor(label, t=0.01)",
        "curriculum(w, stages=0.5, epochs=3)",
        "mix(a=0.5, b=0.3, c=0.2)",
        "mix(a=1, c=1, until=all, even=true)",
        "mix(a=1, b=0.01, how=blend, n=100000)",
        "mix(a=1, b=0, to=0:1, at=10, n=66666)",
        "class_balanced(label) stratified(label) length_grouped(label)",
};

#define N_TEXTS (sizeof(TEXTS) / sizeof(TEXTS[0]))

static double weights[50000];
static int64_t labels[50000];

static void prepare(void) {
        for (uint64_t i = 0; i < 50000; i++) {
                weights[i] = (double)(i % 100);
                labels[i] = (int64_t)(i * i % 1000);
        }
        maker_init(&maker, 50000);
        maker_column(&maker, "w", DLP_DTYPE_FLOAT64, weights, 50000);
        maker_column(&maker, "label", DLP_DTYPE_INT64, labels, 50000);
        maker_part(&maker, "a", 30000);
        maker_part(&maker, "b", 15000);
        maker_part(&maker, "c", 5000);
}

START_TEST(a_sampler_that_lacks_memory_or_is_not_wanted_any_more_gives_back_all) {
        const char *text = TEXTS[_i];

        prepare();
        for (uint64_t n = 0; n < 20; n++) {
                maker.n_allocations_left = n;
                if (maker_order(&maker, text) == 0)
                        break;
                ck_assert_str_eq(maker.why.text, "no memory");
                ck_assert_uint_lt(n, 19);
        }
        maker.n_allocations_left = UINT64_MAX;
        maker.n_looks_left = 0;
        ck_assert_int_eq(maker_order(&maker, text), -ECANCELED);
        maker_fini(&maker);
}
END_TEST

START_TEST(a_sampler_gives_the_same_order_again_and_another_one_in_another_epoch) {
        uint64_t *samples, n;
        bool is_other = false;

        prepare();
        must_make(TEXTS[_i]);
        n = maker.order.n_positions;
        samples = calloc(n, sizeof(*samples));
        for (uint64_t i = 0; i < n; i++)
                samples[i] = dlp_order_sample(&maker.order, i);
        must_make(TEXTS[_i]);
        ck_assert(n == maker.order.n_positions);
        for (uint64_t i = 0; i < n; i++)
                ck_assert(samples[i] == dlp_order_sample(&maker.order, i));
        maker.terms.base.epoch = 1;
        must_make(TEXTS[_i]);
        for (uint64_t i = 0; i < n && i < maker.order.n_positions; i++)
                is_other |= samples[i] != dlp_order_sample(&maker.order, i);
        ck_assert(is_other);
        maker_fini(&maker);
        free(samples);
}
END_TEST

START_TEST(a_samplers_normal_text_is_read_as_the_same) {
        char text[DLP_SAMPLER_MAX], again[DLP_SAMPLER_MAX];
        struct dlp_order_text *parsed = malloc(sizeof(*parsed));
        struct why why;

        ck_assert_int_eq(dlp_order_text_parse(TEXTS[_i], parsed, &why), 0);
        ck_assert_int_eq(dlp_order_text_print(parsed, text, &why), 0);
        ck_assert_int_eq(dlp_order_text_parse(text, parsed, &why), 0);
        ck_assert_int_eq(dlp_order_text_print(parsed, again, &why), 0);
        ck_assert_str_eq(text, again);
        free(parsed);
}
END_TEST

/* A value of an argument, or nonsense. */
static void write_value(char *at, size_t size, const struct argument *argument) {
        double from = argument->minimum, range = argument->maximum > 1000 ? 1000 - from : argument->maximum - from;

        if (argument->type == ARGUMENT_FLAG)
                snprintf(at, size, "%s", draw(2) ? "true" : "false");
        else if (argument->type == ARGUMENT_CHOICE)
                snprintf(at, size, "%s", argument->choices[draw(argument->n_choices)]);
        else if (argument->type == ARGUMENT_COLUMN || argument->type == ARGUMENT_LENGTHS)
                snprintf(at, size, "column_%ju", (uintmax_t)draw(5));
        else if (argument->type == ARGUMENT_WHOLE)
                snprintf(at, size, "%ju", (uintmax_t)(from + floor(range * (double)draw(100) / 99)));
        else if (argument->type == ARGUMENT_LIST)
                snprintf(at, size, "%ju:%ju", (uintmax_t)draw(3), (uintmax_t)(3 + draw(3)));
        else
                snprintf(at, size, "%.17g", from + range * (double)draw(1u << 20) / (1u << 20));
}

static void write_step(char *text, size_t size, const struct kind *kind) {
        size_t n = (size_t)snprintf(text, size, "%s", kind->name);
        const char *before = "(";

        for (uint32_t i = 0; i < kind_n_arguments(kind); i++) {
                const struct argument *argument = &kind->arguments[i];
                bool is_all = argument->type == ARGUMENT_NUMBERS || argument->type == ARGUMENT_WEIGHTS;

                for (uint64_t k = 0, n_values = is_all ? 1 + draw(4) : draw(3) > 0; k < n_values; k++) {
                        char value[64], name[8] = { (char)('p' + k), '\0' };

                        write_value(value, sizeof(value), argument);
                        n += (size_t)snprintf(text + n, size - n, "%s%s%s%s", before,
                                              argument->type == ARGUMENT_WEIGHTS ? name
                                              : is_all                           ? ""
                                                                                 : argument->name,
                                              argument->type == ARGUMENT_NUMBERS ? ""
                                              : draw(9)                          ? "="
                                                                                 : " = ",
                                              value);
                        before = draw(2) ? ", " : ",";
                }
        }
        if (before[0] == ',')
                snprintf(text + n, size - n, ")");
}

START_TEST(any_text_that_is_read_is_printed_and_read_as_the_same) {
        static struct dlp_order_text parsed;
        unsigned n_read = 0, n_kinds = 0;

        while (dlp_samplers.kinds[n_kinds])
                n_kinds++;
        for (unsigned round = 0; round < 20000; round++) {
                char text[DLP_SAMPLER_MAX], printed[DLP_SAMPLER_MAX], again[DLP_SAMPLER_MAX];
                struct why why;

                write_step(text, sizeof(text), dlp_samplers.kinds[draw(n_kinds)]);
                if (dlp_order_text_parse(text, &parsed, &why) < 0)
                        continue;
                ck_assert(dlp_order_text_print(&parsed, printed, &why) == 0);
                if (dlp_order_text_parse(printed, &parsed, &why) < 0)
                        ck_abort_msg("%s, printed as %s: %s", text, printed, why.text);
                ck_assert(dlp_order_text_print(&parsed, again, &why) == 0);
                ck_assert(strcmp(printed, again) == 0);
                n_read++;
        }
        ck_assert_uint_gt(n_read, 4000);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "weighted", weighted_draws_are_torchs },
                { "weighted", weighted_draws_are_the_first_sum_that_reaches_them },
                { "weighted", more_weights_than_torch_takes_are_drawn_as_often_as_they_say },
                { "weighted", weights_that_cannot_be_drawn_are_refused_with_their_sample },
                { "classes", balanced_classes_are_drawn_as_torch_draws_their_weights },
                { "classes", labels_that_are_no_classes_are_refused },
                { "torch", random_is_torchs_random_sampler },
                { "torch", subset_is_torchs_subset_random_sampler },
                { "torch", a_subset_may_be_longer_than_its_dataset },
                { "torch", random_split_is_torchs },
                { "torch", parts_of_a_split_are_all_samples_once_in_each_epoch },
                { "others", length_grouped_is_hugging_faces },
                { "others", lengths_that_are_none_are_refused },
                { "others", repeat_is_timms },
                { "others", repeat_gives_each_sample_so_many_times_in_a_row },
                { "others", repeat_factor_is_detectrons },
                { "stages", each_beginning_of_a_stratified_order_has_the_classes_in_proportion },
                { "stages", stratified_keeps_the_sequence_within_a_class },
                { "stages", a_curriculum_has_the_easiest_samples_of_its_stage },
                { "mix", a_blend_is_megatrons },
                { "mix", no_sample_of_a_mixture_comes_twice_before_all_of_its_part_have_come, N_MIXTURES },
                { "mix", a_mixture_has_as_many_samples_of_a_part_as_its_weight_says },
                { "mix", an_even_mixture_has_its_shares_in_each_beginning },
                { "mix", mixtures_that_cannot_be_made_are_refused },
                { "every", a_sampler_that_lacks_memory_or_is_not_wanted_any_more_gives_back_all, N_TEXTS },
                { "every", a_sampler_gives_the_same_order_again_and_another_one_in_another_epoch, N_TEXTS },
                { "every", a_samplers_normal_text_is_read_as_the_same, N_TEXTS },
                { "every", any_text_that_is_read_is_printed_and_read_as_the_same },
        };

        return suite_run("samplers", rows, sizeof(rows) / sizeof(rows[0]));
}
