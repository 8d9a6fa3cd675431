/* TDPERM-1: computed position by position. */

#include "proto/order/sampler_types.h"

static uint64_t n_positions(const struct dlp_sampler_terms *terms) {
        return terms->n_samples;
}

static void begin(struct dlp_sampler *sampler, const struct dlp_sampler_terms *terms, void *table) {
        (void)table;
        dlp_tdperm_init(&sampler->tdperm, terms->seed, terms->epoch, 0, terms->n_samples);
}

static uint64_t at(const struct dlp_sampler *sampler, uint64_t position) {
        return dlp_tdperm_at(&sampler->tdperm, position);
}

static bool is_same(const struct dlp_sampler_terms *a, const struct dlp_sampler_terms *b) {
        return a->seed == b->seed && a->epoch == b->epoch;
}

const struct dlp_sampler_type dlp_sampler_tdperm = {
        .n_positions = n_positions,
        .begin = begin,
        .at = at,
        .is_same = is_same,
};
