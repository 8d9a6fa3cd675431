/* torch.randperm(n), as DistributedSampler seeds it: a table that is made from its beginning. */

#include "proto/order/sampler_types.h"

static uint64_t n_positions(const struct dlp_sampler_terms *terms) {
        return terms->n_samples;
}

static uint64_t table_bytes(const struct dlp_sampler_terms *terms) {
        return terms->n_samples * dlp_shuffle_element_bytes(terms->n_samples);
}

static void begin(struct dlp_sampler *sampler, const struct dlp_sampler_terms *terms, void *table) {
        dlp_torch_seed(&sampler->random, dlp_order_seed(terms->seed, terms->epoch));
        dlp_shuffle_init(&sampler->shuffle, &sampler->random, table, terms->n_samples, terms->compat);
}

static uint64_t advance(struct dlp_sampler *sampler, uint64_t n_steps) {
        return dlp_shuffle_advance(&sampler->shuffle, n_steps);
}

static uint64_t at(const struct dlp_sampler *sampler, uint64_t position) {
        return dlp_shuffle_element(sampler->table, sampler->n_positions, position);
}

/* torch uses seed and epoch only through dlp_order_seed(). */
static bool is_same(const struct dlp_sampler_terms *a, const struct dlp_sampler_terms *b) {
        return dlp_order_seed(a->seed, a->epoch) == dlp_order_seed(b->seed, b->epoch) && a->compat == b->compat;
}

const struct dlp_sampler_type dlp_sampler_torch = {
        .n_positions = n_positions,
        .table_bytes = table_bytes,
        .begin = begin,
        .advance = advance,
        .at = at,
        .is_same = is_same,
};
