/* proto/order/blocks.h: BLOCKS-1, an order that goes through a dataset block by block.
 *
 * A block is a row of consecutive samples that lie together, such as a shard (daemon/data/orders/source_blocks.h says
 * what the blocks of a dataset are). The blocks come in a random sequence, a few of them at a time, and the samples of
 * these few are shuffled together. So what an epoch touches within a while is few places of the dataset, each read from
 * its beginning to its end, once: good for data that lie far away or have to be unpacked, and for a first pass that
 * begins before all of them are here. It shuffles less than an order of all samples does.
 *
 *   - Sequence: block number s of the sequence is TDPERM(stream 0, m blocks) at s.
 *   - Groups: group g is the blocks W*g .. W*g + W-1 of the sequence; the last group may have fewer than W.
 *   - Rounds: in round r, from 0, each block of a group gives its samples r*k .. r*k + k-1, as far as it has them; k
 *     is W * DLP_BLOCKS_SHARE divided by the number of blocks of the group, rounded down.
 *   - Windows: the samples of a round, block by block as in the sequence, are shuffled. At place p of the window is the
 *     one with the number TDPERM(stream 1 + g * 2^32 + r, n samples of the round) at p.
 *
 * The epoch's positions are those of the windows, group by group and round by round. TDPERM is order/tdperm.h, with the
 * epoch's seed and number. A short block is whole in one round; a long one is read on through several, so that neither
 * the samples of a window nor what must be there before its first one grow with the blocks.
 *
 * Which sample of which block is at a position depends on how many blocks there are, on W, and of the sizes only on
 * those of its group and the groups before it; of its own group's blocks even only on whether they have as many samples
 * as the rounds so far take. That is on purpose. A file that is not here yet, or that nobody has read through, has an
 * unknown length, and an order that depended on all lengths could not begin before all of them are known. What all
 * lengths are needed for is the number of a sample, which counts those of all earlier blocks; nothing that is drawn
 * depends on it.
 *
 * The definition is frozen: another one would get another name. libc only, no allocation, no locks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/order/tdperm.h"

/* Samples of a block in a round, if its group is full. With pictures of 110 kB a window of 8 blocks is 900 MB, with
 * rows of text of 2 kB 16 MB: a few chunks of each block, and enough samples for a batch from all of them. */
#define DLP_BLOCKS_SHARE 1024u

/* Blocks of a group. Eight streams are read at the rate of a disk or a network, and a batch has samples of eight
 * places; that is also about what people choose where they read shards by several workers. */
#define DLP_BLOCKS_WINDOW     8u
#define DLP_BLOCKS_WINDOW_MAX 1024u

/* The blocks of a dataset. They do not change, or only grow (data/growth.h): then it is not known yet where all of them
 * end, and each has numbers for more samples than it may have. */
struct dlp_blocks {
        const uint64_t *ends; /* block b holds the samples ends[b - 1] (of the first one: 0) .. ends[b] - 1, one at
                               * least; the last end is the number of samples. NULL: they grow */
        uint32_t n;
        uint32_t shift; /* of growing ones: block b holds the samples from b << shift on, and may be empty */
        const _Atomic uint64_t *grown; /* of growing ones, of each: samples so far << 1 | will it grow no more? */
};

/* How many samples the block has so far; *ret_is_whole: there will be no more. Any thread. */
uint64_t dlp_block_size(const struct dlp_blocks *blocks, uint32_t block, bool *ret_is_whole);

/* The order of one epoch. Its windows are found one after the other, into a table, so that a position need not look at
 * all that come before it. */
struct dlp_block_order {
        const struct dlp_blocks *blocks;
        uint64_t seed, epoch;
        uint32_t window;            /* W */
        struct dlp_tdperm arranged; /* of the blocks */

        /* The table. Of growing blocks it has the sequence alone. */
        uint64_t *firsts;   /* of window w, and of the one after the last: its first position */
        uint64_t *streams;  /* of window w: g << 32 | r */
        uint32_t *sequence; /* of blocks, as far as windows have been found */

        /* One thread finds windows. */
        uint32_t group;
        uint32_t round;             /* of that group, the next one */
        _Atomic uint64_t n_windows; /* found; released after what the table says of them */
};

/* Bytes of the table. */
uint64_t dlp_block_order_bytes(const struct dlp_blocks *blocks, uint32_t window);

/* Prepares. `table`: dlp_block_order_bytes() bytes, aligned to 8, all zero; the caller's, as are the blocks. `window`:
 * 1
 * .. DLP_BLOCKS_WINDOW_MAX. Looks at no block. */
void dlp_block_order_init(struct dlp_block_order *order, const struct dlp_blocks *blocks, uint32_t window,
                          uint64_t seed, uint64_t epoch, void *table);

/* Finds more windows: about n_steps steps, each some tens of nanoseconds. Returns how many leading positions are final.
 */
uint64_t dlp_block_order_advance(struct dlp_block_order *order, uint64_t n_steps);

/* The sample at a position that is final. Any thread. Some hundred nanoseconds. */
uint64_t dlp_block_order_at(const struct dlp_block_order *order, uint64_t position);

/* ---- of blocks that grow: the caller keeps what windows there are ----------------------------------------------- */

struct dlp_block_window {
        uint64_t stream; /* g << 32 | r */
        uint64_t n;      /* samples */
};

enum dlp_block_found {
        DLP_BLOCKS_FOUND,
        DLP_BLOCKS_OVER, /* there are no more windows */
        DLP_BLOCKS_LACK, /* its samples are not known yet */
};

/* Finds the next window. *ret_lack: how many samples each block of its group has to have for it, unless the block is
 * whole. One thread. */
enum dlp_block_found dlp_block_order_find(struct dlp_block_order *order, struct dlp_block_window *ret_window,
                                          uint64_t *ret_lack);

/* The blocks of the group in which find() has looked last, or, with `ahead` 1, of the next one; returns how many. Its
 * thread. */
uint32_t dlp_block_order_group(struct dlp_block_order *order, uint32_t ahead, const uint32_t **ret_blocks);

/* The sample at this place (< window->n) of a window that was found. Any thread. */
uint64_t dlp_block_order_in(const struct dlp_block_order *order, const struct dlp_block_window *window, uint64_t place);
