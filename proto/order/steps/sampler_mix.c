/* mix(a=0.7, b=0.3, n=N, how=proportion, ...): samples of the parts of a dataset that is made of several.
 *
 * How many of each: order/making/order_mixture.h. A part's samples come in passes, each of which has all of them,
 * shuffled by its own generator: part number i of the dataset (from 0) has the seed dlp_philox_seed(seed, i + 1), and a
 * pass counts as an epoch. Where an epoch ends within a pass, the next epoch goes on there: so no sample of a part
 * comes a second time before all have come once.
 *
 * Which part stands where: shuffled as the order and seed + epoch say; with even=true or without shuffling evenly
 * (order/making/order_quota.h); with how=blend as Megatron has it: position k, counted from 0, gets the first part
 * whose share times max(k, 1) is farthest above what it has got. A part without weight gets none, also where all others
 * have just got theirs. */
#include <errno.h>
#include <math.h>

#include "proto/order/making/order_mixture.h"
#include "proto/order/making/order_quota.h"
#include "proto/order/philox.h"
#include "proto/order/steps/sampler_step.h"

enum {
        WEIGHTS,
        N,
        HOW,
        TEMPERATURE,
        UNTIL,
        EVEN,
        TO,
        AT,
};

#define LOOK   16384u /* positions between two looks at whether the order is still wanted */
#define AT_MAX 65536.0

static struct dlp_mixture_terms sampler_mix_terms_of(const struct dlp_step *step) {
        return (struct dlp_mixture_terms){ .weights = &step->values[WEIGHTS],
                                           .n = &step->values[N],
                                           .until = &step->values[UNTIL],
                                           .to = &step->values[TO],
                                           .at = &step->values[AT],
                                           .how = (enum dlp_mixture_how)step->values[HOW].choice,
                                           .temperature = step->values[TEMPERATURE].number };
}

/* ---- the text -------------------------------------------------------------------------------------------------- */

static int sampler_mix_check_weights(const struct dlp_step *step, struct why *why) {
        const struct value *weights = &step->values[WEIGHTS];
        double sum = 0;

        for (uint32_t i = 0; i < weights->n_list; i++) {
                sum += weights->list[i];
                if (step->values[HOW].choice == DLP_MIXTURE_CHOOSE &&
                    weights->list[i] != (double)(uint64_t)weights->list[i])
                        return why_set(why, -EINVAL, "%s = %g; how=choose takes whole numbers of samples",
                                       weights->names[i], weights->list[i]);
        }
        if (weights->is_set && !(sum > 0))
                return why_set(why, -EINVAL, "all weights are 0");
        if (!weights->is_set && (step->values[HOW].choice == DLP_MIXTURE_REPEAT ||
                                 step->values[HOW].choice == DLP_MIXTURE_CHOOSE || step->values[TO].is_set))
                return why_set(why, -EINVAL, "the parts and their weights are missing");
        return 0;
}

static int check_schedule(const struct dlp_step *step, struct why *why) {
        const struct value *to = &step->values[TO], *at = &step->values[AT];
        uint32_t n_parts = step->values[WEIGHTS].n_list;

        if (to->n_list != at->n_list * n_parts)
                return why_set(
                        why, -EINVAL,
                        "to has %u numbers; %u parts and %u epochs in `at` need %u: the weights of all parts for "
                        "each of these epochs",
                        to->n_list, n_parts, at->n_list, n_parts * at->n_list);
        for (uint32_t i = 1; i < at->n_list; i++)
                if (at->list[i] <= at->list[i - 1])
                        return why_set(why, -EINVAL, "at: epoch %g after %g; epochs must grow", at->list[i],
                                       at->list[i - 1]);
        for (uint32_t i = 0; i < at->n_list; i++) {
                double sum = 0;

                for (uint32_t k = 0; k < n_parts; k++)
                        sum += to->list[i * n_parts + k];
                if (!(sum > 0))
                        return why_set(why, -EINVAL, "all weights are 0 from epoch %g on", at->list[i]);
        }
        if (at->n_list > 0 && step->values[HOW].choice == DLP_MIXTURE_BLEND)
                return why_set(why, -EINVAL,
                               "how=blend keeps its weights; with `to`, take how=proportion and even=true");
        return 0;
}

static int check(const struct dlp_step *step, struct why *why) {
        bool has_counts = step->values[HOW].choice == DLP_MIXTURE_REPEAT ||
                          step->values[HOW].choice == DLP_MIXTURE_CHOOSE;
        int r = sampler_mix_check_weights(step, why);

        if (r == 0)
                r = check_schedule(step, why);
        if (r < 0)
                return r;
        if (has_counts && (step->values[N].is_set || step->values[UNTIL].is_set))
                return why_set(why, -EINVAL,
                               "the weights say how many samples an epoch has; n and until are for "
                               "how=proportion and how=blend");
        if (has_counts && step->values[TEMPERATURE].number != 1)
                return why_set(why, -EINVAL, "temperature is for how=proportion and how=blend");
        if (step->values[N].is_set && step->values[UNTIL].is_set)
                return why_set(why, -EINVAL, "n and until both say how long an epoch is; give one of them");
        return 0;
}

static uint64_t n_positions_max(const struct dlp_step *step, const struct dlp_making_terms *terms, uint64_t n) {
        struct dlp_mixture_terms mixing = sampler_mix_terms_of(step);
        struct dlp_mixture mixture;

        return dlp_mixture_make(&mixing, terms, terms->base.epoch, &mixture, NULL) < 0 ? n : mixture.n;
}

static uint64_t scratch_bytes(const struct dlp_step *step, const struct dlp_making_terms *terms, uint64_t n) {
        return 2 * sizeof(uint64_t) * n_positions_max(step, terms, n) + sizeof(uint64_t) * terms->base.n_samples +
               sizeof(struct dlp_sampler) + dlp_quota_bytes(KIND_LIST_MAX);
}

/* ---- which part stands where: the order holds their numbers ----------------------------------------------------- */

static int place_blended(struct dlp_making *making, struct dlp_mixture *mixture, const struct dlp_order *order) {
        uint32_t n = mixture->n_parts;

        for (uint32_t i = 0; i < n; i++)
                mixture->counts[i] = 0;
        for (uint64_t k = 0; k < order->n_positions; k++) {
                double at = k > 0 ? (double)k : 1.0, largest = -HUGE_VAL;
                uint32_t first = 0;

                for (uint32_t i = 0; i < n; i++) {
                        double lack = mixture->shares[i] * at - (double)mixture->counts[i];

                        if (lack > largest && mixture->shares[i] > 0) {
                                largest = lack;
                                first = i;
                        }
                }
                mixture->counts[first]++;
                dlp_order_set_sample(order, k, first);
                if (k % LOOK == 0 && !making->go_on(making, 0, order->n_positions))
                        return -ECANCELED;
        }
        return 0;
}

static int place_evenly(struct dlp_making *making, const struct dlp_mixture *mixture, const struct dlp_order *order) {
        struct dlp_quota quota;
        int r = dlp_quota_init(making, mixture->counts, mixture->n_parts, &quota);

        for (uint64_t k = 0; r == 0 && k < order->n_positions; k++) {
                dlp_order_set_sample(order, k, dlp_quota_next(&quota));
                if (k % LOOK == 0 && !making->go_on(making, 0, order->n_positions))
                        r = -ECANCELED;
        }
        dlp_quota_fini(making, &quota);
        return r;
}

/* A permutation of as many numbers as there are positions: the first counts[0] of them are part 0, and so on. */
static int place_shuffled(struct dlp_making *making, const struct dlp_mixture *mixture, struct dlp_order *order) {
        int r = dlp_making_permute(making, mixture->n, false, order);

        for (uint64_t k = 0; r == 0 && k < order->n_positions; k++) {
                uint64_t number = dlp_order_sample(order, k), end = mixture->counts[0];
                uint32_t i = 0;

                while (number >= end)
                        end += mixture->counts[++i];
                dlp_order_set_sample(order, k, i);
                if (k % LOOK == 0 && !making->go_on(making, 0, order->n_positions))
                        r = -ECANCELED;
        }
        return r;
}

static int sampler_mix_place(struct dlp_making *making, const struct dlp_step *step, struct dlp_mixture *mixture,
                             struct dlp_order *order) {
        bool is_blend = step->values[HOW].choice == DLP_MIXTURE_BLEND;
        int r;

        if (making->terms->base.shuffle && !step->values[EVEN].flag && !is_blend)
                return place_shuffled(making, mixture, order);
        r = dlp_making_samples(making, mixture->n, order);
        if (r < 0)
                return r;
        return is_blend ? place_blended(making, mixture, order) : place_evenly(making, mixture, order);
}

/* ---- the samples of a part -------------------------------------------------------------------------------------- */

/* A part while it is listed: n positions from `at` on. */
struct stretch {
        const struct dlp_order *listed;
        uint64_t at, n;
};

/* Samples `begin` .. `begin` + n - 1 of a pass over a part. */
static int list_pass(struct dlp_making *making, const struct dlp_part *part, const struct dlp_sampler_terms *terms,
                     struct dlp_sampler *sampler, uint64_t begin, const struct stretch *stretch) {
        uint64_t n_bytes = dlp_sampler_table_bytes(terms), n_final = 0;
        void *table;
        int r = dlp_making_allocate(making, 1, n_bytes, &table);

        if (r < 0)
                return r;
        dlp_sampler_init(sampler, terms, table);
        while (r == 0 && n_final < begin + stretch->n) {
                n_final = dlp_sampler_advance(sampler, LOOK);
                if (!making->go_on(making, 0, stretch->listed->n_positions))
                        r = -ECANCELED;
        }
        for (uint64_t i = 0; r == 0 && i < stretch->n; i++) {
                dlp_order_set_sample(stretch->listed, stretch->at + i,
                                     part->first + dlp_sampler_at(sampler, begin + i));
                if (i % LOOK == 0 && !making->go_on(making, 0, stretch->listed->n_positions))
                        r = -ECANCELED;
        }
        making->release(making, table, n_bytes);
        return r;
}

/* All samples of a part in this epoch, from where the epoch before has stopped. */
static int list_part(struct dlp_making *making, const struct dlp_part *part, uint64_t pass, uint64_t begin,
                     struct dlp_sampler *sampler, struct stretch stretch) {
        struct dlp_sampler_terms terms = making->terms->base;
        uint64_t n_left = stretch.n;
        uint32_t idx = 0;
        int r = 0;

        while (making->terms->parts[idx].first != part->first || making->terms->parts[idx].n_samples == 0)
                idx++;
        terms.n_samples = part->n_samples;
        terms.seed = dlp_philox_seed(terms.seed, idx + 1);
        for (; r == 0 && n_left > 0; begin = 0, pass++) {
                uint64_t n_pass = part->n_samples - begin;

                terms.epoch = pass;
                stretch.n = n_left < n_pass ? n_left : n_pass;
                r = list_pass(making, part, &terms, sampler, begin, &stretch);
                stretch.at += stretch.n;
                n_left -= stretch.n;
        }
        return r;
}

static int list_parts(struct dlp_making *making, const struct dlp_mixture_terms *mixing,
                      const struct dlp_mixture *mixture, const struct dlp_order *listed) {
        uint64_t passes[KIND_LIST_MAX], begins[KIND_LIST_MAX], at = 0;
        struct dlp_sampler *sampler;
        int r = dlp_making_allocate(making, 1, sizeof(*sampler), &sampler);

        if (r < 0)
                return r;
        dlp_mixture_before(mixing, making->terms, mixture, passes, begins);
        for (uint32_t i = 0; r == 0 && i < mixture->n_parts; i++) {
                if (mixture->counts[i] > 0)
                        r = list_part(making, &mixture->parts[i], passes[i], begins[i], sampler,
                                      (struct stretch){ .listed = listed, .at = at, .n = mixture->counts[i] });
                at += mixture->counts[i];
        }
        making->release(making, sampler, sizeof(*sampler));
        return r;
}

/* Puts the samples of each part where the part stands. */
static int sampler_mix_fill(struct dlp_making *making, const struct dlp_mixture *mixture,
                            const struct dlp_order *listed, const struct dlp_order *order) {
        uint64_t at[KIND_LIST_MAX] = { 0 };

        for (uint32_t i = 1; i < mixture->n_parts; i++)
                at[i] = at[i - 1] + mixture->counts[i - 1];
        for (uint64_t k = 0; k < order->n_positions; k++) {
                dlp_order_set_sample(order, k, dlp_order_sample(listed, at[dlp_order_sample(order, k)]++));
                if (k % LOOK < LOOK - 1)
                        continue;
                making->publish(making, order, k + 1);
                if (!making->go_on(making, k + 1, order->n_positions))
                        return -ECANCELED;
        }
        return 0;
}

static int make(struct dlp_making *making, const struct dlp_step *step, struct dlp_order *order) {
        struct dlp_mixture_terms mixing = sampler_mix_terms_of(step);
        struct dlp_mixture mixture;
        struct dlp_order listed;
        int r = dlp_mixture_make(&mixing, making->terms, making->terms->base.epoch, &mixture, making->why);

        if (r == 0)
                r = sampler_mix_place(making, step, &mixture, order);
        if (r == 0)
                r = dlp_making_samples(making, mixture.n, &listed);
        if (r < 0)
                return r;
        r = list_parts(making, &mixing, &mixture, &listed);
        if (r == 0)
                r = sampler_mix_fill(making, &mixture, &listed, order);
        dlp_making_free(making, &listed);
        return r;
}

const struct dlp_step_type dlp_step_mix = {
        .kind = { .name = "mix",
                  .doc = "Samples of the parts of a dataset that is made of several, each with its weight; a part "
                         "that is not named is left out, and without any name all parts are taken, with their sizes "
                         "as weights. A part that was given by its path is called by the path's last word: "
                         "/data/web is `web`.\n\n"
                         "- `how=proportion`: Weights are shares of the epoch's `n` samples, rounded so that they "
                         "add up to `n`. Without `n` these are as many as the named parts have. `until=first` "
                         "instead ends the epoch before a part would come a second time, `until=all` when all parts "
                         "have come once. With `temperature` the weights are raised to the power 1 / temperature "
                         "before.\n\n"
                         "- `how=repeat`: A weight says how often the part comes in an epoch (2.5 times), rounded "
                         "down.\n\n"
                         "- `how=choose`: A weight is the number of samples.\n\n"
                         "- `how=blend`: Shares, in the sequence of Megatron's BlendedDataset: each position gets "
                         "the part that lacks most of its share.\n\n"
                         "- `to`, `at`: Weights that change: linearly from those of epoch 0 to `to` in epoch `at`, "
                         "and then no more. With several epochs, `to` has the weights of all parts for each of "
                         "them: `mix(a=1, b=0, to=0.5:0.5:0:1, at=4:8)`.\n\n"
                         "- `even=true`: The parts are in proportion in each beginning of the epoch, to less than "
                         "one sample; else their positions are shuffled.\n\n"
                         "A part's samples come in passes, each of which is a shuffle of its own: part number i "
                         "(from 0) with the seed philox(seed, i + 1), and the pass in place of the epoch. An epoch "
                         "goes on where the one before has stopped, so no sample of a part comes a second time "
                         "before all of its part have come once.",
                  .like = "Mosaic's Stream, Megatron's BlendedDataset, datasets.interleave_datasets",
                  .example = "mix(photos=0.7, sketches=0.3, n=50000)",
                  .arguments = ARGUMENTS(
                          { ARGUMENT_WEIGHTS, "weights", .maximum = (double)DLP_SAMPLES_MAX, .is_optional = true,
                            .form = "parts and their weights" },
                          { ARGUMENT_WHOLE, "n", .minimum = 1, .maximum = (double)DLP_SAMPLES_MAX,
                            .is_optional = true },
                          { ARGUMENT_CHOICE, "how", "proportion", CHOICES("proportion", "repeat", "choose", "blend") },
                          { ARGUMENT_NUMBER, "temperature", "1", .minimum = 0.001, .maximum = 1e6 },
                          { ARGUMENT_CHOICE, "until", CHOICES("first", "all"), .is_optional = true },
                          { ARGUMENT_FLAG, "even", "false" },
                          { ARGUMENT_LIST, "to", .maximum = (double)DLP_SAMPLES_MAX, .is_optional = true },
                          { ARGUMENT_LIST, "at", .minimum = 1, .maximum = AT_MAX, .is_optional = true,
                            .is_whole = true }) },
        .role = DLP_CHOOSER,
        .check = check,
        .n_positions_max = n_positions_max,
        .scratch_bytes = scratch_bytes,
        .repeats = true,
        .make = make,
};
