/* The dataset's own order. It depends on neither seed nor epoch. */

#include "proto/order/sampler_types.h"

static uint64_t n_positions(const struct dlp_sampler_terms *terms) {
        return terms->n_samples;
}

static void begin(struct dlp_sampler *sampler, const struct dlp_sampler_terms *terms, void *table) {
        (void)sampler;
        (void)terms;
        (void)table;
}

static uint64_t at(const struct dlp_sampler *sampler, uint64_t position) {
        (void)sampler;
        return position;
}

const struct dlp_sampler_type dlp_sampler_sequential = {
        .n_positions = n_positions,
        .begin = begin,
        .at = at,
};
