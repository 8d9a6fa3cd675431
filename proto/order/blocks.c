#include "proto/order/blocks.h"

#include <stdatomic.h>

static uint64_t block_first(const struct dlp_blocks *blocks, uint32_t block) {
        return block > 0 ? blocks->ends[block - 1] : 0;
}

static uint32_t n_groups_of(const struct dlp_blocks *blocks, uint32_t window) {
        return (uint32_t)(((uint64_t)blocks->n + window - 1) / window);
}

/* A group has at most one round more than those in which its longest block gives all that it may, which is
 * DLP_BLOCKS_SHARE samples or more. */
static uint64_t n_windows_max(const struct dlp_blocks *blocks, uint32_t window) {
        return blocks->ends[blocks->n - 1] / DLP_BLOCKS_SHARE + n_groups_of(blocks, window);
}

uint64_t dlp_block_order_bytes(const struct dlp_blocks *blocks, uint32_t window) {
        return (2 * n_windows_max(blocks, window) + 1) * sizeof(uint64_t) + (uint64_t)blocks->n * sizeof(uint32_t);
}

void dlp_block_order_init(struct dlp_block_order *order, const struct dlp_blocks *blocks, uint32_t window,
                          uint64_t seed, uint64_t epoch, void *table) {
        uint64_t n_max = n_windows_max(blocks, window), *firsts = table;

        order->blocks = blocks;
        order->seed = seed;
        order->epoch = epoch;
        order->window = window;
        dlp_tdperm_init(&order->arranged, seed, epoch, 0, blocks->n);
        order->firsts = firsts;
        order->streams = firsts + n_max + 1;
        order->sequence = (uint32_t *)(firsts + 2 * n_max + 1);
        order->group = 0;
        order->round = 0;
        atomic_init(&order->n_windows, 0);
}

/* The blocks of a group. */
struct block_group {
        const uint32_t *blocks;
        uint32_t n;
        uint64_t share; /* samples of each in a round */
};

static struct block_group group_of(const struct dlp_block_order *order, uint32_t group) {
        uint64_t first = (uint64_t)group * order->window, n_rest = order->blocks->n - first;
        uint32_t n = n_rest < order->window ? (uint32_t)n_rest : order->window;

        return (struct block_group){
                .blocks = order->sequence + first,
                .n = n,
                .share = (uint64_t)order->window * DLP_BLOCKS_SHARE / n,
        };
}

/* How many samples a block of the group gives in a round. */
static uint64_t given(const struct dlp_block_order *order, const struct block_group *group, uint32_t i,
                      uint32_t round) {
        uint64_t n = order->blocks->ends[group->blocks[i]] - block_first(order->blocks, group->blocks[i]);
        uint64_t n_before = round * group->share;

        if (n <= n_before)
                return 0;
        return n - n_before < group->share ? n - n_before : group->share;
}

static void arrange_group(struct dlp_block_order *order, uint32_t group) {
        uint64_t first = (uint64_t)group * order->window;

        for (uint64_t s = first; s < first + order->window && s < order->blocks->n; s++)
                order->sequence[s] = (uint32_t)dlp_tdperm_at(&order->arranged, s);
}

uint64_t dlp_block_order_advance(struct dlp_block_order *order, uint64_t n_steps) {
        uint64_t w = atomic_load_explicit(&order->n_windows, memory_order_relaxed);
        uint32_t n_groups = n_groups_of(order->blocks, order->window);

        for (uint64_t n_done = 0; n_done < n_steps && order->group < n_groups; n_done += order->window) {
                struct block_group group = group_of(order, order->group);
                uint64_t n = 0;

                if (order->round == 0)
                        arrange_group(order, order->group);
                for (uint32_t i = 0; i < group.n; i++)
                        n += given(order, &group, i, order->round);
                if (n == 0) {
                        order->group++;
                        order->round = 0;
                        continue;
                }
                order->streams[w] = (uint64_t)order->group << 32 | order->round++;
                order->firsts[w + 1] = order->firsts[w] + n;
                w++;
        }
        atomic_store_explicit(&order->n_windows, w, memory_order_release);
        return order->firsts[w];
}

/* The last window that begins at or before the position. */
static uint64_t window_at(const struct dlp_block_order *order, uint64_t position) {
        uint64_t low = 0, high = atomic_load_explicit(&order->n_windows, memory_order_acquire);

        while (high - low > 1) { /* it is one of [low, high) */
                uint64_t middle = low + (high - low) / 2;

                if (order->firsts[middle] <= position)
                        low = middle;
                else
                        high = middle;
        }
        return low;
}

uint64_t dlp_block_order_at(const struct dlp_block_order *order, uint64_t position) {
        uint64_t w = window_at(order, position), first = order->firsts[w], place;
        uint32_t round = (uint32_t)order->streams[w], i = 0;
        struct block_group group = group_of(order, (uint32_t)(order->streams[w] >> 32));
        struct dlp_tdperm shuffled;

        dlp_tdperm_init(&shuffled, order->seed, order->epoch, order->streams[w] + 1, order->firsts[w + 1] - first);
        place = dlp_tdperm_at(&shuffled, position - first);
        for (uint64_t n; place >= (n = given(order, &group, i, round)); i++)
                place -= n;
        return block_first(order->blocks, group.blocks[i]) + round * group.share + place;
}
