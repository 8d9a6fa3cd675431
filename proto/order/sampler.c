#include "proto/order/sampler.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/base/nearest.h"
#include "proto/order/sampler_types.h"

static const struct {
        const char *name;
        const struct dlp_sampler_type *type;
} KINDS[] = {
        [DLP_ORDER_TORCH] = { "torch", &dlp_sampler_torch },
        [DLP_ORDER_TDPERM] = { "tdperm", &dlp_sampler_tdperm },
        [DLP_ORDER_BUFFER] = { "buffer", &dlp_sampler_buffer },
        [DLP_ORDER_BLOCKS] = { "blocks", &dlp_sampler_blocks },
};
static const char NAMES[] = "torch tdperm buffer blocks"; /* as in KINDS */
#define N_KINDS (sizeof(KINDS) / sizeof(KINDS[0]))

const char *dlp_order_kind_name(enum dlp_order_kind kind) {
        return (unsigned)kind < N_KINDS ? KINDS[kind].name : NULL;
}

static int order_kind_from_name(const char *name, size_t n, enum dlp_order_kind *ret_kind) {
        for (size_t i = 0; i < N_KINDS; i++)
                if (strlen(KINDS[i].name) == n && strncmp(name, KINDS[i].name, n) == 0) {
                        *ret_kind = (enum dlp_order_kind)i;
                        return 0;
                }
        return -EINVAL;
}

int dlp_order_choice_read(const char *text, struct dlp_order_choice *ret_choice, struct why *why) {
        size_t n = strcspn(text, " (");
        struct dlp_order_choice choice = { 0 };
        unsigned long long window = DLP_BLOCKS_WINDOW;
        struct nearest nearest;
        int end = 0;

        if (order_kind_from_name(text, n, &choice.kind) < 0)
                return why_set(why, -EINVAL, "order: \"%s\" is not known%s; choose one of: %s", text,
                               nearest_in(&nearest, text, n, NAMES), NAMES);
        if (text[n] != '\0' && choice.kind != DLP_ORDER_BLOCKS)
                return why_set(why, -EINVAL,
                               "order: \"%s\": nothing can be said of %s; of blocks it can: "
                               "\"blocks(window=16)\"",
                               text, KINDS[choice.kind].name);
        if (text[n] != '\0' && ((sscanf(text + n, " ( window = %19llu ) %n", &window, &end) < 1 &&
                                 sscanf(text + n, " ( %19llu ) %n", &window, &end) < 1) ||
                                end == 0 || text[n + (size_t)end] != '\0' || strchr(text + n, '-')))
                return why_set(why, -EINVAL, "order: \"%s\"; expected \"blocks\", or \"blocks(window=N)\"", text);
        if (window < 1 || window > DLP_BLOCKS_WINDOW_MAX)
                return why_set(why, -EINVAL, "order: blocks: window=%llu; 1 to %u blocks are allowed, and %u are usual",
                               window, DLP_BLOCKS_WINDOW_MAX, DLP_BLOCKS_WINDOW);
        if (choice.kind == DLP_ORDER_BLOCKS)
                choice.window = (uint32_t)window;
        *ret_choice = choice;
        return 0;
}

void dlp_order_choice_print(const struct dlp_order_choice *choice, char ret_text[DLP_ORDER_CHOICE_MAX]) {
        if (choice->kind == DLP_ORDER_BLOCKS && choice->window != DLP_BLOCKS_WINDOW)
                snprintf(ret_text, DLP_ORDER_CHOICE_MAX, "blocks(window=%" PRIu32 ")", choice->window);
        else
                snprintf(ret_text, DLP_ORDER_CHOICE_MAX, "%s", dlp_order_kind_name(choice->kind));
}

static const struct dlp_sampler_type *sampler_type_of(const struct dlp_sampler_terms *terms) {
        return terms->shuffle && (unsigned)terms->kind < N_KINDS ? KINDS[terms->kind].type : &dlp_sampler_sequential;
}

uint32_t dlp_sampler_buffer_size(const struct dlp_sampler_terms *terms) {
        return terms->shuffle_buffer > 0 ? terms->shuffle_buffer : DLP_BUFFER_DEFAULT;
}

uint32_t dlp_sampler_window(const struct dlp_sampler_terms *terms) {
        return terms->window > 0 ? terms->window : DLP_BLOCKS_WINDOW;
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
