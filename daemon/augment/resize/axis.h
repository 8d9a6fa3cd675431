/* augment/resize/axis.h: the source pixels of an output pixel, and their weights. Private to this floor.
 *
 * Columns and rows are handled in the same way. The weights are bit-identical to Pillow's. */
#pragma once

#include "daemon/augment/resize/resample.h"
#include "daemon/augment/resize/resize_kernels.h"

#include <stdbool.h>

/* The input from which an axis is computed. Axes with equal keys share their weights: often many pictures of one size
 * follow each other. */
struct axis_key {
        uint32_t n_source, n_outputs;    /* whole lengths */
        uint32_t window_first, window_n; /* the outputs that are needed */
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

/* Frees the arrays; does nothing for a zeroed axis. */
void axis_fini(struct axis *axis);

/* The memory of the arrays, for accounting. */
size_t axis_bytes(const struct axis *axis);

/* The most bytes that the arrays may take for this key, and the taps of an output. Computed without making the axis. */
uint64_t axis_bytes_needed(const struct axis_key *key, uint32_t *ret_n_taps);

/* The source pixels that the needed outputs depend on. */
void axis_need(const struct axis_key *key, uint32_t *ret_first, uint32_t *ret_n);

/* Computes the weights, unless they are there already. An axis that keeps its length, and every axis of RESIZE_NEAREST,
 * only chooses pixels: one tap for each output, of weight RESIZE_ONE. -ENOMEM: nothing is valid; else 0. */
int axis_prepare(struct axis *axis, const struct axis_key *key);
