#include "proto/order/blocks.h"

#include <stdatomic.h>

uint64_t dlp_block_size(const struct dlp_blocks *blocks, uint32_t block, bool *ret_is_whole) {
        uint64_t grown;

        *ret_is_whole = true;
        if (blocks->ends)
                return blocks->ends[block] - (block > 0 ? blocks->ends[block - 1] : 0);
        grown = atomic_load_explicit(&blocks->grown[block], memory_order_acquire);
        *ret_is_whole = grown & 1;
        return grown >> 1;
}

static uint64_t block_first(const struct dlp_blocks *blocks, uint32_t block) {
        if (!blocks->ends)
                return (uint64_t)block << blocks->shift;
        return block > 0 ? blocks->ends[block - 1] : 0;
}

static uint32_t n_groups_of(const struct dlp_blocks *blocks, uint32_t window) {
        return (uint32_t)(((uint64_t)blocks->n + window - 1) / window);
}

/* A group has at most one round more than those in which its longest block gives all that it may, which is
 * DLP_BLOCKS_SHARE samples or more. Of growing blocks nobody knows. */
static uint64_t n_windows_max(const struct dlp_blocks *blocks, uint32_t window) {
        return blocks->ends ? blocks->ends[blocks->n - 1] / DLP_BLOCKS_SHARE + n_groups_of(blocks, window) : 0;
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

/* How many samples a block of the group gives in a round; *ret_is_known: that will not change. */
static uint64_t given_so_far(const struct dlp_block_order *order, const struct block_group *group, uint32_t i,
                             uint32_t round, bool *ret_is_known) {
        uint64_t n = dlp_block_size(order->blocks, group->blocks[i], ret_is_known), n_before = round * group->share;

        *ret_is_known |= n >= n_before + group->share;
        if (n <= n_before)
                return 0;
        return n - n_before < group->share ? n - n_before : group->share;
}

static uint64_t given(const struct dlp_block_order *order, const struct block_group *group, uint32_t i,
                      uint32_t round) {
        bool is_known;

        return given_so_far(order, group, i, round, &is_known);
}

static void arrange_group(struct dlp_block_order *order, uint32_t group) {
        uint64_t first = (uint64_t)group * order->window;

        for (uint64_t s = first; s < first + order->window && s < order->blocks->n; s++)
                order->sequence[s] = (uint32_t)dlp_tdperm_at(&order->arranged, s);
}

uint32_t dlp_block_order_group(struct dlp_block_order *order, uint32_t ahead, const uint32_t **ret_blocks) {
        if (order->group + ahead >= n_groups_of(order->blocks, order->window))
                return 0;
        if (ahead > 0) /* that of now has been, and others read it */
                arrange_group(order, order->group + ahead);
        *ret_blocks = order->sequence + (uint64_t)(order->group + ahead) * order->window;
        return group_of(order, order->group + ahead).n;
}

enum dlp_block_found dlp_block_order_find(struct dlp_block_order *order, struct dlp_block_window *ret_window,
                                          uint64_t *ret_lack) {
        while (order->group < n_groups_of(order->blocks, order->window)) {
                struct block_group group = group_of(order, order->group);
                bool is_known, are_known = true;
                uint64_t n = 0;

                if (order->round == 0)
                        arrange_group(order, order->group);
                for (uint32_t i = 0; i < group.n; i++) {
                        n += given_so_far(order, &group, i, order->round, &is_known);
                        are_known &= is_known;
                }
                *ret_lack = (order->round + 1) * group.share;
                if (!are_known)
                        return DLP_BLOCKS_LACK;
                if (n > 0) {
                        *ret_window = (struct dlp_block_window){ (uint64_t)order->group << 32 | order->round++, n };
                        return DLP_BLOCKS_FOUND;
                }
                order->group++;
                order->round = 0;
        }
        return DLP_BLOCKS_OVER;
}

uint64_t dlp_block_order_advance(struct dlp_block_order *order, uint64_t n_steps) {
        uint64_t w = atomic_load_explicit(&order->n_windows, memory_order_relaxed), lack;
        struct dlp_block_window window;

        for (uint64_t n_done = 0; n_done < n_steps && dlp_block_order_find(order, &window, &lack) == DLP_BLOCKS_FOUND;
             n_done += order->window, w++) {
                order->streams[w] = window.stream;
                order->firsts[w + 1] = order->firsts[w] + window.n;
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

uint64_t dlp_block_order_in(const struct dlp_block_order *order, const struct dlp_block_window *window,
                            uint64_t place) {
        struct block_group group = group_of(order, (uint32_t)(window->stream >> 32));
        uint32_t round = (uint32_t)window->stream, i = 0;
        struct dlp_tdperm shuffled;

        dlp_tdperm_init(&shuffled, order->seed, order->epoch, window->stream + 1, window->n);
        place = dlp_tdperm_at(&shuffled, place);
        for (uint64_t n; place >= (n = given(order, &group, i, round)); i++)
                place -= n;
        return block_first(order->blocks, group.blocks[i]) + round * group.share + place;
}

uint64_t dlp_block_order_at(const struct dlp_block_order *order, uint64_t position) {
        uint64_t w = window_at(order, position), first = order->firsts[w];
        const struct dlp_block_window window = { order->streams[w], order->firsts[w + 1] - first };

        return dlp_block_order_in(order, &window, position - first);
}
