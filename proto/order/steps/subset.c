/* subset(column=c): the samples whose numbers the column holds, as torch's SubsetRandomSampler: column[i] for i in
 * randperm(length of the column). Without shuffling in the column's sequence. A number may come several times. */
#include <errno.h>

#include "proto/order/steps/sampler_step.h"

enum {
        COLUMN,
};

static const struct dlp_column *subset_column_of(const struct dlp_step *step, const struct dlp_making_terms *terms) {
        for (uint32_t i = 0; i < terms->n_columns; i++)
                if (__builtin_strcmp(terms->columns[i].name, step->values[COLUMN].text) == 0)
                        return &terms->columns[i];
        return NULL;
}

static uint64_t n_positions_max(const struct dlp_step *step, const struct dlp_making_terms *terms, uint64_t n) {
        const struct dlp_column *column = subset_column_of(step, terms);

        return column ? column->n_values : n;
}

/* The shuffle of the column's places, of which there may be more than samples. */
static uint64_t scratch_bytes(const struct dlp_step *step, const struct dlp_making_terms *terms, uint64_t n) {
        const struct dlp_column *column = subset_column_of(step, terms);
        uint64_t n_bytes;

        (void)n;
        if (!column || __builtin_mul_overflow(column->n_values, sizeof(uint64_t), &n_bytes))
                return column ? UINT64_MAX : 0;
        return n_bytes;
}

/* Replaces numbers of the column's places by the samples that the column names. */
static int subset_look_up(struct dlp_making *making, const struct dlp_column *column, const struct dlp_order *order) {
        uint64_t n_samples = making->terms->base.n_samples;

        for (uint64_t i = 0; i < order->n_positions; i++) {
                uint64_t place = dlp_order_sample(order, i);
                int64_t sample = dlp_column_whole(column, place);

                if (sample < 0 || (uint64_t)sample >= n_samples)
                        return why_set(making->why, -EINVAL,
                                       "subset: \"%s\" has the index %lld at place %llu; the dataset has %llu samples, "
                                       "0 to %llu",
                                       column->name, (long long)sample, (unsigned long long)place,
                                       (unsigned long long)n_samples, (unsigned long long)(n_samples - 1));
                dlp_order_set_sample(order, i, (uint64_t)sample);
                if (i % 65536 == 65535 && !making->go_on(making, i, order->n_positions))
                        return -ECANCELED;
        }
        return 0;
}

static int make(struct dlp_making *making, const struct dlp_step *step, struct dlp_order *order) {
        const struct dlp_column *column;
        int r = dlp_making_any_column(making, "subset", step->values[COLUMN].text, &column);

        if (r < 0)
                return r;
        if (!dlp_column_is_whole(column))
                return why_set(making->why, -EINVAL, "subset: \"%s\" has %s; whole numbers are needed", column->name,
                               dlp_dtype_name(column->dtype));
        if (column->n_values > making->terms->base.n_samples && making->terms->base.n_samples <= UINT32_MAX &&
            column->n_values > UINT32_MAX)
                return why_set(making->why, -EINVAL, "subset: \"%s\" has %llu indices; at most %u are allowed",
                               column->name, (unsigned long long)column->n_values, UINT32_MAX);
        r = dlp_making_permute(making, column->n_values, false, order);
        return r < 0 ? r : subset_look_up(making, column, order);
}

const struct dlp_step_type dlp_step_subset = {
        .kind = { .name = "subset",
                  .doc = "The samples whose numbers the column holds, shuffled by their places in it. A number may "
                         "come several times.",
                  .like = "torch.utils.data.SubsetRandomSampler",
                  .example = "subset(indices.txt)",
                  .arguments = ARGUMENTS({ ARGUMENT_COLUMN, "column", .form = "indices of samples" }) },
        .role = DLP_CHOOSER,
        .n_positions_max = n_positions_max,
        .repeats = true,
        .scratch_bytes = scratch_bytes,
        .make = make,
};
