/* Making an epoch's order: the steps of a text, one after the other, and what they have in common. */
#include <errno.h>
#include <string.h>

#include "proto/order/making/order_text.h"
#include "proto/order/shuffle.h"

#define CHUNK 65536u /* steps of a shuffle between two looks at whether it is still wanted: a few milliseconds */

/* ---- memory ---------------------------------------------------------------------------------------------------- */

static uint64_t order_make_sample_bytes(const struct dlp_making_terms *terms) {
        return dlp_shuffle_element_bytes(terms->base.n_samples);
}

int dlp_making_allocate(struct dlp_making *making, uint64_t n, uint64_t n_bytes, void *ret_memory) {
        void *memory = NULL;

        if (__builtin_mul_overflow(n, n_bytes, &n_bytes))
                return why_set(making->why, -ENOMEM, "sampler: a table of %llu elements is too large",
                               (unsigned long long)n);
        if (n_bytes > 0) {
                memory = making->allocate(making, n_bytes);
                if (!memory)
                        return -ENOMEM;
        }
        memcpy(ret_memory, &memory, sizeof(memory));
        return 0;
}

int dlp_making_samples(struct dlp_making *making, uint64_t n_positions, struct dlp_order *ret_order) {
        uint64_t n_bytes = order_make_sample_bytes(making->terms);
        void *samples;
        int r = dlp_making_allocate(making, n_positions, n_bytes, &samples);

        if (r == 0)
                *ret_order = (struct dlp_order){ .n_positions = n_positions,
                                                 .n_room = n_positions,
                                                 .n_units = n_positions,
                                                 .is_wide = n_bytes == sizeof(uint64_t),
                                                 .samples = samples };
        return r;
}

int dlp_making_starts(struct dlp_making *making, uint64_t n_units, struct dlp_order *order) {
        int r = dlp_making_allocate(making, n_units + 1, sizeof(*order->starts), &order->starts);

        if (r == 0)
                order->n_units_room = n_units;
        return r;
}

int dlp_making_pieces(struct dlp_making *making, struct dlp_order *order) {
        return dlp_making_allocate(making, order->n_room, sizeof(*order->pieces), &order->pieces);
}

void dlp_making_free(struct dlp_making *making, struct dlp_order *order) {
        making->release(making, order->samples, order->n_room * (order->is_wide ? sizeof(uint64_t) : sizeof(uint32_t)));
        making->release(making, order->starts, (order->n_units_room + 1) * sizeof(*order->starts));
        making->release(making, order->pieces, order->n_room * sizeof(*order->pieces));
        *order = (struct dlp_order){ 0 };
}

/* ---- what steps share ------------------------------------------------------------------------------------------ */

void dlp_making_seed(const struct dlp_making *making, struct dlp_torch_random *random) {
        dlp_torch_seed(random, dlp_order_seed(making->terms->base.seed, making->terms->base.epoch));
}

/* Copies positions n_done .. n_final - 1 of a sampler into the order: tables have elements as wide as their own number
 * of samples needs, which may be fewer than the dataset's. */
static void copy_final(const struct dlp_sampler *sampler, uint64_t n_done, uint64_t n_final,
                       const struct dlp_order *order) {
        for (uint64_t i = n_done; i < n_final; i++)
                dlp_order_set_sample(order, i, dlp_sampler_at(sampler, i));
}

static int order_make_permute(struct dlp_making *making, struct dlp_sampler *sampler, bool publishes,
                              const struct dlp_order *order) {
        uint64_t n_done = 0, n_final = 0;

        while (n_final < order->n_positions) {
                if (sampler->table)
                        n_final = dlp_sampler_advance(sampler, CHUNK);
                else
                        n_final = order->n_positions - n_done < CHUNK ? order->n_positions : n_done + CHUNK;
                copy_final(sampler, n_done, n_final, order);
                n_done = n_final;
                if (publishes)
                        making->publish(making, order, n_final);
                if (!making->go_on(making, n_final, order->n_positions))
                        return -ECANCELED;
        }
        return 0;
}

static bool goes_by_blocks(const struct dlp_sampler_terms *terms) {
        return terms->shuffle && terms->kind == DLP_ORDER_BLOCKS;
}

int dlp_making_permute(struct dlp_making *making, uint64_t n, bool publishes, struct dlp_order *ret_order) {
        struct dlp_sampler_terms terms = making->terms->base;
        struct dlp_sampler *sampler = NULL;
        struct dlp_order order = { 0 };
        void *table = NULL;
        uint64_t n_bytes;
        int r;

        if (goes_by_blocks(&terms) && n != terms.blocks->ends[terms.blocks->n - 1])
                return why_set(making->why, -EINVAL,
                               "sampler: a step shuffles %llu positions anew, all together, so it cannot be combined "
                               "with the order \"blocks\"; leave out one of them, or its shuffling",
                               (unsigned long long)n);
        terms.n_samples = n;
        n_bytes = dlp_sampler_table_bytes(&terms);
        r = dlp_making_allocate(making, 1, sizeof(*sampler), &sampler);
        if (r == 0)
                r = dlp_making_allocate(making, 1, n_bytes, &table);
        if (r == 0)
                r = dlp_making_samples(making, n, &order);
        if (r == 0) {
                dlp_sampler_init(sampler, &terms, table);
                r = order_make_permute(making, sampler, publishes, &order);
        }
        making->release(making, table, n_bytes);
        making->release(making, sampler, sizeof(*sampler));
        if (r < 0)
                dlp_making_free(making, &order);
        else
                *ret_order = order;
        return r;
}

int dlp_making_any_column(struct dlp_making *making, const char *step, const char *name,
                          const struct dlp_column **ret_column) {
        const struct dlp_making_terms *terms = making->terms;

        for (uint32_t i = 0; i < terms->n_columns; i++)
                if (strcmp(terms->columns[i].name, name) == 0) {
                        *ret_column = &terms->columns[i];
                        return 0;
                }
        return why_set(making->why, -EINVAL, "%s: there is no column \"%s\"", step, name);
}

int dlp_making_column(struct dlp_making *making, const char *step, const char *name,
                      const struct dlp_column **ret_column) {
        int r = dlp_making_any_column(making, step, name, ret_column);

        if (r < 0)
                return r;
        if ((*ret_column)->ends)
                return why_set(making->why, -EINVAL, "%s: \"%s\" has a list for each sample; one number is needed",
                               step, name);
        if ((*ret_column)->n_values != making->terms->base.n_samples)
                return why_set(making->why, -EINVAL, "%s: \"%s\" has %llu values, but the dataset has %llu samples",
                               step, name, (unsigned long long)(*ret_column)->n_values,
                               (unsigned long long)making->terms->base.n_samples);
        return 0;
}

/* ---- the steps ------------------------------------------------------------------------------------------------- */

/* Positions after the first n steps, at most. */
static uint64_t n_after(const struct dlp_order_text *text, const struct dlp_making_terms *terms, uint32_t n_steps) {
        uint64_t n = terms->base.n_samples;

        for (uint32_t i = 0; i < n_steps; i++)
                if (text->steps[i].type->n_positions_max)
                        n = text->steps[i].type->n_positions_max(&text->steps[i], terms, n);
        return n;
}

uint64_t dlp_order_n_positions_max(const struct dlp_order_text *text, const struct dlp_making_terms *terms) {
        return n_after(text, terms, text->n_steps);
}

/* Bytes of an order of n positions, and of its units. Saturates: what is too large is refused by who compares. */
static uint64_t order_bytes(const struct dlp_making_terms *terms, uint64_t n, bool has_units) {
        uint64_t each = order_make_sample_bytes(terms) + (has_units ? sizeof(uint64_t) + sizeof(struct dlp_piece) : 0),
                 n_bytes;

        return __builtin_mul_overflow(n + 1, each, &n_bytes) ? UINT64_MAX : n_bytes;
}

uint64_t dlp_order_bytes_max(const struct dlp_order_text *text, const struct dlp_making_terms *terms) {
        return order_bytes(terms, dlp_order_n_positions_max(text, terms), dlp_order_text_grouper(text) != NULL);
}

/* What shuffling n samples takes beside a table with elements of the order's width. */
static uint64_t shuffle_bytes(const struct dlp_making_terms *terms, uint64_t n) {
        bool has_buffer = terms->base.shuffle && terms->base.kind == DLP_ORDER_BUFFER;

        return sizeof(struct dlp_sampler) +
               (has_buffer ? (n + dlp_sampler_buffer_size(&terms->base)) * sizeof(uint64_t) : 0) +
               (goes_by_blocks(&terms->base) ? dlp_sampler_table_bytes(&terms->base) : 0);
}

/* The base order takes a table beside itself; each step has its own needs, and the order before it. */
uint64_t dlp_order_scratch_max(const struct dlp_order_text *text, const struct dlp_making_terms *terms) {
        uint64_t n_samples = terms->base.n_samples;
        uint64_t most = 2 * order_bytes(terms, n_samples, false) + shuffle_bytes(terms, n_samples);

        for (uint32_t i = 0; i < text->n_steps; i++) {
                const struct dlp_step_type *type = text->steps[i].type;
                uint64_t n = n_after(text, terms, i), bytes = order_bytes(terms, n, false), own;

                if (__builtin_mul_overflow(n, (uint64_t)type->position_bytes, &own) ||
                    __builtin_add_overflow(bytes, own, &bytes) ||
                    __builtin_mul_overflow(n_samples, (uint64_t)type->sample_bytes, &own) ||
                    __builtin_add_overflow(bytes, own, &bytes) ||
                    (type->scratch_bytes &&
                     __builtin_add_overflow(bytes, type->scratch_bytes(&text->steps[i], terms, n), &bytes)) ||
                    __builtin_add_overflow(bytes, shuffle_bytes(terms, n_after(text, terms, i + 1)), &bytes))
                        return UINT64_MAX;
                if (bytes > most)
                        most = bytes;
        }
        return most;
}

static int refuse_empty(const struct dlp_making *making, const struct dlp_step *step) {
        return why_set(making->why, -EINVAL, "%s: no sample is left of the dataset's %llu", step->type->kind.name,
                       (unsigned long long)making->terms->base.n_samples);
}

int dlp_order_make(const struct dlp_order_text *text, struct dlp_making *making, struct dlp_order *ret_order) {
        struct dlp_order order = { 0 };
        int r = dlp_order_text_may_follow(text, &making->terms->base, making->why);

        if (r < 0)
                return r;
        if (text->n_steps > 0 && making->terms->base.n_samples == 0)
                return why_set(making->why, -EINVAL, "%s: the dataset has no samples", text->steps[0].type->kind.name);
        if (text->n_steps == 0 || text->steps[0].type->role != DLP_CHOOSER) {
                making->is_last = text->n_steps == 0;
                r = dlp_making_permute(making, making->terms->base.n_samples, making->is_last, &order);
        }
        for (uint32_t i = 0; r == 0 && i < text->n_steps; i++) {
                making->is_last = i + 1 == text->n_steps;
                r = text->steps[i].type->make(making, &text->steps[i], &order);
                if (r == 0 && order.n_units == 0)
                        r = refuse_empty(making, &text->steps[i]);
        }
        if (r < 0)
                dlp_making_free(making, &order);
        else
                *ret_order = order;
        return r;
}
