#include "daemon/data/orders/order_growing.h"

#include <errno.h>
#include <stdlib.h>

_Static_assert(DLP_STREAM_MAX <= UINT32_MAX, "the order has four bytes for a sample");

/* ---- in blocks ------------------------------------------------------------------------------------------------- */

struct growing_window {
        struct dlp_block_window window;
        uint64_t first; /* position */
};

static int begin_blocks(struct order_growing *growing, const struct dlp_blocks *blocks,
                        const struct dlp_sampler_terms *terms, struct why *why) {
        uint32_t window = dlp_sampler_window(terms);
        uint64_t n_bytes = dlp_block_order_bytes(blocks, window);
        int r = growing->budget ? budget_reserve(growing->budget, n_bytes, "the order of a stream", why) : 0;

        if (r < 0)
                return r;
        growing->table_bytes = n_bytes;
        growing->sequence = calloc(1, n_bytes);
        r = growing->sequence ? pieces_init(&growing->windows, sizeof(struct growing_window), growing->budget,
                                            "the order of a stream")
                              : -ENOMEM;
        if (r < 0)
                return why_errno(why, r, "the order of a stream");
        growing->is_in_blocks = true;
        atomic_init(&growing->n_windows, 0);
        dlp_block_order_init(&growing->block_order, blocks, window, terms->seed, terms->epoch, growing->sequence);
        return 0;
}

/* What is needed next of the group; and then the blocks of the next one, whose beginnings are needed at once. */
static void want_blocks(struct order_growing *growing, uint64_t n_lacking) {
        for (uint32_t ahead = 0; ahead < 2; ahead++) {
                const uint32_t *blocks;
                uint32_t n = dlp_block_order_group(&growing->block_order, ahead, &blocks);

                for (uint32_t i = 0; i < n; i++) {
                        if (ahead == 0)
                                growth_want_block(growing->growth, blocks[i], n_lacking, false);
                        growth_want_block(growing->growth, blocks[i], ahead == 0 ? UINT64_MAX >> 1 : n_lacking, true);
                }
        }
}

static uint64_t advance_blocks(struct order_growing *growing, uint64_t n_steps, bool *ret_is_whole, struct why *why) {
        enum dlp_block_found found = DLP_BLOCKS_FOUND;
        uint64_t lack;

        while (n_steps-- > 0 && found == DLP_BLOCKS_FOUND) {
                struct growing_window *window = pieces_append(&growing->windows, why);

                if (!window)
                        break;
                window->first = growing->n_positions;
                found = dlp_block_order_find(&growing->block_order, &window->window, &lack);
                if (found == DLP_BLOCKS_FOUND) {
                        growing->n_positions += window->window.n;
                        atomic_store_explicit(&growing->n_windows, growing->windows.n, memory_order_release);
                } else {
                        pieces_cut(&growing->windows, growing->windows.n - 1);
                }
                if (found != DLP_BLOCKS_OVER)
                        want_blocks(growing, lack);
        }
        *ret_is_whole = found == DLP_BLOCKS_OVER;
        return growing->n_positions;
}

static uint64_t at_in_blocks(const struct order_growing *growing, uint64_t position) {
        uint64_t low = 0, high = atomic_load_explicit(&growing->n_windows, memory_order_acquire);
        const struct growing_window *window;

        while (high - low > 1) { /* it is one of [low, high) */
                uint64_t middle = low + (high - low) / 2;

                window = pieces_at(&growing->windows, middle);
                if (window->first <= position)
                        low = middle;
                else
                        high = middle;
        }
        window = pieces_at(&growing->windows, low);
        return dlp_block_order_in(&growing->block_order, &window->window, position - window->first);
}

/* ---- any ------------------------------------------------------------------------------------------------------- */

int order_growing_init(struct order_growing *growing, struct growth *growth, const struct dlp_sampler_terms *terms,
                       struct budget *budget, struct why *why) {
        uint64_t size = dlp_sampler_buffer_size(terms), *samples;
        int r;

        *growing = (struct order_growing){ .budget = budget };
        if (growth_blocks(growth)) {
                growing->growth = growth_ref(growth);
                r = begin_blocks(growing, growth_blocks(growth), terms, why);
                if (r < 0)
                        order_growing_fini(growing);
                return r;
        }
        if (terms->shuffle) {
                r = budget ? budget_reserve(budget, size * sizeof(*samples), "a shuffle buffer", why) : 0;
                if (r < 0)
                        return r;
                growing->buffer_bytes = size * sizeof(*samples);
                samples = calloc(size, sizeof(*samples));
                r = samples ? pieces_init(&growing->order, sizeof(uint32_t), budget, "the order of a stream") : -ENOMEM;
                if (r < 0) {
                        free(samples);
                        if (budget)
                                budget_release(budget, growing->buffer_bytes);
                        return why_errno(why, r, "a shuffle buffer of %llu samples", (unsigned long long)size);
                }
                dlp_torch_seed(&growing->random, dlp_order_seed(terms->seed, terms->epoch));
                dlp_shuffle_buffer_init(&growing->buffer, &growing->random, samples, (uint32_t)size);
        }
        growing->growth = growth_ref(growth);
        return 0;
}

void order_growing_fini(struct order_growing *growing) {
        if (!growing->growth)
                return;
        if (growing->budget)
                budget_release(growing->budget, growing->buffer_bytes + growing->table_bytes);
        free(growing->buffer.samples);
        free(growing->sequence);
        pieces_fini(&growing->order);
        pieces_fini(&growing->windows);
        growth_unref(growing->growth);
        growing->growth = NULL;
}

uint64_t order_growing_advance(struct order_growing *growing, uint64_t n_steps, bool *ret_is_whole, struct why *why) {
        bool is_over;
        uint64_t n = growth_n_samples(growing->growth, &is_over);

        if (growing->is_in_blocks)
                return advance_blocks(growing, n_steps, ret_is_whole, why);
        *ret_is_whole = is_over;
        if (growing->buffer_bytes == 0)
                return n;
        for (; n_steps > 0; n_steps--) {
                uint32_t *place = pieces_append(&growing->order, why); /* before a draw that could not be kept */
                uint64_t sample;

                if (!place)
                        break;
                if (!dlp_shuffle_buffer_next(&growing->buffer, n, is_over, &sample)) {
                        pieces_cut(&growing->order, growing->order.n - 1);
                        break;
                }
                *place = (uint32_t)sample;
        }
        *ret_is_whole = is_over && growing->order.n == n;
        return growing->order.n;
}

uint64_t order_growing_at(const struct order_growing *growing, uint64_t position) {
        if (growing->is_in_blocks)
                return at_in_blocks(growing, position);
        return growing->buffer_bytes == 0 ? position : *(const uint32_t *)pieces_at(&growing->order, position);
}
