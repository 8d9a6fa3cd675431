/* numpy_shuffle(seed=S): numpy.random.default_rng(S).permutation(n), as shuffle(seed=S) of Hugging Face's datasets; the
 * same in each epoch.
 *
 * It is final from its end to its beginning, so that no position is known before all are. */
#include <errno.h>

#include "proto/order/numpy_generator.h"
#include "proto/order/steps/sampler_step.h"

enum {
        SEED,
};

static int make(struct dlp_making *making, const struct dlp_step *step, struct dlp_order *order) {
        uint64_t n = making->terms->base.n_samples;
        struct dlp_numpy_generator generator;
        int r;

        r = dlp_making_samples(making, n, order);
        if (r < 0)
                return r;
        for (uint64_t i = 0; i < n; i++)
                dlp_order_set_sample(order, i, i);
        dlp_numpy_generator_seed(&generator, step->values[SEED].whole);
        for (uint64_t i = n; i-- > 1;) {
                uint64_t other = dlp_numpy_generator_at_most(&generator, i), sample = dlp_order_sample(order, i);

                dlp_order_set_sample(order, i, dlp_order_sample(order, other));
                dlp_order_set_sample(order, other, sample);
                if (i % 65536 == 0 && !making->go_on(making, n - i, n))
                        return -ECANCELED;
        }
        return 0;
}

const struct dlp_step_type dlp_step_numpy_shuffle = {
        .kind = { .name = "numpy_shuffle",
                  .doc = "A permutation of NumPy's generator: `numpy.random.default_rng(seed).permutation`, which is "
                         "the order of `shuffle(seed=S)` of Hugging Face's datasets, in each epoch the same. Without "
                         "`seed` it is seed + epoch.",
                  .like = "datasets.Dataset.shuffle",
                  .example = "numpy_shuffle(seed=42)",
                  .arguments = ARGUMENTS({ ARGUMENT_WHOLE, "seed", .maximum = (double)UINT64_MAX }) },
        .role = DLP_CHOOSER,
        .make = make,
};
