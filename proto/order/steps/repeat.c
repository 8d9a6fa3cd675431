/* repeat(3): each sample three times in a row, so that ranks get it at the same time and augment it
 * differently.
 *
 * As timm's RepeatAugSampler, which gives each of W ranks only the first floor(256 * floor(samples / 256) / W) of its
 * positions: that is the order cut to n = W times this number, which depends on the world and is therefore an
 * argument. Without `n` all positions are there. */
#include <errno.h>

#include "proto/order/steps/sampler_step.h"

enum {
        TIMES,
        N,
};

#define PUBLISH 65536u

static uint64_t n_positions_max(const struct dlp_step *step, const struct dlp_making_terms *terms, uint64_t n) {
        uint64_t n_all = n * step->values[TIMES].whole; /* 2^40 * 2^16 */

        (void)terms;
        return step->values[N].is_set && step->values[N].whole < n_all ? step->values[N].whole : n_all;
}

static int repeat(struct dlp_making *making, const struct dlp_order *once, uint64_t times,
                  const struct dlp_order *order) {
        uint64_t place = 0, n_here = 0;

        for (uint64_t i = 0; i < order->n_positions; i++) {
                dlp_order_set_sample(order, i, dlp_order_sample(once, place));
                if (++n_here == times) {
                        n_here = 0;
                        place++;
                }
                if (i % PUBLISH < PUBLISH - 1)
                        continue;
                making->publish(making, order, i + 1);
                if (!making->go_on(making, i + 1, order->n_positions))
                        return -ECANCELED;
        }
        return 0;
}

static int make(struct dlp_making *making, const struct dlp_step *step, struct dlp_order *order) {
        uint64_t n_samples = making->terms->base.n_samples, times = step->values[TIMES].whole;
        uint64_t n = n_positions_max(step, making->terms, n_samples);
        struct dlp_order once;
        int r;

        if (step->values[N].is_set && step->values[N].whole > n)
                return why_set(making->why, -EINVAL, "repeat: n = %llu, but %llu samples, %llu times each, are %llu",
                               (unsigned long long)step->values[N].whole, (unsigned long long)n_samples,
                               (unsigned long long)times, (unsigned long long)n);
        if (n > DLP_SAMPLES_MAX)
                return why_set(making->why, -EINVAL, "repeat: %llu positions; at most %llu are allowed",
                               (unsigned long long)n, DLP_SAMPLES_MAX);
        r = dlp_making_samples(making, n, order);
        if (r < 0)
                return r;
        r = dlp_making_permute(making, n_samples, false, &once);
        if (r < 0)
                return r;
        r = repeat(making, &once, times, order);
        dlp_making_free(making, &once);
        return r;
}

const struct dlp_step_type dlp_step_repeat = {
        .kind = { .name = "repeat",
                  .doc = "Each sample `times` times in a row, so that ranks get it at the same time and augment it "
                         "differently. timm, as DeiT's RASampler, gives each of W ranks floor(256 * floor(samples / "
                         "256) / W) positions: that is `n` = W times this number.",
                  .like = "torchvision's references/classification/sampler.py, RASampler",
                  .example = "repeat(3)",
                  .arguments = ARGUMENTS({ ARGUMENT_WHOLE, "times", .minimum = 1, .maximum = 65536 },
                                         { ARGUMENT_WHOLE, "n", .minimum = 1, .maximum = (double)DLP_SAMPLES_MAX,
                                           .is_optional = true }) },
        .role = DLP_CHOOSER,
        .n_positions_max = n_positions_max,
        .sample_bytes = 16,
        .repeats = true,
        .make = make,
};
