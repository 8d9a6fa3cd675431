/* order/making/order_weights.h: samples drawn with replacement, each as often as its weight says.
 *
 * Up to 2^24 weights it is torch.multinomial() on float64, bit for bit: sums from the left to the right, divided by
 * their total, and the first one that is at least the draw. torch refuses more weights than that. For these we add up
 * blocks in eight lanes, which is faster, and defined as exactly. There a weight of 0 is never drawn.
 *
 * Only the sums at the ends of blocks are kept, with a table that leads from a draw to its block: a third of a byte a
 * sample. Within the block the weights are added up again, in the same sequence. */
#pragma once

#include "proto/order/making/making.h"

#define DLP_WEIGHTS_BLOCK     32u /* 64 take thrice the time of a draw, 16 twice the memory */
#define DLP_WEIGHTS_TORCH_MAX (1ull << 24)

/* Where the weights come from: a column, or a number for each class (order/making/order_classes.h). */
struct dlp_weights_source {
        /* Weights i .. i + n - 1, n <= DLP_WEIGHTS_BLOCK: in `buffer` or where they are. */
        const double *(*read)(const void *userdata, uint64_t i, uint64_t n, double *buffer);
        const void *userdata;
        const void *memory; /* that read() will look at: elements of n_bytes; asked for in advance */
        uint32_t n_bytes;
        const char *step, *name; /* for messages: "weighted", "w" */
};

struct dlp_weights {
        const struct dlp_weights_source *source;
        uint64_t n, n_blocks, n_guides;
        double total;
        double *ends;     /* n_blocks: sum of all weights up to the end of each block */
        uint32_t *guides; /* n_guides + 1: the block of the draw k / n_guides */
        bool is_torch;
};

/* Weights as a column has them. */
struct dlp_weights_source dlp_weights_of_column(const char *step, const struct dlp_column *column);

/* Adds up n weights. -EINVAL: one is negative, infinite or not a number, or all are 0; -ENOMEM; -ECANCELED. Undone by
 * dlp_weights_fini(), also after an error. */
int dlp_weights_init(struct dlp_making *making, const struct dlp_weights_source *source, uint64_t n,
                     struct dlp_weights *ret_weights);
void dlp_weights_fini(struct dlp_making *making, struct dlp_weights *weights);

/* Fills the order with draws, and publishes them. -ECANCELED. */
int dlp_weights_draw(struct dlp_making *making, const struct dlp_weights *weights, struct dlp_torch_random *random,
                     const struct dlp_order *order);

/* Bytes that dlp_weights_init() takes for n weights. */
uint64_t dlp_weights_bytes(uint64_t n);

/* The one sentence for a weight that cannot be used: -EINVAL if it is negative, infinite or not a number, else 0. */
int dlp_weights_check(struct dlp_making *making, const struct dlp_weights_source *source, uint64_t i, double weight);
int dlp_weights_refuse_total(struct dlp_making *making, const struct dlp_weights_source *source, uint64_t n,
                             double total);
