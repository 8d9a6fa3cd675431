#include "daemon/data/formats/megatron/megatron_blend.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "proto/base/cleanup.h"

#define SURPLUS   0.005      /* mid_level_dataset_surplus */
#define PART      (1u << 16) /* samples that are made between two looks at `cancel` */
#define SUM_LANES 8u         /* numpy adds this many numbers side by side, */
#define SUM_BLOCK 128u       /* and halves what is longer than this */

void blend_fini(struct blend *blend) {
        free(blend->files);
        free(blend->samples);
        *blend = (struct blend){ 0 };
}

/* ---- weights --------------------------------------------------------------------------------------------------- */

static double sum_short(const double *numbers, uint32_t n) {
        double sum = -0.0;

        for (uint32_t i = 0; i < n; i++)
                sum += numbers[i];
        return sum;
}

/* Up to SUM_BLOCK numbers. */
static double sum_block(const double *numbers, uint32_t n) {
        double lanes[SUM_LANES], sum;
        uint32_t i = SUM_LANES;

        for (uint32_t k = 0; k < SUM_LANES; k++)
                lanes[k] = numbers[k];
        for (; i < n - n % SUM_LANES; i += SUM_LANES)
                for (uint32_t k = 0; k < SUM_LANES; k++)
                        lanes[k] += numbers[i + k];
        sum = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
        for (; i < n; i++)
                sum += numbers[i];
        return sum;
}

/* numpy.sum() of a row of doubles: pairwise, so that its last bits are those of this sequence of additions. */
static double sum_pairwise(const double *numbers, uint32_t n) {
        uint32_t half = n / 2;

        if (n < SUM_LANES)
                return sum_short(numbers, n);
        if (n <= SUM_BLOCK)
                return sum_block(numbers, n);
        half -= half % SUM_LANES;
        return sum_pairwise(numbers, half) + sum_pairwise(numbers + half, n - half);
}

void blend_normalize(double *weights, uint32_t n) {
        double sum = sum_pairwise(weights, n);

        for (uint32_t i = 0; i < n; i++)
                weights[i] /= sum;
}

uint64_t blend_share(uint64_t n_wanted, double weight) {
        return (uint64_t)ceil((double)n_wanted * weight);
}

uint64_t blend_share_made(uint64_t n_wanted, double weight) {
        return (uint64_t)ceil((double)blend_share(n_wanted, weight) * (1 + SURPLUS));
}

/* ---- the order ------------------------------------------------------------------------------------------------- */

struct blending {
        const double *weights;
        const uint64_t *sizes;
        uint64_t *n_taken;
        uint32_t n;
        bool is_exhaustive; /* a file whose samples are used up is no longer asked */
};

/* The first of those that are furthest behind. */
static uint32_t megatron_blend_next_file(const struct blending *blending, uint64_t k) {
        double step = k > 1 ? (double)k : 1.0, most = -INFINITY;
        uint32_t file = 0;

        for (uint32_t i = 0; i < blending->n; i++) {
                double behind;

                if (blending->is_exhaustive && blending->n_taken[i] == blending->sizes[i])
                        continue;
                behind = blending->weights[i] * step;
                behind -= (double)blending->n_taken[i];
                if (behind > most) {
                        most = behind;
                        file = i;
                }
        }
        return file;
}

static int megatron_blend_fill(struct blending *blending, const atomic_bool *cancel, struct blend *blend,
                               struct why *why) {
        for (uint64_t k = 0; k < blend->n_samples; k++) {
                uint32_t file = megatron_blend_next_file(blending, k);

                blend->files[k] = (uint16_t)file;
                blend->samples[k] = (uint32_t)blending->n_taken[file]++;
                if (k % PART == 0 && cancel && atomic_load_explicit(cancel, memory_order_relaxed))
                        return why_set(why, -ECANCELED, "making the blend was cancelled");
        }
        for (uint32_t i = 0; i < blending->n; i++)
                if (blending->n_taken[i] > blending->sizes[i])
                        return why_set(why, -EINVAL,
                                       "the blend takes %" PRIu64 " samples of file %u, which makes %" PRIu64
                                       ": ask for more samples, or give it less weight",
                                       blending->n_taken[i], i, blending->sizes[i]);
        return 0;
}

int blend_make(const double *weights, const uint64_t *sizes, uint32_t n, uint64_t n_samples, const atomic_bool *cancel,
               struct blend *ret_blend, struct why *why) {
        _cleanup_(freep) uint64_t *n_taken = calloc(n, sizeof(*n_taken));
        _cleanup_(freep) double *shares = calloc(n, sizeof(*shares));
        struct blend blend = {
                .n_samples = n_samples,
                .files = malloc(n_samples * sizeof(*blend.files)),
                .samples = malloc(n_samples * sizeof(*blend.samples)),
        };
        struct blending blending = {
                .weights = weights ? weights : shares,
                .sizes = sizes,
                .n_taken = n_taken,
                .n = n,
                .is_exhaustive = !weights,
        };
        int r = n_taken && shares && blend.files && blend.samples
                        ? 0
                        : why_set(why, -ENOMEM, "there is no memory for a blend of %" PRIu64 " samples", n_samples);

        for (uint32_t i = 0; i < n && r == 0 && !weights; i++)
                shares[i] = (double)sizes[i] / (double)n_samples;
        if (r == 0)
                r = megatron_blend_fill(&blending, cancel, &blend, why);
        if (r < 0) {
                blend_fini(&blend);
                return r;
        }
        *ret_blend = blend;
        return 0;
}
