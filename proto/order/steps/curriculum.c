/* curriculum(column=c, stages=0.25:0.5, epochs=2:4): the easiest samples first, more of them stage by stage.
 *
 * Up to epochs[k], that epoch not included, an epoch has the share stages[k] of the samples: those with the smallest
 * values of the column, or with descending=true the largest; of equals those with the smaller index. After the last
 * stage it has all. Within the stage samples are shuffled as a dataset of their own; without shuffling they come in the
 * column's sequence. */
#include <errno.h>
#include <math.h>

#include "proto/order/making/sorting.h"
#include "proto/order/steps/sampler_step.h"

enum {
        COLUMN,
        STAGES,
        EPOCHS,
        DESCENDING,
};

#define AT_ONCE 1024u

/* A last stage of all samples needs no end: the same follows. */
static int check(const struct dlp_step *step, struct why *why) {
        const struct value *stages = &step->values[STAGES], *epochs = &step->values[EPOCHS];

        for (uint32_t i = 1; i < stages->n_list; i++)
                if (stages->list[i] <= stages->list[i - 1])
                        return why_set(why, -EINVAL,
                                       "stages: %g after %g; each stage has more samples than the one "
                                       "before",
                                       stages->list[i], stages->list[i - 1]);
        for (uint32_t i = 1; i < epochs->n_list; i++)
                if (epochs->list[i] <= epochs->list[i - 1])
                        return why_set(why, -EINVAL,
                                       "epochs: %.17g after %.17g; each stage ends later than the one "
                                       "before",
                                       epochs->list[i], epochs->list[i - 1]);
        if (epochs->n_list > stages->n_list)
                return why_set(why, -EINVAL, "%u epochs for %u stages; give each stage the epoch at which it ends",
                               epochs->n_list, stages->n_list);
        if (epochs->n_list < stages->n_list &&
            (epochs->n_list + 1 < stages->n_list || stages->list[stages->n_list - 1] < 1))
                return why_set(
                        why, -EINVAL,
                        "stage %u, a share of %g, never ends: there are %u epochs for %u stages; give each stage "
                        "the epoch at which it ends",
                        epochs->n_list + 1, stages->list[epochs->n_list], epochs->n_list, stages->n_list);
        return 0;
}

static uint64_t n_chosen(const struct dlp_step *step, const struct dlp_making_terms *terms) {
        const struct value *stages = &step->values[STAGES], *epochs = &step->values[EPOCHS];
        uint64_t n_samples = terms->base.n_samples;

        for (uint32_t i = 0; i < epochs->n_list; i++)
                if ((double)terms->base.epoch < epochs->list[i]) {
                        double n = ceil((double)n_samples * stages->list[i]);

                        return n < (double)n_samples ? (uint64_t)n : n_samples;
                }
        return n_samples;
}

static uint64_t n_positions_max(const struct dlp_step *step, const struct dlp_making_terms *terms, uint64_t n) {
        (void)n;
        return n_chosen(step, terms);
}

static int curriculum_make_keys(struct dlp_making *making, const struct dlp_column *column, bool descends,
                                uint64_t *keys, const struct dlp_order *order) {
        double values[AT_ONCE];
        int64_t wholes[AT_ONCE];
        bool is_whole = dlp_column_is_whole(column);

        for (uint64_t i = 0; i < order->n_positions; i += AT_ONCE) {
                uint64_t n_left = order->n_positions - i, n = n_left < AT_ONCE ? n_left : AT_ONCE;

                if (is_whole)
                        dlp_column_wholes(column, i, n, wholes);
                else
                        dlp_column_reals(column, i, n, values);
                for (uint64_t k = 0; k < n; k++) {
                        uint64_t key;

                        if (!is_whole && isnan(values[k]))
                                return why_set(making->why, -EINVAL,
                                               "curriculum: \"%s\" is not a number at sample "
                                               "%llu",
                                               column->name, (unsigned long long)(i + k));
                        key = is_whole ? dlp_key_of_whole(wholes[k]) : dlp_key_of_real(values[k]);
                        keys[i + k] = descends ? ~key : key;
                        dlp_order_set_sample(order, i + k, i + k);
                }
                if (i % 16384 == 0 && !making->go_on(making, i, 2 * order->n_positions))
                        return -ECANCELED;
        }
        return 0;
}

/* All samples in the column's sequence. */
static int curriculum_sort(struct dlp_making *making, const struct dlp_step *step, const struct dlp_column *column,
                           struct dlp_order *ret_order) {
        uint64_t n = making->terms->base.n_samples, *keys;
        struct dlp_order order;
        int r = dlp_making_allocate(making, n, sizeof(*keys), &keys);

        if (r < 0)
                return r;
        r = dlp_making_samples(making, n, &order);
        if (r == 0) {
                r = curriculum_make_keys(making, column, step->values[DESCENDING].flag, keys, &order);
                if (r == 0)
                        r = dlp_making_sort(making, keys, &order);
                if (r < 0)
                        dlp_making_free(making, &order);
        }
        making->release(making, keys, n * sizeof(*keys));
        if (r == 0)
                *ret_order = order;
        return r;
}

static int make(struct dlp_making *making, const struct dlp_step *step, struct dlp_order *order) {
        uint64_t n = n_chosen(step, making->terms);
        const struct dlp_column *column;
        struct dlp_order sorted;
        int r = dlp_making_column(making, "curriculum", step->values[COLUMN].text, &column);

        if (r < 0)
                return r;
        r = curriculum_sort(making, step, column, &sorted);
        if (r < 0)
                return r;
        r = dlp_making_permute(making, n, false, order);
        for (uint64_t i = 0; r == 0 && i < n; i++)
                dlp_order_set_sample(order, i, dlp_order_sample(&sorted, dlp_order_sample(order, i)));
        dlp_making_free(making, &sorted);
        return r;
}

const struct dlp_step_type dlp_step_curriculum = {
        .kind = { .name = "curriculum",
                  .doc = "The easiest samples first: each stage adds the next share of them, until an epoch has all. "
                         "With `stages=0.25:0.5` and `epochs=2:4` come before epoch 2 the quarter with the smallest "
                         "values of the column, then the half until epoch 4, then all. With `descending=true` the "
                         "largest values come first. Within an epoch, samples are shuffled; with `shuffle` off they "
                         "come in the column's sequence. Each stage needs the epoch at which it ends; a last stage of "
                         "1 (all samples) may go without.",
                  .example = "curriculum(column=difficulty, stages=0.25:0.5, epochs=2:4)",
                  .arguments = ARGUMENTS(
                          { ARGUMENT_COLUMN, "column", .form = "how difficult samples are" },
                          { ARGUMENT_LIST, "stages", .minimum = 1e-12, .maximum = 1 },
                          { ARGUMENT_LIST, "epochs", .minimum = 1, .maximum = (double)DLP_EPOCH_MAX, .is_whole = true },
                          { ARGUMENT_FLAG, "descending", "false" }) },
        .role = DLP_CHOOSER,
        .check = check,
        .n_positions_max = n_positions_max,
        .sample_bytes = 32,
        .make = make,
};
