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

                        suite_must(dlp_order_sample(&maker.order, i) == drawn_plainly(weights, n, u));
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
                char text[512];

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

/* ---- every sampler --------------------------------------------------------------------------------------------- */

static const char *const TEXTS[] = {
        "random(replacement=true, n=70000)", "random(n=70001)",
        "weighted(column=w, n=70000)",       "weighted(column=w, replacement=false, n=300)",
        "class_balanced(column=label)",      "random_split(0.5, 0.5, part=1, seed=3)",
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
        suite_must(n == maker.order.n_positions);
        for (uint64_t i = 0; i < n; i++)
                suite_must(samples[i] == dlp_order_sample(&maker.order, i));
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
                { "torch", random_split_is_torchs },
                { "torch", parts_of_a_split_are_all_samples_once_in_each_epoch },
                { "every", a_sampler_that_lacks_memory_or_is_not_wanted_any_more_gives_back_all, N_TEXTS },
                { "every", a_sampler_gives_the_same_order_again_and_another_one_in_another_epoch, N_TEXTS },
                { "every", a_samplers_normal_text_is_read_as_the_same, N_TEXTS },
        };

        return suite_run("samplers", rows, sizeof(rows) / sizeof(rows[0]));
}
