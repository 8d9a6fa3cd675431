/* repeat_factor(column=label, t=0.001): samples of rare classes several times, as for LVIS.
 *
 * As detectron2's RepeatFactorTrainingSampler: with f(c) the share of the samples that have class c, a sample's factor
 * is the largest max(1, sqrt(t / f(c))) of its classes, as float32; without a class it is 1. In each epoch a sample
 * comes as often as the whole part of its factor says, and once more if torch.rand() is below the rest. The positions,
 * in the sequence of samples, are then shuffled by the same generator, which is seeded with seed + epoch (detectron2
 * seeds it once and goes on, so its first epoch is the same). Epochs differ in length. */
#include <errno.h>
#include <math.h>

#include "proto/order/making/order_classes.h"
#include "proto/order/making/order_draws.h"
#include "proto/order/steps/sampler_step.h"

enum {
        COLUMN,
        T,
};

#define LOOK     16384u
#define SCAN_MAX (1u << 24) /* labels that are looked at only to know how many positions there may be: 20 ms */

static const struct dlp_column *repeat_factor_column_of(const struct dlp_step *step,
                                                        const struct dlp_making_terms *terms) {
        for (uint32_t i = 0; i < terms->n_columns; i++)
                if (__builtin_strcmp(terms->columns[i].name, step->values[COLUMN].text) == 0)
                        return &terms->columns[i];
        return NULL;
}

/* The most classes that the column can have: as many as whole numbers from its smallest to its largest. */
static double n_classes_max(const struct dlp_column *column) {
        int64_t minimum = INT64_MAX, maximum = INT64_MIN, labels[1024];
        double n = (double)column->n_values < DLP_CLASSES_MAX ? (double)column->n_values : DLP_CLASSES_MAX;

        if (!dlp_column_is_whole(column) || column->n_values == 0 || column->n_values > SCAN_MAX)
                return n;
        for (uint64_t i = 0; i < column->n_values; i += 1024) {
                uint64_t n_left = column->n_values - i, n_some = n_left < 1024 ? n_left : 1024;

                dlp_column_wholes(column, i, n_some, labels);
                for (uint64_t k = 0; k < n_some; k++) {
                        minimum = labels[k] < minimum ? labels[k] : minimum;
                        maximum = labels[k] > maximum ? labels[k] : maximum;
                }
        }
        return fmin(n, (double)maximum - (double)minimum + 1);
}

/* A class of m samples adds at most sqrt(m * t * n) to the sum of the factors, and only if m < t * n: so at most t * n,
 * and all classes together most if they are alike. Beside that each sample comes once, and perhaps once more. */
static uint64_t n_positions_max(const struct dlp_step *step, const struct dlp_making_terms *terms, uint64_t n) {
        const struct dlp_column *column = repeat_factor_column_of(step, terms);
        double share = step->values[T].number * (double)n, n_classes, more;

        if (!column)
                return 2 * n;
        n_classes = n_classes_max(column);
        more = fmin(n_classes * share, sqrt((double)column->n_values * n_classes * share));
        more = 2.0 * (double)n + ceil(more);
        return more < (double)DLP_SAMPLES_MAX ? (uint64_t)more + 1 : DLP_SAMPLES_MAX;
}

static uint64_t scratch_bytes(const struct dlp_step *step, const struct dlp_making_terms *terms, uint64_t n) {
        const struct dlp_column *column = repeat_factor_column_of(step, terms);
        uint64_t n_values = column ? column->n_values : n, n_positions = n_positions_max(step, terms, n);
        uint64_t n_classes = n_values < DLP_CLASSES_MAX ? n_values : DLP_CLASSES_MAX;
        uint64_t n_bytes = terms->base.n_samples > UINT32_MAX ? sizeof(uint64_t) : sizeof(uint32_t);

        return dlp_classes_bytes_max(n_values) + n_classes * (sizeof(double) + 2 * sizeof(uint64_t)) +
               n * sizeof(uint32_t) + 2 * n_positions * n_bytes + sizeof(struct dlp_sampler);
}

struct factors {
        const struct dlp_column *column;
        struct dlp_classes classes;
        uint64_t *counts; /* samples that have the class */
        uint64_t *last;   /* the last sample that was counted, + 1 */
        double *factors;  /* of classes */
        uint64_t n_room;
        uint32_t *times; /* of samples: how often it comes */
        uint64_t n_samples;
};

/* The values of a sample. */
static uint64_t begin_of(const struct dlp_column *column, uint64_t sample) {
        return !column->ends ? sample : sample > 0 ? column->ends[sample - 1] : 0;
}

static uint64_t end_of(const struct dlp_column *column, uint64_t sample) {
        return column->ends ? column->ends[sample] : sample + 1;
}

static int repeat_factor_count(struct dlp_making *making, struct factors *factors) {
        for (uint64_t i = 0; i < factors->n_samples; i++) {
                for (uint64_t k = begin_of(factors->column, i); k < end_of(factors->column, i); k++) {
                        uint32_t idx = dlp_classes_find(&factors->classes, dlp_column_whole(factors->column, k));

                        factors->counts[idx] += factors->last[idx] != i + 1;
                        factors->last[idx] = i + 1;
                }
                if (i % LOOK == 0 && !making->go_on(making, 0, factors->n_samples))
                        return -ECANCELED;
        }
        return 0;
}

static float repeat_factor_factor_of(const struct factors *factors, uint64_t sample) {
        double factor = 1;

        for (uint64_t k = begin_of(factors->column, sample); k < end_of(factors->column, sample); k++) {
                uint32_t idx = dlp_classes_find(&factors->classes, dlp_column_whole(factors->column, k));

                factor = factors->factors[idx] > factor ? factors->factors[idx] : factor;
        }
        return (float)factor;
}

/* How often each sample comes; *ret_n: how often all do. */
static int repeat_factor_draw(struct dlp_making *making, struct factors *factors, double t,
                              struct dlp_torch_random *random, uint64_t *ret_n) {
        uint64_t n = 0;

        for (uint32_t i = 0; i < factors->classes.n; i++) {
                double share = (double)factors->counts[i] / (double)factors->n_samples, factor = sqrt(t / share);

                factors->factors[i] = factor > 1 ? factor : 1;
        }
        for (uint64_t i = 0; i < factors->n_samples; i++) {
                float factor = repeat_factor_factor_of(factors, i), whole = truncf(factor);

                factors->times[i] = (uint32_t)whole + (dlp_draw_f32(random) < factor - whole);
                n += factors->times[i];
                if (i % LOOK == 0 && !making->go_on(making, 0, factors->n_samples))
                        return -ECANCELED;
        }
        *ret_n = n;
        return 0;
}

static int repeat_factor_list(struct dlp_making *making, const struct factors *factors,
                              const struct dlp_order *listed) {
        uint64_t at = 0;

        for (uint64_t i = 0; i < factors->n_samples; i++) {
                for (uint32_t k = 0; k < factors->times[i]; k++)
                        dlp_order_set_sample(listed, at++, i);
                if (i % LOOK == 0 && !making->go_on(making, 0, factors->n_samples))
                        return -ECANCELED;
        }
        return 0;
}

/* Shuffles what is listed: torch's generator goes on from its draws. */
static int repeat_factor_shuffle(struct dlp_making *making, struct dlp_torch_random *random,
                                 const struct dlp_order *listed, struct dlp_order *order) {
        const struct dlp_sampler_terms *base = &making->terms->base;
        int r = base->shuffle && base->kind == DLP_ORDER_TORCH
                        ? dlp_making_randperm(making, random, listed->n_positions, order)
                        : dlp_making_permute(making, listed->n_positions, false, order);

        for (uint64_t i = 0; r == 0 && i < order->n_positions; i++)
                dlp_order_set_sample(order, i, dlp_order_sample(listed, dlp_order_sample(order, i)));
        return r;
}

static int repeat_factor_prepare(struct dlp_making *making, struct factors *factors) {
        int r = dlp_classes_init(making, "repeat_factor", factors->column, &factors->classes);

        factors->n_room = factors->classes.n;
        if (r == 0)
                r = dlp_making_allocate(making, factors->n_room, sizeof(*factors->counts), &factors->counts);
        if (r == 0)
                r = dlp_making_allocate(making, factors->n_room, sizeof(*factors->last), &factors->last);
        if (r == 0)
                r = dlp_making_allocate(making, factors->n_room, sizeof(*factors->factors), &factors->factors);
        if (r == 0)
                r = dlp_making_allocate(making, factors->n_samples, sizeof(*factors->times), &factors->times);
        return r < 0 ? r : repeat_factor_count(making, factors);
}

static int make_all(struct dlp_making *making, const struct dlp_step *step, struct factors *factors,
                    struct dlp_order *order) {
        struct dlp_torch_random random;
        struct dlp_order listed;
        uint64_t n = 0;
        int r = repeat_factor_prepare(making, factors);

        if (r < 0)
                return r;
        dlp_making_seed(making, &random);
        r = repeat_factor_draw(making, factors, step->values[T].number, &random, &n);
        if (r < 0)
                return r;
        if (n > DLP_SAMPLES_MAX)
                return why_set(making->why, -EINVAL,
                               "repeat_factor: %llu positions; at most %llu are allowed; give a "
                               "smaller t",
                               (unsigned long long)n, DLP_SAMPLES_MAX);
        r = dlp_making_samples(making, n, &listed);
        if (r < 0)
                return r;
        r = repeat_factor_list(making, factors, &listed);
        if (r == 0)
                r = repeat_factor_shuffle(making, &random, &listed, order);
        dlp_making_free(making, &listed);
        return r;
}

static int repeat_factor_check_lists(const struct dlp_making *making, const struct dlp_column *column) {
        uint64_t n_samples = making->terms->base.n_samples;

        if (column->ends && column->n_samples != n_samples)
                return why_set(making->why, -EINVAL,
                               "repeat_factor: \"%s\" has lists for %llu samples, but the "
                               "dataset has %llu",
                               column->name, (unsigned long long)column->n_samples, (unsigned long long)n_samples);
        return 0;
}

static int make(struct dlp_making *making, const struct dlp_step *step, struct dlp_order *order) {
        struct factors factors = { .n_samples = making->terms->base.n_samples };
        int r = dlp_making_any_column(making, "repeat_factor", step->values[COLUMN].text, &factors.column);

        if (r < 0)
                return r;
        r = factors.column->ends
                    ? repeat_factor_check_lists(making, factors.column)
                    : dlp_making_column(making, "repeat_factor", step->values[COLUMN].text, &factors.column);
        if (r == 0)
                r = make_all(making, step, &factors, order);
        making->release(making, factors.counts, factors.n_room * sizeof(*factors.counts));
        making->release(making, factors.last, factors.n_room * sizeof(*factors.last));
        making->release(making, factors.factors, factors.n_room * sizeof(*factors.factors));
        making->release(making, factors.times, factors.n_samples * sizeof(*factors.times));
        dlp_classes_fini(making, &factors.classes);
        return r;
}

const struct dlp_step_type dlp_step_repeat_factor = {
        .kind = { .name = "repeat_factor",
                  .doc = "Samples of rare classes more often, as for LVIS: a sample's factor is the largest max(1, "
                         "sqrt(t / f)) of its classes, `f` being the share of samples that have the class. The column "
                         "has one label for each sample, or a list of any length. A factor's fraction is drawn in "
                         "each epoch, so epochs differ in length. Epoch 0 is the first pass of detectron2's sampler "
                         "with the same seed.",
                  .like = "detectron2.data.samplers.RepeatFactorTrainingSampler",
                  .example = "repeat_factor(column=label, t=0.001)",
                  .arguments = ARGUMENTS({ ARGUMENT_COLUMN, "column", .form = "labels of samples" },
                                         { ARGUMENT_NUMBER, "t", "0.001", .minimum = 1e-12, .maximum = 1 }) },
        .role = DLP_CHOOSER,
        .n_positions_max = n_positions_max,
        .scratch_bytes = scratch_bytes,
        .repeats = true,
        .make = make,
};
