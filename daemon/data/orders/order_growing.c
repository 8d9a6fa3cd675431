#include "daemon/data/orders/order_growing.h"

#include <errno.h>
#include <stdlib.h>

_Static_assert(DLP_STREAM_MAX <= UINT32_MAX, "the order has four bytes for a sample");

int order_growing_init(struct order_growing *growing, struct growth *growth, const struct dlp_sampler_terms *terms,
                       struct budget *budget, struct why *why) {
        uint64_t size = dlp_sampler_buffer_size(terms), *samples;
        int r;

        *growing = (struct order_growing){ .budget = budget };
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
                budget_release(growing->budget, growing->buffer_bytes);
        free(growing->buffer.samples);
        pieces_fini(&growing->order);
        growth_unref(growing->growth);
        growing->growth = NULL;
}

uint64_t order_growing_advance(struct order_growing *growing, uint64_t n_steps, bool *ret_is_whole, struct why *why) {
        bool is_over;
        uint64_t n = growth_n_samples(growing->growth, &is_over);

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
        return growing->buffer_bytes == 0 ? position : *(const uint32_t *)pieces_at(&growing->order, position);
}
