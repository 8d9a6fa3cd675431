/* Block by block (order/blocks.h): the table says where its windows begin, and positions are computed. */

#include "proto/order/sampler_types.h"

static uint64_t n_positions(const struct dlp_sampler_terms *terms) {
        return terms->n_samples;
}

static uint64_t table_bytes(const struct dlp_sampler_terms *terms) {
        return dlp_block_order_bytes(terms->blocks, dlp_sampler_window(terms));
}

static void begin(struct dlp_sampler *sampler, const struct dlp_sampler_terms *terms, void *table) {
        dlp_block_order_init(&sampler->block_order, terms->blocks, dlp_sampler_window(terms), terms->seed, terms->epoch,
                             table);
}

static uint64_t advance(struct dlp_sampler *sampler, uint64_t n_steps) {
        return dlp_block_order_advance(&sampler->block_order, n_steps);
}

static uint64_t at(const struct dlp_sampler *sampler, uint64_t position) {
        return dlp_block_order_at(&sampler->block_order, position);
}

static bool is_same(const struct dlp_sampler_terms *a, const struct dlp_sampler_terms *b) {
        return a->seed == b->seed && a->epoch == b->epoch && a->blocks == b->blocks &&
               dlp_sampler_window(a) == dlp_sampler_window(b);
}

const struct dlp_sampler_type dlp_sampler_blocks = {
        .n_positions = n_positions,
        .table_bytes = table_bytes,
        .begin = begin,
        .advance = advance,
        .at = at,
        .is_same = is_same,
};
