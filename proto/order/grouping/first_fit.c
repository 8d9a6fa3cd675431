/* First fit: pieces in the order's sequence, each into the first of n_bins open packs that has room for it. If none
 * has, all of them come, in their sequence, and as many empty ones are opened: as Grain's FirstFitPackIterDataset
 * without shuffled bins. */
#include <errno.h>

#include "proto/order/grouping/grouping_packing.h"

/* Open packs are the leaves of a tree; each node has the largest free space below it. */
struct first_fit {
        const struct dlp_packing *packing;
        struct dlp_grouping grouping;
        uint32_t n_leaves;   /* n_bins, rounded up to a power of two */
        uint32_t *free;      /* node 1 is the root, nodes n_leaves .. 2 * n_leaves - 1 are the packs */
        uint32_t *n_taken;   /* pieces of each open pack */
        uint64_t first_open; /* the number of the first open pack */
};

static uint32_t n_leaves(const struct dlp_packing *packing) {
        uint32_t n = 1;

        while (n < packing->n_bins)
                n *= 2;
        return n;
}

static void open_bins(struct first_fit *fit) {
        fit->first_open = fit->grouping.n_units;
        for (uint32_t i = 0; i < fit->n_leaves; i++) {
                bool is_bin = i < fit->packing->n_bins;

                fit->free[fit->n_leaves + i] = is_bin ? fit->packing->size : 0;
                fit->n_taken[i] = 0;
        }
        for (uint32_t i = fit->n_leaves - 1; i > 0; i--)
                fit->free[i] = fit->free[2 * i]; /* the left one is never emptier */
}

static void set_free(struct first_fit *fit, uint32_t leaf, uint32_t n_free) {
        fit->free[leaf] = n_free;
        for (uint32_t i = leaf / 2; i > 0; i /= 2)
                fit->free[i] = fit->free[2 * i] > fit->free[2 * i + 1] ? fit->free[2 * i] : fit->free[2 * i + 1];
}

static void first_fit_add_piece(struct first_fit *fit, uint64_t sample, uint32_t begin, uint32_t length) {
        uint32_t node = 1, bin, max = fit->packing->max_samples;

        if (fit->free[1] < length)
                open_bins(fit);
        while (node < fit->n_leaves)
                node = fit->free[2 * node] >= length ? 2 * node : 2 * node + 1;
        bin = node - fit->n_leaves;
        if (fit->first_open + bin == fit->grouping.n_units)
                fit->grouping.n_units++;
        if (fit->grouping.begins)
                fit->grouping.begins[fit->grouping.kept.n_positions] = begin;
        dlp_grouping_keep(&fit->grouping, sample, (uint32_t)(fit->first_open + bin));
        fit->n_taken[bin]++;
        set_free(fit, node, max > 0 && fit->n_taken[bin] == max ? 0 : fit->free[node] - length);
}

static int first_fit_walk(struct first_fit *fit, struct dlp_making *making, const struct dlp_order *order) {
        uint32_t lengths[DLP_LENGTHS_CHUNK], size = fit->packing->size;

        for (uint64_t i = 0; i < order->n_positions; i += DLP_LENGTHS_CHUNK) {
                uint64_t n_left = order->n_positions - i, n = n_left < DLP_LENGTHS_CHUNK ? n_left : DLP_LENGTHS_CHUNK;
                int r = dlp_packing_take(making, fit->packing, order, i, n, lengths);

                if (r < 0)
                        return r;
                for (uint64_t k = 0; k < n; k++) {
                        struct dlp_pieces pieces = dlp_packing_cut(fit->packing, lengths[k]);
                        uint64_t sample = dlp_order_sample(order, i + k);

                        for (uint32_t part = 0; part < pieces.n_whole; part++)
                                first_fit_add_piece(fit, sample, part * size, size);
                        if (pieces.rest > 0)
                                first_fit_add_piece(fit, sample, pieces.n_whole * size, pieces.rest);
                }
                if (!making->go_on(making, i, order->n_positions))
                        return -ECANCELED;
        }
        return 0;
}

uint64_t dlp_pack_first_fit_bytes(const struct dlp_packing *packing, const struct dlp_making_terms *terms,
                                  uint64_t n_pieces) {
        uint64_t n_bytes = dlp_grouping_bytes(terms, n_pieces, packing->on_long == DLP_LONG_SPLIT);

        return __builtin_add_overflow(n_bytes, 3ull * n_leaves(packing) * sizeof(uint32_t) + 2 * 4096, &n_bytes)
                       ? UINT64_MAX
                       : n_bytes;
}

int dlp_pack_first_fit(struct dlp_making *making, const struct dlp_packing *packing, struct dlp_order *order) {
        struct first_fit fit = { .packing = packing, .n_leaves = n_leaves(packing) };
        uint64_t n_pieces = order->n_positions;
        int r = 0;

        if (packing->on_long == DLP_LONG_SPLIT)
                r = dlp_packing_count(making, packing, order, &n_pieces);
        if (r == 0)
                r = dlp_grouping_init(making, packing->lengths.step, n_pieces, packing->on_long == DLP_LONG_SPLIT,
                                      &fit.grouping);
        if (r == 0)
                r = dlp_making_allocate(making, 2ull * fit.n_leaves, sizeof(*fit.free), &fit.free);
        if (r == 0)
                r = dlp_making_allocate(making, fit.n_leaves, sizeof(*fit.n_taken), &fit.n_taken);
        if (r == 0) {
                open_bins(&fit);
                r = first_fit_walk(&fit, making, order);
        }
        making->release(making, fit.free, 2ull * fit.n_leaves * sizeof(*fit.free));
        making->release(making, fit.n_taken, fit.n_leaves * sizeof(*fit.n_taken));
        if (r < 0) {
                dlp_grouping_free(making, &fit.grouping);
                return r;
        }
        dlp_making_free(making, order);
        return dlp_packing_finish(making, packing, &fit.grouping, order);
}
