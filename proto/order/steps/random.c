/* random(replacement=true, n=N): torch's RandomSampler, with its generator seeded with seed + epoch.
 *
 * With replacement: n times torch.randint(0, n_samples). Without: as many whole permutations as fit into n, one after
 * the other from the same generator, then the beginning of another one. */
#include <errno.h>

#include "proto/order/steps/sampler_step.h"

enum {
        REPLACEMENT,
        N,
};

static uint64_t random_n_wanted(const struct dlp_step *step, uint64_t n_samples) {
        return step->values[N].is_set ? step->values[N].whole : n_samples;
}

static uint64_t n_positions_max(const struct dlp_step *step, const struct dlp_making_terms *terms, uint64_t n) {
        (void)terms;
        return random_n_wanted(step, n);
}

/* torch.randint(0, n): the range from which torch takes 64 bits has changed. */
static uint64_t random_draw(struct dlp_torch_random *random, uint64_t n, enum dlp_torch_compat compat) {
        uint64_t wide_from = compat == DLP_TORCH_2_7 ? 1ull << 28 : 1ull << 32;

        return (n >= wide_from ? dlp_torch_u64(random) : dlp_torch_u32(random)) % n;
}

static int random_draw_all(struct dlp_making *making, struct dlp_torch_random *random, const struct dlp_order *order) {
        uint64_t n_samples = making->terms->base.n_samples;

        for (uint64_t i = 0; i < order->n_positions; i++) {
                dlp_order_set_sample(order, i, random_draw(random, n_samples, making->terms->base.compat));
                if ((i + 1) % 65536 > 0)
                        continue;
                making->publish(making, order, i + 1);
                if (!making->go_on(making, i + 1, order->n_positions))
                        return -ECANCELED;
        }
        return 0;
}

/* Whole permutations and the beginning of one, of one generator. */
static int permute_all(struct dlp_making *making, struct dlp_torch_random *random, const struct dlp_order *order) {
        uint64_t n_samples = making->terms->base.n_samples, n_bytes = n_samples * dlp_shuffle_element_bytes(n_samples);
        struct dlp_shuffle shuffle;
        int r = 0;

        for (uint64_t i = 0; r == 0 && i < order->n_positions; i += n_samples) {
                uint64_t n_left = order->n_positions - i, n = n_left < n_samples ? n_left : n_samples, n_done = 0;
                void *table;

                r = dlp_making_allocate(making, 1, n_bytes, &table);
                if (r < 0)
                        break;
                dlp_shuffle_init(&shuffle, random, table, n_samples, making->terms->base.compat);
                while (r == 0 && n_done < n_samples) { /* all of it, so that the generator is where torch's is */
                        n_done = dlp_shuffle_advance(&shuffle, 65536);
                        if (!making->go_on(making, i + (n_done < n ? n_done : n), order->n_positions))
                                r = -ECANCELED;
                }
                for (uint64_t k = 0; k < n; k++)
                        dlp_order_set_sample(order, i + k, dlp_shuffle_element(table, n_samples, k));
                making->release(making, table, n_bytes);
        }
        return r;
}

static int make(struct dlp_making *making, const struct dlp_step *step, struct dlp_order *order) {
        uint64_t n_samples = making->terms->base.n_samples;
        struct dlp_torch_random random;
        int r;

        if (n_samples == 0)
                return why_set(making->why, -EINVAL, "random: the dataset has no samples");
        r = dlp_making_samples(making, random_n_wanted(step, n_samples), order);
        if (r < 0)
                return r;
        dlp_making_seed(making, &random);
        return step->values[REPLACEMENT].flag ? random_draw_all(making, &random, order)
                                              : permute_all(making, &random, order);
}

const struct dlp_step_type dlp_step_random = {
        .kind = { .name = "random",
                  .doc = "`n` samples drawn with replacement; without, whole shuffles one after the other, the last "
                         "one cut.",
                  .like = "torch.utils.data.RandomSampler",
                  .example = "random(replacement=true, n=50000)",
                  .arguments = ARGUMENTS({ ARGUMENT_FLAG, "replacement", "false" },
                                         { ARGUMENT_WHOLE, "n", .minimum = 1, .maximum = (double)DLP_SAMPLES_MAX,
                                           .is_optional = true }) },
        .role = DLP_CHOOSER,
        .n_positions_max = n_positions_max,
        .repeats = true,
        .sample_bytes = 8,
        .make = make,
};
