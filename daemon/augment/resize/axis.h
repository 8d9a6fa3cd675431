/* augment/resize/axis.h: which source pixels an output pixel is made of, and how much each weighs. Private to this
 * floor.
 *
 * Columns and rows are the same question. The weights are Pillow's, to the bit. */
#pragma once

#include "daemon/augment/resize/kernels.h"
#include "daemon/augment/resize/resize.h"

#include <stdbool.h>

/* What an axis was made for. Two equal ones share their weights: pictures of one size come in rows. */
struct axis_key {
        uint32_t n_source, n_outputs;    /* whole lengths */
        uint32_t window_first, window_n; /* the outputs wanted */
        uint32_t given_first;            /* the source pixel that resize_axis.first[] counts from */
        enum resize_filter filter;
        bool flip;
};

struct axis {
        struct axis_key key;
        struct resize_axis weights;
        double *unscaled; /* [n_taps] of one output, before they are made to add up to 1 */
        size_t n_outputs_max, n_weights_max, n_taps_max; /* what the arrays have room for */
};

/* Frees the arrays; of one that is all zeros nothing. */
void axis_fini(struct axis *axis);

/* What the arrays hold, for accounting. */
size_t axis_bytes(const struct axis *axis);

/* The most that the arrays may hold for this key, in bytes; and taps of an output. Computed, not made. */
uint64_t axis_bytes_needed(const struct axis_key *key, uint32_t *ret_n_taps);

/* The source pixels that the outputs wanted are made of. */
void axis_need(const struct axis_key *key, uint32_t *ret_first, uint32_t *ret_n);

/* Makes the weights, unless they are there already. One that keeps its length, and every one of RESIZE_NEAREST, is a
 * choice of pixels: one tap an output, of weight RESIZE_ONE. -ENOMEM: nothing is valid; else 0. */
int axis_prepare(struct axis *axis, const struct axis_key *key);
