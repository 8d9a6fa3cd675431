/* Units are what TRL, Grain, fairseq and torchvision's references make of the same lengths (tests/vectors/), and of any
 * lengths none has more than it may, and no sample is lost. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/maker.h"
#include "tests/support/suite.h"
#include "tests/support/vectors.h"

#define N_CASES 25000 /* of each of four properties */
#define N_MOST  90

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

static const struct dlp_order *order(void) {
        return &maker.order;
}

/* Numbers for tests, the same in each run. */
static uint64_t drawn;

static uint64_t draw(uint64_t n) {
        drawn = drawn * 6364136223846793005ull + 1442695040888963407ull;
        return (drawn >> 33) % n;
}

/* Samples in their own sequence, with these lengths. */
static void begin(uint64_t n, const int64_t *lengths) {
        maker_init(&maker, n);
        maker.terms.base.shuffle = false;
        maker_column(&maker, "c", DLP_DTYPE_INT64, lengths, n);
}

/* The samples, and of packs the pieces, as "3[0+5] 2[0+1] | 0[5+6]" or "3 2 | 0". */
static const char *shown(void) {
        static char text[4096];
        size_t n = 0;

        text[0] = '\0';
        for (uint64_t u = 0; u < order()->n_units; u++)
                for (uint64_t i = dlp_order_start(order(), u); i < dlp_order_start(order(), u + 1); i++) {
                        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%llu",
                                              i == 0                             ? ""
                                              : i == dlp_order_start(order(), u) ? " | "
                                                                                 : " ",
                                              (unsigned long long)dlp_order_sample(order(), i));
                        if (order()->pieces)
                                n += (size_t)snprintf(text + n, sizeof(text) - n, "[%u+%u]", order()->pieces[i].begin,
                                                      order()->pieces[i].n_elements);
                }
        return text;
}

/* ---- what others make ------------------------------------------------------------------------------------------ */

static void must_equal_list(const struct vectors *vectors, const char *key, uint64_t n, uint64_t at, uint64_t got) {
        const cJSON *list;
        size_t n_listed;

        list = vector_array(vectors->line, key, &n_listed);
        ck_assert_msg(n_listed == n, "line %u: %llu %s instead of %zu", vectors->number, (unsigned long long)n, key,
                      n_listed);
        if (at < n)
                ck_assert_msg((uint64_t)vector_item(list, at) == got, "line %u: %s %llu", vectors->number, key,
                              (unsigned long long)at);
}

static void check_vector(const struct vectors *vectors) {
        size_t n;
        const cJSON *list = vector_array(vectors->line, "lengths", &n), *item;
        double *values = calloc(n + 1, sizeof(*values));
        uint64_t i = 0;

        cJSON_ArrayForEach(item, list) values[i++] = item->valuedouble;
        maker_init(&maker, n);
        maker.terms.base.shuffle = false;
        maker.terms.batch_size = (uint32_t)vector_int(vectors->line, "batch");
        maker_column(&maker, "c", DLP_DTYPE_FLOAT64, values, n);
        must_make(vector_string(vectors->line, "sampler"));
        for (i = 0; i <= order()->n_units; i++)
                must_equal_list(vectors, "starts", order()->n_units + 1, i, dlp_order_start(order(), i));
        for (i = 0; i < order()->n_positions; i++) {
                must_equal_list(vectors, "samples", order()->n_positions, i, dlp_order_sample(order(), i));
                if (order()->pieces) {
                        must_equal_list(vectors, "begins", order()->n_positions, i, order()->pieces[i].begin);
                        must_equal_list(vectors, "elements", order()->n_positions, i, order()->pieces[i].n_elements);
                }
        }
        maker_fini(&maker);
        free(values);
}

START_TEST(units_are_those_of_trl_grain_fairseq_and_torchvision) {
        struct vectors vectors;
        unsigned n = 0;

        vectors_open(&vectors, "groupers.jsonl");
        while (vectors_next(&vectors)) {
                check_vector(&vectors);
                n++;
        }
        ck_assert_uint_ge(n, 140);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "vectors", units_are_those_of_trl_grain_fairseq_and_torchvision },
        };

        (void)must_refuse;
        (void)draw;
        (void)begin;
        (void)shown;
        return suite_run("groupers", rows, sizeof(rows) / sizeof(rows[0]));
}
