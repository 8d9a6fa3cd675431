/* Wrapped: samples one after the other, cut wherever a pack is full. So a sample may be in several packs, and all packs
 * but the last are full: the last of every `rows` samples, where these are packed together. */
#include <errno.h>

#include "proto/order/grouping/grouping_packing.h"

struct wrapped {
        struct dlp_making *making;
        const struct dlp_packing *packing;
        uint32_t n_taken; /* elements of the pack at hand */
        uint64_t n_units; /* packs that were begun */
        uint64_t n_pieces;
        struct dlp_grouping *grouping; /* NULL: only count */
};

static void wrapped_add_piece(struct wrapped *wrapped, uint64_t sample, uint32_t begin) {
        struct dlp_grouping *grouping = wrapped->grouping;

        if (wrapped->n_taken == 0)
                wrapped->n_units++;
        if (grouping) {
                grouping->begins[grouping->kept.n_positions] = begin;
                dlp_grouping_keep(grouping, sample, (uint32_t)(wrapped->n_units - 1));
        }
        wrapped->n_pieces++;
}

static void add_sample(struct wrapped *wrapped, uint64_t sample, uint32_t length) {
        uint32_t size = wrapped->packing->size, begin = 0;

        while (begin < length) {
                uint32_t n_free = size - wrapped->n_taken, n = length - begin < n_free ? length - begin : n_free;

                wrapped_add_piece(wrapped, sample, begin);
                begin += n;
                wrapped->n_taken = wrapped->n_taken + n == size ? 0 : wrapped->n_taken + n;
        }
}

static int wrapped_walk(struct wrapped *wrapped, const struct dlp_order *order) {
        const struct dlp_packing *packing = wrapped->packing;
        uint32_t lengths[DLP_LENGTHS_CHUNK];
        uint64_t n_rows = packing->rows > 0 ? packing->rows : UINT64_MAX, n_since = 0;

        for (uint64_t i = 0; i < order->n_positions; i += DLP_LENGTHS_CHUNK) {
                uint64_t n_left = order->n_positions - i, n = n_left < DLP_LENGTHS_CHUNK ? n_left : DLP_LENGTHS_CHUNK;
                int r = dlp_packing_take(wrapped->making, packing, order, i, n, lengths);

                if (r < 0)
                        return r;
                for (uint64_t k = 0; k < n; k++) {
                        if (n_since++ == n_rows) {
                                n_since = 1;
                                wrapped->n_taken = 0;
                        }
                        if (lengths[k] <= packing->size || packing->on_long == DLP_LONG_SPLIT)
                                add_sample(wrapped, dlp_order_sample(order, i + k), lengths[k]);
                }
                if (!wrapped->making->go_on(wrapped->making, i, order->n_positions))
                        return -ECANCELED;
        }
        return 0;
}

uint64_t dlp_pack_wrapped_bytes(const struct dlp_making_terms *terms, uint64_t n_pieces) {
        return dlp_grouping_bytes(terms, n_pieces, true);
}

int dlp_pack_wrapped(struct dlp_making *making, const struct dlp_packing *packing, struct dlp_order *order) {
        struct wrapped wrapped = { .making = making, .packing = packing };
        struct dlp_grouping grouping;
        int r = wrapped_walk(&wrapped, order);

        if (r == 0)
                r = dlp_grouping_init(making, packing->lengths.step, wrapped.n_pieces, true, &grouping);
        if (r < 0)
                return r;
        wrapped = (struct wrapped){ .making = making, .packing = packing, .grouping = &grouping };
        r = wrapped_walk(&wrapped, order);
        grouping.n_units = wrapped.n_units;
        if (r < 0) {
                dlp_grouping_free(making, &grouping);
                return r;
        }
        dlp_making_free(making, order);
        return dlp_packing_finish(making, packing, &grouping, order);
}
