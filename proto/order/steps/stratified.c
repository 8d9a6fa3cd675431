/* stratified(column=label): classes in proportion, in every beginning of the order (order/making/order_quota.h) and so,
 * up to one sample, in every batch. Within its class a sample keeps its sequence. */
#include <errno.h>

#include "proto/order/making/order_classes.h"
#include "proto/order/making/order_quota.h"
#include "proto/order/steps/sampler_step.h"

enum {
        COLUMN,
};

#define LOOK 16384u /* positions between two looks at whether the order is still wanted */

static uint64_t scratch_bytes(const struct dlp_step *step, const struct dlp_making_terms *terms, uint64_t n) {
        uint64_t n_samples = terms->base.n_samples,
                 n_classes = n_samples < DLP_CLASSES_MAX ? n_samples : DLP_CLASSES_MAX;

        (void)step;
        return dlp_classes_bytes_max(n_samples) + dlp_quota_bytes(n_classes) + 2 * n_classes * sizeof(uint64_t) +
               n * sizeof(uint64_t);
}

struct strata {
        const struct dlp_column *column;
        struct dlp_classes classes;
        uint64_t *counts, *ends; /* of the positions of each class; where they end in `sorted` */
        uint64_t n_room;
        struct dlp_order sorted; /* by class */
        struct dlp_quota quota;
};

static uint32_t class_of(const struct strata *strata, uint64_t sample) {
        return dlp_classes_find(&strata->classes, dlp_column_whole(strata->column, sample));
}

static int stratified_count(struct dlp_making *making, struct strata *strata, const struct dlp_order *order) {
        uint64_t sum = 0;

        for (uint64_t i = 0; i < order->n_positions; i++) {
                strata->counts[class_of(strata, dlp_order_sample(order, i))]++;
                if (i % LOOK == LOOK - 1 && !making->go_on(making, 0, order->n_positions))
                        return -ECANCELED;
        }
        for (uint32_t i = 0; i < strata->classes.n; i++) {
                strata->ends[i] = sum; /* grows to the end while they are put there */
                sum += strata->counts[i];
        }
        return 0;
}

static int stratified_sort(struct dlp_making *making, struct strata *strata, const struct dlp_order *order) {
        for (uint64_t i = 0; i < order->n_positions; i++) {
                uint64_t sample = dlp_order_sample(order, i);

                dlp_order_set_sample(&strata->sorted, strata->ends[class_of(strata, sample)]++, sample);
                if (i % LOOK == LOOK - 1 && !making->go_on(making, 0, order->n_positions))
                        return -ECANCELED;
        }
        for (uint32_t i = 0; i < strata->classes.n; i++)
                strata->ends[i] -= strata->counts[i]; /* back to the beginning */
        return 0;
}

static int stratified_deal(struct dlp_making *making, struct strata *strata, const struct dlp_order *order) {
        for (uint64_t i = 0; i < order->n_positions; i++) {
                uint32_t idx = dlp_quota_next(&strata->quota);

                dlp_order_set_sample(order, i, dlp_order_sample(&strata->sorted, strata->ends[idx]++));
                if (i % LOOK < LOOK - 1)
                        continue;
                making->publish(making, order, i + 1);
                if (!making->go_on(making, i + 1, order->n_positions))
                        return -ECANCELED;
        }
        return 0;
}

static int stratified_arrange(struct dlp_making *making, struct strata *strata, const struct dlp_order *order) {
        int r = dlp_classes_init(making, "stratified", strata->column, &strata->classes);

        strata->n_room = strata->classes.n;
        if (r == 0)
                r = dlp_making_allocate(making, strata->n_room, sizeof(*strata->counts), &strata->counts);
        if (r == 0)
                r = dlp_making_allocate(making, strata->n_room, sizeof(*strata->ends), &strata->ends);
        if (r == 0)
                r = dlp_making_samples(making, order->n_positions, &strata->sorted);
        if (r == 0)
                r = stratified_count(making, strata, order);
        if (r == 0)
                r = stratified_sort(making, strata, order);
        if (r == 0)
                r = dlp_quota_init(making, strata->counts, strata->classes.n, &strata->quota);
        return r < 0 ? r : stratified_deal(making, strata, order);
}

static int make(struct dlp_making *making, const struct dlp_step *step, struct dlp_order *order) {
        struct strata strata = { 0 };
        int r = dlp_making_column(making, "stratified", step->values[COLUMN].text, &strata.column);

        if (r == 0)
                r = stratified_arrange(making, &strata, order);
        making->release(making, strata.counts, strata.n_room * sizeof(*strata.counts));
        making->release(making, strata.ends, strata.n_room * sizeof(*strata.ends));
        dlp_making_free(making, &strata.sorted);
        dlp_quota_fini(making, &strata.quota);
        dlp_classes_fini(making, &strata.classes);
        return r;
}

const struct dlp_step_type dlp_step_stratified = {
        .kind = { .name = "stratified",
                  .doc = "Classes in proportion: the first `k` positions hold each class as often as in all, to less "
                         "than one sample, for every `k`. Within a class samples keep their sequence.",
                  .example = "stratified(column=label)",
                  .arguments = ARGUMENTS({ ARGUMENT_COLUMN, "column", .form = "labels of samples" }) },
        .role = DLP_ARRANGER,
        .scratch_bytes = scratch_bytes,
        .make = make,
};
