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

/* The blocks of a dataset. They do not change. */
struct dlp_blocks {
        const uint64_t *ends; /* block b holds the samples ends[b - 1] (of the first one: 0) .. ends[b] - 1, one at
                               * least; the last end is the number of samples */
        uint32_t n;
};

/* The order of one epoch. Its windows are found one after the other, into a table, so that a position need not look at
 * all that come before it. */
struct dlp_block_order {
        const struct dlp_blocks *blocks;
        uint64_t seed, epoch;
        uint32_t window;            /* W */
        struct dlp_tdperm arranged; /* of the blocks */

        /* The table. */
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
