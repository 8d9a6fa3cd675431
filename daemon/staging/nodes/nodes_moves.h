/* staging/nodes/nodes_moves.h: who lacks what, and who shall send it: the decisions of a transfer, without its doing.
 *
 * From what each node lacks of a window of chunks come a few moves. A move is a run of chunks that the same nodes lack:
 * its members are those nodes, and nodes that have the chunks, if any do. A chunk that some node has comes from there;
 * a chunk that nobody has is fetched from the origin by one of those who lack it, each in turn. All nodes compute the
 * same moves from the same bits, so nobody needs to be told. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define MOVES_MAX    8u /* a window; what does not fit into seven goes to all nodes in the last one */
#define MOVE_HOLDERS 4u /* of those who have a chunk, as many take turns in sending it */

struct route {
        uint64_t chunk;
        uint32_t source; /* node */
        bool is_fetched; /* from the origin, by the source; else the source has it */
};

struct move {
        uint8_t *members; /* a bit a node */
        struct route *routes;
        uint64_t n_routes; /* in the order of the situation */
};

struct moves {
        struct move moves[MOVES_MAX];
        uint32_t n_moves;
        uint64_t n_chunks;       /* that are on their way to somebody */
        uint64_t n_out_of_reach; /* nobody has them, and there is no origin */
};

struct moves_situation {
        uint32_t n_nodes;
        uint64_t first_chunk; /* of the window */
        uint64_t n_chunks;
        const uint32_t *order; /* of the window's chunks; NULL: as they are */
        const uint8_t
                *missing; /* a bit a chunk of the window, n_bytes a node, one node after the other; 1 = lacks it */
        uint64_t n_bytes;
        const uint8_t *is_able; /* a byte a node: 0 = cannot write (any more), so nothing is sent to it */
        bool has_origin;
        uint32_t round; /* who sends changes with it, so that one node's trouble is not met again */
};

static inline bool bit_is_set(const uint8_t *bits, uint64_t idx) {
        return bits[idx / 8] >> (idx % 8) & 1;
}

static inline void bit_set(uint8_t *bits, uint64_t idx) {
        bits[idx / 8] |= (uint8_t)(1u << (idx % 8));
}

/* Returns 0 or -ENOMEM. */
int moves_plan(const struct moves_situation *situation, struct moves *ret_moves);
void moves_fini(struct moves *moves);
