/* data/orders/order_growing.h: the order of an epoch of a stream, made as the samples arrive. A part of data/orders/order_table.c.
 *
 * Without shuffling it is the order in which they arrive, and takes no memory; else a shuffle buffer makes it. The
 * order of a stream that comes in blocks is that of proto/order/blocks.h, and asks for the blocks that it needs next.
 */
#pragma once

#include "daemon/data/growth.h"
#include "daemon/data/intake/pieces.h"
#include "proto/order/sampler.h"

struct order_growing {
        struct growth *growth; /* one reference; NULL: the table is not of a stream */
        struct growth_listener listener;
        struct budget *budget;
        uint64_t buffer_bytes; /* paid for; 0: not shuffled */
        struct pieces order;   /* of uint32_t: the sample at each position */
        struct dlp_torch_random random;
        struct dlp_shuffle_buffer buffer;

        bool is_in_blocks;
        struct dlp_block_order block_order;
        uint64_t *sequence;    /* its table */
        uint64_t table_bytes;  /* paid for */
        struct pieces windows; /* struct growing_window */
        uint64_t n_positions;  /* of them */
        _Atomic uint64_t n_windows;
};

/* `budget` pays for its memory as it grows; NULL: nobody does. 0 or -ENOMEM with `why`. */
int order_growing_init(struct order_growing *growing, struct growth *growth, const struct dlp_sampler_terms *terms,
                       struct budget *budget, struct why *why);

/* Takes a struct of zeroes. */
void order_growing_fini(struct order_growing *growing);

/* Makes up to n_steps more positions; one thread. Returns how many there are, and in *ret_is_whole whether that is the
 * whole epoch. `why` is set if memory was lacking. */
uint64_t order_growing_advance(struct order_growing *growing, uint64_t n_steps, bool *ret_is_whole, struct why *why);

/* The sample at a position that is final. Any thread. */
uint64_t order_growing_at(const struct order_growing *growing, uint64_t position);
