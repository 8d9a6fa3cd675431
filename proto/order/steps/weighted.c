/* weighted(column=w, n=N, replacement=true): torch's WeightedRandomSampler, with its generator seeded with
 * seed + epoch.
 *
 * With replacement: order/making/order_weights.h. Without: each sample gets the key weight / e with e drawn from the
 * exponential distribution, and the n largest keys are the order, the largest first. A single draw is made in this way
 * too, since torch 2.0. */
#include <errno.h>
#include <string.h>

#include "proto/order/making/order_draws.h"
#include "proto/order/making/order_weights.h"
#include "proto/order/making/sorting.h"
#include "proto/order/steps/sampler_step.h"

enum {
        COLUMN,
        N,
        REPLACEMENT,
};

static uint64_t weighted_n_wanted(const struct dlp_step *step, uint64_t n_samples) {
        return step->values[N].is_set ? step->values[N].whole : n_samples;
}

static uint64_t n_positions_max(const struct dlp_step *step, const struct dlp_making_terms *terms, uint64_t n) {
        (void)terms;
        return weighted_n_wanted(step, n);
}

static uint64_t scratch_bytes(const struct dlp_step *step, const struct dlp_making_terms *terms, uint64_t n) {
        (void)n;
        return step->values[REPLACEMENT].flag && weighted_n_wanted(step, terms->base.n_samples) > 1
                       ? dlp_weights_bytes(terms->base.n_samples)
                       : 2 * (sizeof(uint64_t) + 8) * terms->base.n_samples;
}

/* ---- with replacement ------------------------------------------------------------------------------------------ */

static int weighted_draw(struct dlp_making *making, const struct dlp_weights_source *source,
                         struct dlp_torch_random *random, uint64_t n, struct dlp_order *order) {
        struct dlp_weights weights = { 0 };
        int r = dlp_making_samples(making, n, order);

        if (r == 0)
                r = dlp_weights_init(making, source, making->terms->base.n_samples, &weights);
        if (r == 0)
                r = dlp_weights_draw(making, &weights, random, order);
        dlp_weights_fini(making, &weights);
        return r;
}

/* ---- without --------------------------------------------------------------------------------------------------- */

/* Positive numbers sort as their bits do; turned round, so that the largest is first. */
static uint64_t weighted_key_of(double weight, double u) {
        double wait = -dlp_logarithm(1.0 - u), key = wait > 0 ? weight / wait : __builtin_inf();
        uint64_t bits;

        memcpy(&bits, &key, sizeof(bits));
        return ~bits;
}

/* A key for each sample; *ret_n: how many have a weight. */
static int weighted_make_keys(struct dlp_making *making, const struct dlp_weights_source *source,
                              struct dlp_torch_random *random, uint64_t *keys, const struct dlp_order *order,
                              uint64_t *ret_n) {
        uint64_t n_samples = making->terms->base.n_samples, n_positive = 0;
        double total = 0;

        for (uint64_t i = 0; i < n_samples; i++) {
                double weight, buffer[1];
                int r;

                weight = *source->read(source->userdata, i, 1, buffer);
                r = dlp_weights_check(making, source, i, weight);
                if (r < 0)
                        return r;
                n_positive += weight > 0;
                total += weight;
                keys[i] = weighted_key_of(weight, dlp_draw_f64(random));
                dlp_order_set_sample(order, i, i);
                if (i % 16384 == 16383 && !making->go_on(making, i, 2 * n_samples))
                        return -ECANCELED;
        }
        if (!(total > 0) || total - total != 0)
                return dlp_weights_refuse_total(making, source, n_samples, total);
        *ret_n = n_positive;
        return 0;
}

static int draw_once(struct dlp_making *making, const struct dlp_weights_source *source,
                     struct dlp_torch_random *random, uint64_t n, struct dlp_order *order) {
        uint64_t n_samples = making->terms->base.n_samples, n_positive = 0, *keys;
        int r = dlp_making_samples(making, n_samples, order);

        if (r < 0)
                return r;
        r = dlp_making_allocate(making, n_samples, sizeof(*keys), &keys);
        if (r < 0)
                return r;
        r = weighted_make_keys(making, source, random, keys, order, &n_positive);
        if (r == 0 && n > n_positive)
                r = why_set(making->why, -EINVAL,
                            "weighted: n = %llu, but \"%s\" has %llu weights above 0; give a smaller n, or "
                            "replacement=true",
                            (unsigned long long)n, source->name, (unsigned long long)n_positive);
        if (r == 0)
                r = dlp_making_sort(making, keys, order);
        if (r == 0)
                order->n_positions = order->n_units = n;
        making->release(making, keys, n_samples * sizeof(*keys));
        return r;
}

static int make(struct dlp_making *making, const struct dlp_step *step, struct dlp_order *order) {
        uint64_t n = weighted_n_wanted(step, making->terms->base.n_samples);
        bool is_repeated = step->values[REPLACEMENT].flag;
        struct dlp_weights_source source;
        struct dlp_torch_random random;
        const struct dlp_column *column;
        int r = dlp_making_column(making, "weighted", step->values[COLUMN].text, &column);

        if (r < 0)
                return r;
        source = dlp_weights_of_column("weighted", column);
        dlp_making_seed(making, &random);
        if (n == 1 && making->terms->base.compat != DLP_TORCH_BEFORE_2_6)
                is_repeated = false;
        return is_repeated ? weighted_draw(making, &source, &random, n, order)
                           : draw_once(making, &source, &random, n, order);
}

const struct dlp_step_type dlp_step_weighted = {
        .kind = { .name = "weighted",
                  .doc = "`n` samples (default: as many as there are), each drawn as often as its weight says. Up to "
                         "16777216 weights the draws are those of torch's WeightedRandomSampler with a generator "
                         "seeded with seed + epoch, bit for bit; torch takes no more, and there the sums are added up "
                         "in blocks. In several ranks there is one draw, which is dealt out. With `replacement=false` "
                         "each sample comes at most once, as torch has it where it is built without MKL.",
                  .like = "torch.utils.data.WeightedRandomSampler",
                  .example = "weighted(column=w, n=50000)",
                  .arguments = ARGUMENTS({ ARGUMENT_COLUMN, "column", .form = "weights of samples" },
                                         { ARGUMENT_WHOLE, "n", .minimum = 1, .maximum = (double)DLP_SAMPLES_MAX,
                                           .is_optional = true },
                                         { ARGUMENT_FLAG, "replacement", "true" }) },
        .role = DLP_CHOOSER,
        .n_positions_max = n_positions_max,
        .scratch_bytes = scratch_bytes,
        .repeats = true,
        .make = make,
};
