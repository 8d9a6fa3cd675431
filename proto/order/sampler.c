#include "proto/order/sampler.h"

#include <errno.h>
#include <string.h>

#include "proto/order/sampler_types.h"

static const struct {
        const char *name;
        const struct dlp_sampler_type *type;
} KINDS[] = {
        [DLP_ORDER_TORCH] = { "torch", &dlp_sampler_torch },
        [DLP_ORDER_TDPERM] = { "tdperm", &dlp_sampler_tdperm },
        [DLP_ORDER_BUFFER] = { "buffer", &dlp_sampler_buffer },
};
const char dlp_order_kinds[] = "torch tdperm buffer"; /* names as in KINDS */
#define N_KINDS (sizeof(KINDS) / sizeof(KINDS[0]))

const char *dlp_order_kind_name(enum dlp_order_kind kind) {
        return (unsigned)kind < N_KINDS ? KINDS[kind].name : NULL;
}

int dlp_order_kind_from_name(const char *name, enum dlp_order_kind *ret_kind) {
        for (size_t i = 0; i < N_KINDS; i++)
                if (strcmp(name, KINDS[i].name) == 0) {
                        *ret_kind = (enum dlp_order_kind)i;
                        return 0;
                }
        return -EINVAL;
}

static const struct dlp_sampler_type *sampler_type_of(const struct dlp_sampler_terms *terms) {
        return terms->shuffle && (unsigned)terms->kind < N_KINDS ? KINDS[terms->kind].type : &dlp_sampler_sequential;
}

uint32_t dlp_sampler_buffer_size(const struct dlp_sampler_terms *terms) {
        return terms->shuffle_buffer > 0 ? terms->shuffle_buffer : DLP_BUFFER_DEFAULT;
}

uint64_t dlp_sampler_n_positions(const struct dlp_sampler_terms *terms) {
        return sampler_type_of(terms)->n_positions(terms);
}

uint64_t dlp_sampler_table_bytes(const struct dlp_sampler_terms *terms) {
        const struct dlp_sampler_type *type = sampler_type_of(terms);

        return type->table_bytes && terms->n_samples > 0 ? type->table_bytes(terms) : 0;
}

bool dlp_sampler_is_same(const struct dlp_sampler_terms *a, const struct dlp_sampler_terms *b) {
        const struct dlp_sampler_type *type = sampler_type_of(a);

        return a->n_samples == b->n_samples && type == sampler_type_of(b) && (!type->is_same || type->is_same(a, b));
}

void dlp_sampler_init(struct dlp_sampler *sampler, const struct dlp_sampler_terms *terms, void *table) {
        sampler->type = sampler_type_of(terms);
        sampler->n_positions = sampler->type->n_positions(terms);
        sampler->table = table;
        if (terms->n_samples > 0)
                sampler->type->begin(sampler, terms, table);
}

uint64_t dlp_sampler_advance(struct dlp_sampler *sampler, uint64_t n_steps) {
        return sampler->table ? sampler->type->advance(sampler, n_steps) : sampler->n_positions;
}

uint64_t dlp_sampler_at(const struct dlp_sampler *sampler, uint64_t position) {
        return sampler->type->at(sampler, position);
}
