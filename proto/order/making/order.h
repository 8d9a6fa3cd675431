/* order/making/order.h: the order of an epoch that was made by the steps of a sampler.
 *
 * It is a row of positions, each of which holds a sample. Ranks are dealt units: normally a unit is one position. Where
 * batches or rows of a batch belong together (buckets, packs), a unit is several positions, one after the other, and
 * `starts` says where each begins. The epoch plan (order/epoch_plan.h) counts in units, so that a token of a run can be
 * resumed at any world size.
 *
 * Plain memory; who made it frees it. Constant once it is made, except for the leading positions that a step publishes
 * before it has made them all (order/making/making.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Of a packed position: which part of its sample it holds. */
struct dlp_piece {
        uint32_t begin; /* elements of the sample that come before it */
        uint32_t n_elements;
};

struct dlp_order {
        uint64_t n_positions;
        uint64_t n_room; /* positions that `samples` and `pieces` have memory for, >= n_positions */
        bool is_wide;    /* elements of 8 bytes, for datasets of 2^32 samples and more; else of 4 */
        void *samples;   /* uint32_t or uint64_t */

        uint64_t n_units;      /* n_positions if `starts` is NULL */
        uint64_t n_units_room; /* units that `starts` has memory for */
        uint64_t *starts; /* n_units + 1: unit u holds the positions from starts[u] to before starts[u + 1], at least
                           * one; NULL: each position is a unit */
        struct dlp_piece *pieces; /* n_positions: of packs; else NULL */
};

/* The sample at a position < n_positions. */
static inline uint64_t dlp_order_sample(const struct dlp_order *order, uint64_t position) {
        return order->is_wide ? ((const uint64_t *)order->samples)[position]
                              : ((const uint32_t *)order->samples)[position];
}

static inline void dlp_order_set_sample(const struct dlp_order *order, uint64_t position, uint64_t sample) {
        if (order->is_wide)
                ((uint64_t *)order->samples)[position] = sample;
        else
                ((uint32_t *)order->samples)[position] = (uint32_t)sample;
}

/* Where a unit < n_units begins, and (with n_units) where the last one ends. */
static inline uint64_t dlp_order_start(const struct dlp_order *order, uint64_t unit) {
        return order->starts ? order->starts[unit] : unit;
}
