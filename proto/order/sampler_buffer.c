/* A shuffle buffer over samples that are all known: the order in which a stream of them comes (order/shuffle_buffer.h).
 * The table holds the order, and after it the buffer. */

#include "proto/order/sampler_types.h"

static uint64_t n_positions(const struct dlp_sampler_terms *terms) {
        return terms->n_samples;
}

static uint64_t table_bytes(const struct dlp_sampler_terms *terms) {
        return (terms->n_samples + dlp_sampler_buffer_size(terms)) * sizeof(uint64_t);
}

static void begin(struct dlp_sampler *sampler, const struct dlp_sampler_terms *terms, void *table) {
        dlp_torch_seed(&sampler->random, dlp_order_seed(terms->seed, terms->epoch));
        dlp_shuffle_buffer_init(&sampler->buffer, &sampler->random, (uint64_t *)table + terms->n_samples,
                                dlp_sampler_buffer_size(terms));
        sampler->n_final = 0;
}

static uint64_t advance(struct dlp_sampler *sampler, uint64_t n_steps) {
        uint64_t *order = sampler->buffer.samples - sampler->n_positions;

        for (; n_steps > 0 &&
               dlp_shuffle_buffer_next(&sampler->buffer, sampler->n_positions, true, &order[sampler->n_final]);
             n_steps--)
                sampler->n_final++;
        return sampler->n_final;
}

static uint64_t at(const struct dlp_sampler *sampler, uint64_t position) {
        return ((const uint64_t *)sampler->table)[position];
}

static bool is_same(const struct dlp_sampler_terms *a, const struct dlp_sampler_terms *b) {
        return dlp_order_seed(a->seed, a->epoch) == dlp_order_seed(b->seed, b->epoch) &&
               dlp_sampler_buffer_size(a) == dlp_sampler_buffer_size(b);
}

const struct dlp_sampler_type dlp_sampler_buffer = {
        .n_positions = n_positions,
        .table_bytes = table_bytes,
        .begin = begin,
        .advance = advance,
        .at = at,
        .is_same = is_same,
};
