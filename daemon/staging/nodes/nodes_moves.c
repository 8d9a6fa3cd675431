#include "daemon/staging/nodes/nodes_moves.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"

/* The move for all, whoever lacks the chunk: the last. */
#define MOVE_FOR_ALL (MOVES_MAX - 1)

struct planning {
        const struct moves_situation *situation;
        struct moves *moves;
        uint64_t n_bytes;  /* of a bit a node */
        uint8_t *lacking;  /* of the chunk at hand */
        uint8_t *keys;     /* who lacks the chunks of each move */
        uint32_t *holders; /* who has the chunk at hand */
};

static bool lacks(const struct moves_situation *situation, uint32_t node, uint64_t idx) {
        return bit_is_set(situation->missing + node * situation->n_bytes, idx);
}

/* Who lacks the chunk and can take it. Returns how many. */
static uint32_t find_lacking(struct planning *planning, uint64_t idx) {
        uint32_t n = 0;

        memset(planning->lacking, 0, planning->n_bytes);
        for (uint32_t node = 0; node < planning->situation->n_nodes; node++)
                if (planning->situation->is_able[node] && lacks(planning->situation, node, idx)) {
                        bit_set(planning->lacking, node);
                        n++;
                }
        return n;
}

/* Up to n_most of those who have the chunk, evenly spread over the nodes. Returns how many. */
static uint32_t find_holders(struct planning *planning, uint64_t idx, uint32_t n_most) {
        uint32_t n = 0, n_all = 0;

        for (uint32_t node = 0; node < planning->situation->n_nodes; node++)
                if (!lacks(planning->situation, node, idx))
                        planning->holders[n_all++] = node;
        if (n_all <= n_most)
                return n_all;
        for (; n < n_most; n++) /* never overtakes what it reads */
                planning->holders[n] = planning->holders[(uint64_t)n * n_all / n_most];
        return n;
}

static uint32_t nth_of(const uint8_t *nodes, uint32_t n) {
        for (uint32_t node = 0;; node++)
                if (bit_is_set(nodes, node) && n-- == 0)
                        return node;
}

/* The move for the chunk at hand: one for the same nodes, a new one, or the one for all. */
static int find_move(struct planning *planning, struct move **ret_move) {
        struct moves *moves = planning->moves;
        struct move *move;
        uint32_t idx = 0;

        while (idx < moves->n_moves && idx < MOVE_FOR_ALL &&
               memcmp(planning->keys + idx * planning->n_bytes, planning->lacking, planning->n_bytes) != 0)
                idx++;
        move = &moves->moves[idx];
        *ret_move = move;
        if (idx < moves->n_moves)
                return 0;

        moves->n_moves++;
        memcpy(planning->keys + idx * planning->n_bytes, planning->lacking, planning->n_bytes);
        move->members = malloc(planning->n_bytes);
        move->routes = malloc(planning->situation->n_chunks * sizeof(*move->routes));
        if (!move->members || !move->routes)
                return -ENOMEM;
        memcpy(move->members, planning->lacking, planning->n_bytes);
        for (uint32_t node = 0; idx == MOVE_FOR_ALL && node < planning->situation->n_nodes; node++)
                bit_set(move->members, node);
        return 0;
}

static int plan_chunk(struct planning *planning, uint64_t idx) {
        const struct moves_situation *situation = planning->situation;
        uint32_t n_lacking = find_lacking(planning, idx), n_holders, n_most, turn;
        struct route route = { .chunk = situation->first_chunk + idx };
        struct move *move;
        int r;

        if (n_lacking == 0)
                return 0;
        n_holders = find_holders(planning, idx, situation->n_nodes);
        if (n_holders == 0 && !situation->has_origin) {
                planning->moves->n_out_of_reach++;
                return 0;
        }
        r = find_move(planning, &move);
        if (r < 0)
                return r;

        /* In the move for all any holder may send; else a few, so that the others are not on the way. */
        n_most = move == &planning->moves->moves[MOVE_FOR_ALL] ? situation->n_nodes : MOVE_HOLDERS;
        n_holders = find_holders(planning, idx, n_most);
        turn = (uint32_t)((move->n_routes + situation->round) % (n_holders > 0 ? n_holders : n_lacking));
        route.is_fetched = n_holders == 0;
        route.source = route.is_fetched ? nth_of(planning->lacking, turn) : planning->holders[turn];
        for (uint32_t i = 0; i < n_holders; i++)
                bit_set(move->members, planning->holders[i]);
        move->routes[move->n_routes++] = route;
        planning->moves->n_chunks++;
        return 0;
}

int moves_plan(const struct moves_situation *situation, struct moves *ret_moves) {
        uint64_t n_bytes = (situation->n_nodes + 7) / 8;
        _cleanup_(freep) uint8_t *lacking = malloc(n_bytes);
        _cleanup_(freep) uint8_t *keys = malloc(n_bytes * MOVES_MAX);
        _cleanup_(freep) uint32_t *nodes = malloc(situation->n_nodes * sizeof(*nodes));
        struct moves moves = { 0 };
        struct planning planning = { .situation = situation,
                                     .moves = &moves,
                                     .n_bytes = n_bytes,
                                     .lacking = lacking,
                                     .keys = keys,
                                     .holders = nodes };
        int r = lacking && keys && nodes ? 0 : -ENOMEM;

        for (uint64_t idx = 0; r == 0 && idx < situation->n_chunks; idx++)
                r = plan_chunk(&planning, situation->order ? situation->order[idx] : idx);
        if (r < 0) {
                moves_fini(&moves);
                return r;
        }
        *ret_moves = moves;
        return 0;
}

void moves_fini(struct moves *moves) {
        for (uint32_t i = 0; i < moves->n_moves; i++) {
                free(moves->moves[i].members);
                free(moves->moves[i].routes);
        }
        *moves = (struct moves){ 0 };
}
