/* Runs over orders that samplers make: whatever the text, the worlds, batch sizes, dealings, stops and resumes are,
 * each position of the epoch is consumed once, and a sample as often as the order has it. */
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"
#include "proto/order/epoch_plan.h"
#include "tests/support/maker.h"
#include "tests/support/suite.h"

#define N_CASES   5000u
#define N_SAMPLES 60u

static const char *const TEXTS[] = {
        "random(replacement=true, n=77)",
        "weighted(column=w, n=50)",
        "repeat(3)",
        "repeat_factor(column=label, t=0.6)",
        "random_split(0.7, 0.3, part=1, seed=5)",
        "length_grouped(column=length)",
        "weighted(column=w) stratified(column=label)",
        "buckets(column=length, edges=4:9:20, tokens=45)",
        "buckets(column=length, edges=6:20, sizes=5:2, last=drop)",
        "max_tokens(column=length, tokens=50, multiple=2)",
        "grouped(column=w, edges=1:3)",
        "pack(size=40, column=length)",
        "pack(size=25, column=length, strategy=wrapped)",
        "repeat(2) pack(size=30, column=length, strategy=first_fit, bins=4)",
};

static struct maker maker;
static uint64_t state = 88172645463325252ull;

static uint64_t below(uint64_t n) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state % n;
}

static bool is_batch(void) {
        const struct dlp_step *grouper = dlp_order_text_grouper(&maker.text);

        return grouper && grouper->type->is_batch;
}

/* A world that takes some steps from `base` on; counts what it consumed. Returns where the next one begins. */
static uint64_t run_part(uint64_t base, bool is_last, uint32_t *counts) {
        struct dlp_epoch_terms terms = { .n_positions = maker.order.n_units,
                                         .world = (uint32_t)(1 + below(5)),
                                         .batch_size = is_batch() ? 1 : (uint32_t)(1 + below(4)),
                                         .dealing = (enum dlp_dealing)below(3),
                                         .partition = DLP_PARTITION_EXACT };
        struct dlp_epoch_plan first = dlp_epoch_plan_make(&terms, 0, base);
        uint64_t n_steps = is_last ? first.n_steps : below(first.n_steps + 1);

        for (uint32_t rank = 0; rank < terms.world; rank++) {
                struct dlp_epoch_plan plan = dlp_epoch_plan_make(&terms, rank, base);

                for (uint64_t step = 0; step < n_steps && !dlp_epoch_plan_is_over(&plan, step); step++) {
                        struct dlp_plan_batch batch = dlp_epoch_plan_batch(&plan, step);

                        for (uint32_t i = 0; i < batch.n_samples; i++) {
                                uint64_t unit = dlp_epoch_plan_position(&plan, batch.first + i);

                                for (uint64_t at = dlp_order_start(&maker.order, unit);
                                     at < dlp_order_start(&maker.order, unit + 1); at++)
                                        counts[at]++;
                        }
                }
        }
        return dlp_epoch_plan_position_after(&first, n_steps);
}

START_TEST(each_position_of_any_sampler_is_consumed_once_over_any_stops_and_resumes) {
        double weights[N_SAMPLES];
        int64_t lengths[N_SAMPLES], labels[N_SAMPLES];
        uint64_t n_positions = 0;

        for (uint32_t k = 0; k < N_CASES; k++) {
                uint64_t base = 0, n = 1 + below(N_SAMPLES);
                uint32_t *counts;

                for (uint64_t i = 0; i < n; i++) {
                        weights[i] = (double)below(5) + 0.5;
                        lengths[i] = (int64_t)(1 + below(20));
                        labels[i] = (int64_t)below(3);
                }
                maker_init(&maker, n);
                maker.terms.base.seed = below(1000);
                maker.terms.base.epoch = below(5);
                maker.terms.base.shuffle = below(4) > 0;
                maker.terms.batch_size = (uint32_t)(1 + below(4));
                maker_column(&maker, "w", DLP_DTYPE_FLOAT64, weights, n);
                maker_column(&maker, "length", DLP_DTYPE_INT64, lengths, n);
                maker_column(&maker, "label", DLP_DTYPE_INT64, labels, n);
                if (maker_order(&maker, TEXTS[k % ARRAY_SIZE(TEXTS)]) < 0) { /* an empty part of a split, no batch */
                        maker_fini(&maker);
                        continue;
                }
                counts = calloc(maker.order.n_positions, sizeof(*counts));
                ck_assert(counts);
                for (uint32_t part = 0; part < 3; part++)
                        base = run_part(base, part == 2, counts);
                ck_assert_uint_eq(base, maker.order.n_units);
                for (uint64_t at = 0; at < maker.order.n_positions; at++)
                        if (counts[at] != 1)
                                ck_abort_msg("%s of %llu samples: position %llu came %u times",
                                             TEXTS[k % ARRAY_SIZE(TEXTS)], (unsigned long long)n,
                                             (unsigned long long)at, counts[at]);
                n_positions += maker.order.n_positions;
                free(counts);
                maker_fini(&maker);
        }
        ck_assert_uint_gt(n_positions, 20 * N_CASES); /* the cases are not empty */
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "runs", each_position_of_any_sampler_is_consumed_once_over_any_stops_and_resumes },
        };

        return suite_run("sampler_runs", rows, sizeof(rows) / sizeof(rows[0]));
}
