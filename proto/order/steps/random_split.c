/* random_split(0.9, 0.1, part=0, seed=0): one part of torch's random_split().
 *
 * The samples are cut up by torch.randperm() with the generator seeded with `seed`, the same in each epoch. The part is
 * then shuffled as a dataset of its own: with the samples' places in the part. Numbers are shares that add up to 1, or
 * numbers of samples that add up to the dataset's. */
#include <errno.h>
#include <math.h>

#include "proto/order/making/order_draws.h"
#include "proto/order/steps/sampler_step.h"

enum {
        LENGTHS,
        PART,
        SEED,
};

static double random_split_sum_of(const struct value *lengths) {
        double sum = 0;

        for (uint32_t i = 0; i < lengths->n_list; i++)
                sum += lengths->list[i];
        return sum;
}

/* As torch: within a billionth of 1, and not above it. */
static bool are_shares(const struct value *lengths) {
        double sum = random_split_sum_of(lengths);

        return sum <= 1 && 1 - sum <= 1e-9;
}

static int check(const struct dlp_step *step, struct why *why) {
        const struct value *lengths = &step->values[LENGTHS];
        double sum = random_split_sum_of(lengths);

        if (step->values[PART].whole >= lengths->n_list)
                return why_set(why, -EINVAL, "part %llu; there are %u, from 0 on",
                               (unsigned long long)step->values[PART].whole, lengths->n_list);
        for (uint32_t i = 0; !are_shares(lengths) && i < lengths->n_list; i++)
                if (rint(lengths->list[i]) != lengths->list[i])
                        return why_set(why, -EINVAL,
                                       "the shares add up to %.17g; they must add up to 1, else give numbers of "
                                       "samples",
                                       sum);
        return 0;
}

/* The place of the part, and how many samples it has. Shares are rounded down; what is left goes to the first parts,
 * one to each. */
static uint64_t random_split_place_of(const struct dlp_step *step, uint64_t n_samples, uint64_t *ret_n) {
        const struct value *lengths = &step->values[LENGTHS];
        uint64_t counts[KIND_LIST_MAX], n_left = n_samples, begin = 0;
        bool is_shared = are_shares(lengths);

        for (uint32_t i = 0; i < lengths->n_list; i++) {
                double count = is_shared ? floor((double)n_samples * lengths->list[i]) : lengths->list[i];

                counts[i] = count < (double)n_left ? (uint64_t)count : n_left;
                n_left -= counts[i];
        }
        for (uint32_t i = 0; is_shared && n_left > 0; i = (i + 1) % lengths->n_list, n_left--)
                counts[i]++;
        for (uint64_t i = 0; i < step->values[PART].whole; i++)
                begin += counts[i];
        *ret_n = counts[step->values[PART].whole];
        return begin;
}

static uint64_t n_positions_max(const struct dlp_step *step, const struct dlp_making_terms *terms, uint64_t n) {
        uint64_t n_part;

        (void)terms;
        random_split_place_of(step, n, &n_part);
        return n_part;
}

static int make(struct dlp_making *making, const struct dlp_step *step, struct dlp_order *order) {
        uint64_t n_samples = making->terms->base.n_samples, n, begin = random_split_place_of(step, n_samples, &n);
        struct dlp_torch_random random;
        struct dlp_order split;
        int r;

        if (!are_shares(&step->values[LENGTHS]) && random_split_sum_of(&step->values[LENGTHS]) != (double)n_samples)
                return why_set(making->why, -EINVAL,
                               "random_split: the parts have %.17g samples together, the dataset has %llu",
                               random_split_sum_of(&step->values[LENGTHS]), (unsigned long long)n_samples);
        if (n == 0)
                return why_set(making->why, -EINVAL, "random_split: part %llu has no samples of the dataset's %llu",
                               (unsigned long long)step->values[PART].whole, (unsigned long long)n_samples);
        dlp_torch_seed(&random, step->values[SEED].whole);
        r = dlp_making_randperm(making, &random, n_samples, &split);
        if (r < 0)
                return r;
        r = dlp_making_permute(making, n, false, order);
        for (uint64_t i = 0; r == 0 && i < n; i++)
                dlp_order_set_sample(order, i, dlp_order_sample(&split, begin + dlp_order_sample(order, i)));
        dlp_making_free(making, &split);
        return r;
}

const struct dlp_step_type dlp_step_random_split = {
        .kind = { .name = "random_split",
                  .doc = "One part of torch's `random_split` with a generator seeded with `seed`, shuffled in each "
                         "epoch as a dataset of its own. The numbers are shares that add up to 1, or numbers of "
                         "samples that add up to the dataset's.",
                  .like = "torch.utils.data.random_split",
                  .example = "random_split(0.9, 0.1, part=0, seed=0)",
                  .arguments = ARGUMENTS(
                          { ARGUMENT_NUMBERS, "lengths", .minimum = 0, .maximum = (double)DLP_SAMPLES_MAX },
                          { ARGUMENT_WHOLE, "part", .maximum = KIND_LIST_MAX - 1 },
                          { ARGUMENT_WHOLE, "seed", "0", .maximum = (double)UINT64_MAX }) },
        .role = DLP_CHOOSER,
        .check = check,
        .n_positions_max = n_positions_max,
        .sample_bytes = 16,
        .make = make,
};
