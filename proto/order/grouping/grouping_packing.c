#include "proto/order/grouping/grouping_packing.h"

#include <errno.h>

int dlp_packing_take(const struct dlp_making *making, const struct dlp_packing *packing, const struct dlp_order *order,
                     uint64_t first, uint64_t n, uint32_t *ret_lengths) {
        int r = dlp_lengths_take(making, &packing->lengths, order, first, n, ret_lengths);

        if (r < 0 || packing->on_long != DLP_LONG_ERROR)
                return r;
        for (uint64_t i = 0; i < n; i++)
                if (ret_lengths[i] > packing->size)
                        return why_set(making->why, -EINVAL,
                                       "%s: sample %llu has %u elements, a pack has %u; choose what to do with such "
                                       "samples: long=truncate, skip or split",
                                       packing->lengths.step, (unsigned long long)dlp_order_sample(order, first + i),
                                       ret_lengths[i], packing->size);
        return 0;
}

int dlp_packing_count(struct dlp_making *making, const struct dlp_packing *packing, const struct dlp_order *order,
                      uint64_t *ret_n_pieces) {
        uint32_t lengths[DLP_LENGTHS_CHUNK];
        uint64_t n_pieces = 0;

        for (uint64_t i = 0; i < order->n_positions; i += DLP_LENGTHS_CHUNK) {
                uint64_t n_left = order->n_positions - i, n = n_left < DLP_LENGTHS_CHUNK ? n_left : DLP_LENGTHS_CHUNK;
                int r = dlp_packing_take(making, packing, order, i, n, lengths);

                if (r < 0)
                        return r;
                for (uint64_t k = 0; k < n; k++) {
                        struct dlp_pieces pieces = dlp_packing_cut(packing, lengths[k]);

                        n_pieces += pieces.n_whole + (pieces.rest > 0);
                }
                if (!making->go_on(making, i, order->n_positions))
                        return -ECANCELED;
        }
        *ret_n_pieces = n_pieces;
        return 0;
}

/* Sets how long each piece of a made order is: what is left of its sample, or of its pack. */
static int dlp_packing_measure(struct dlp_making *making, const struct dlp_packing *packing,
                               const struct dlp_order *order) {
        uint32_t lengths[DLP_LENGTHS_CHUNK];
        uint64_t unit = 0;
        uint32_t n_free = packing->size;

        for (uint64_t i = 0; i < order->n_positions; i += DLP_LENGTHS_CHUNK) {
                uint64_t n_left = order->n_positions - i, n = n_left < DLP_LENGTHS_CHUNK ? n_left : DLP_LENGTHS_CHUNK;
                int r = dlp_lengths_take(making, &packing->lengths, order, i, n, lengths);

                if (r < 0)
                        return r;
                for (uint64_t k = 0; k < n; k++) {
                        struct dlp_piece *piece = &order->pieces[i + k];
                        uint32_t n_more = lengths[k] - piece->begin;

                        if (i + k == order->starts[unit + 1]) {
                                unit++;
                                n_free = packing->size;
                        }
                        piece->n_elements = n_more < n_free ? n_more : n_free;
                        n_free -= piece->n_elements;
                }
                if (!making->go_on(making, i, order->n_positions))
                        return -ECANCELED;
        }
        return 0;
}

int dlp_packing_finish(struct dlp_making *making, const struct dlp_packing *packing, struct dlp_grouping *grouping,
                       struct dlp_order *order) {
        int r;

        grouping->has_pieces = true;
        r = dlp_grouping_finish(making, grouping, packing->is_shuffled, order);
        return r < 0 ? r : dlp_packing_measure(making, packing, order);
}
