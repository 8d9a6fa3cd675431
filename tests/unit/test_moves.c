/* staging/nodes/moves: who lacks what, and who shall send it. */
#include <stdlib.h>
#include <string.h>

#include "daemon/staging/nodes/nodes_moves.h"
#include "proto/base/cleanup.h"
#include "tests/support/suite.h"

#define N_CHUNKS    64u
#define N_NODES_MAX 40u

/* A cluster in which each chunk may be there or not, on each node. */
struct nodes {
        uint8_t missing[N_NODES_MAX][N_CHUNKS / 8];
        uint8_t is_able[N_NODES_MAX];
        struct moves_situation situation;
        struct moves moves;
};

static void begin(struct nodes *nodes, uint32_t n_nodes, bool has_origin) {
        memset(nodes, 0, sizeof(*nodes));
        memset(nodes->is_able, 1, sizeof(nodes->is_able));
        nodes->situation = (struct moves_situation){
                .n_nodes = n_nodes,
                .first_chunk = 1000,
                .n_chunks = N_CHUNKS,
                .missing = nodes->missing[0],
                .n_bytes = N_CHUNKS / 8,
                .is_able = nodes->is_able,
                .has_origin = has_origin,
        };
}

static void lacks(struct nodes *nodes, uint32_t node, uint32_t chunk) {
        bit_set(nodes->missing[node], chunk);
}

static void lacks_all(struct nodes *nodes, uint32_t node) {
        memset(nodes->missing[node], 0xff, sizeof(nodes->missing[node]));
}

/* What must hold of all plans: each chunk goes to all who lack it, from one who has it or from the origin, once. */
static void check_plan(struct nodes *nodes) {
        const struct moves_situation *situation = &nodes->situation;
        uint8_t seen[N_CHUNKS] = { 0 };
        uint64_t n = 0;

        ck_assert_int_eq(moves_plan(situation, &nodes->moves), 0);
        for (uint32_t i = 0; i < nodes->moves.n_moves; i++) {
                const struct move *move = &nodes->moves.moves[i];

                for (uint64_t k = 0; k < move->n_routes; k++) {
                        const struct route *route = &move->routes[k];
                        uint64_t chunk = route->chunk - situation->first_chunk;
                        bool somebody_has = false;

                        ck_assert_uint_lt(chunk, N_CHUNKS);
                        ck_assert(k == 0 || route->chunk > move->routes[k - 1].chunk);
                        ck_assert_uint_eq(seen[chunk]++, 0);
                        ck_assert(bit_is_set(move->members, route->source));
                        for (uint32_t node = 0; node < situation->n_nodes; node++) {
                                bool it_lacks = bit_is_set(nodes->missing[node], chunk);

                                somebody_has |= !it_lacks;
                                if (it_lacks && nodes->is_able[node])
                                        ck_assert(bit_is_set(move->members, node));
                        }
                        ck_assert_int_eq(route->is_fetched, !somebody_has);
                        ck_assert_int_eq(bit_is_set(nodes->missing[route->source], chunk), route->is_fetched);
                        n++;
                }
        }
        ck_assert_uint_eq(n, nodes->moves.n_chunks);
}

START_TEST(a_new_dataset_is_fetched_by_all_nodes_in_turn_and_goes_to_all) {
        struct nodes nodes;

        begin(&nodes, 4, true);
        for (uint32_t node = 0; node < 4; node++)
                lacks_all(&nodes, node);
        check_plan(&nodes);
        ck_assert_uint_eq(nodes.moves.n_moves, 1);
        ck_assert_uint_eq(nodes.moves.n_chunks, N_CHUNKS);
        for (uint32_t i = 0; i < N_CHUNKS; i++)
                ck_assert_uint_eq(nodes.moves.moves[0].routes[i].source, i % 4);
        moves_fini(&nodes.moves);
}
END_TEST

START_TEST(chunks_go_in_the_order_that_the_situation_says) {
        static const uint32_t ORDER[] = { 3, 0, 2, 1 };
        struct nodes nodes;

        begin(&nodes, 1, true);
        lacks_all(&nodes, 0);
        nodes.situation.n_chunks = ARRAY_SIZE(ORDER);
        nodes.situation.order = ORDER;
        ck_assert_int_eq(moves_plan(&nodes.situation, &nodes.moves), 0);
        ck_assert_uint_eq(nodes.moves.moves[0].n_routes, ARRAY_SIZE(ORDER));
        for (size_t i = 0; i < ARRAY_SIZE(ORDER); i++)
                ck_assert_uint_eq(nodes.moves.moves[0].routes[i].chunk, 1000 + ORDER[i]);
        moves_fini(&nodes.moves);
}
END_TEST

START_TEST(what_a_node_has_does_not_leave_the_origin_again) {
        struct nodes nodes;

        begin(&nodes, 3, true);
        lacks_all(&nodes, 1); /* came later */
        lacks(&nodes, 0, 7);
        lacks(&nodes, 2, 7); /* and one that nobody has */
        check_plan(&nodes);
        for (uint32_t i = 0; i < nodes.moves.n_moves; i++)
                for (uint64_t k = 0; k < nodes.moves.moves[i].n_routes; k++)
                        ck_assert_int_eq(nodes.moves.moves[i].routes[k].is_fetched,
                                         nodes.moves.moves[i].routes[k].chunk == 1007);
        ck_assert_uint_eq(nodes.moves.n_chunks, N_CHUNKS);
        moves_fini(&nodes.moves);
}
END_TEST

START_TEST(a_latecomer_is_served_by_four_others_and_the_rest_is_left_alone) {
        struct nodes nodes;
        uint32_t n_members = 0, n_sources = 0;
        uint8_t sources[N_NODES_MAX] = { 0 };

        begin(&nodes, N_NODES_MAX, true);
        lacks_all(&nodes, 5);
        check_plan(&nodes);
        ck_assert_uint_eq(nodes.moves.n_moves, 1);
        for (uint32_t node = 0; node < N_NODES_MAX; node++)
                n_members += bit_is_set(nodes.moves.moves[0].members, node);
        for (uint32_t i = 0; i < N_CHUNKS; i++)
                n_sources += !sources[nodes.moves.moves[0].routes[i].source]++;
        ck_assert_uint_eq(n_members, 1 + MOVE_HOLDERS);
        ck_assert_uint_eq(n_sources, MOVE_HOLDERS);
        moves_fini(&nodes.moves);
}
END_TEST

START_TEST(a_node_that_cannot_write_is_sent_nothing_and_holds_up_nobody) {
        struct nodes nodes;

        begin(&nodes, 3, true);
        for (uint32_t node = 0; node < 3; node++)
                lacks_all(&nodes, node);
        nodes.is_able[2] = 0;
        check_plan(&nodes);
        ck_assert(!bit_is_set(nodes.moves.moves[0].members, 2));
        moves_fini(&nodes.moves);

        nodes.is_able[0] = nodes.is_able[1] = 0;
        check_plan(&nodes);
        ck_assert_uint_eq(nodes.moves.n_chunks, 0);
        moves_fini(&nodes.moves);
}
END_TEST

START_TEST(without_an_origin_what_nobody_has_is_counted_and_not_waited_for) {
        struct nodes nodes;

        begin(&nodes, 2, false);
        lacks(&nodes, 0, 3);
        lacks(&nodes, 1, 3);
        lacks(&nodes, 1, 4);
        check_plan(&nodes);
        ck_assert_uint_eq(nodes.moves.n_out_of_reach, 1);
        ck_assert_uint_eq(nodes.moves.n_chunks, 1);
        moves_fini(&nodes.moves);
}
END_TEST

START_TEST(the_next_round_takes_another_source) {
        struct nodes nodes;
        uint32_t before;

        begin(&nodes, 4, true);
        for (uint32_t node = 0; node < 4; node++)
                lacks(&nodes, node, 9);
        check_plan(&nodes);
        before = nodes.moves.moves[0].routes[0].source;
        moves_fini(&nodes.moves);
        nodes.situation.round = 1;
        check_plan(&nodes);
        ck_assert_uint_ne(nodes.moves.moves[0].routes[0].source, before);
        moves_fini(&nodes.moves);
}
END_TEST

START_TEST(whatever_is_missing_anywhere_arrives_by_eight_moves_at_most) {
        struct nodes nodes;

        srand((unsigned)_i + 1);
        begin(&nodes, 2 + (uint32_t)rand() % (N_NODES_MAX - 2), rand() % 2);
        for (uint32_t node = 0; node < nodes.situation.n_nodes; node++) {
                nodes.is_able[node] = rand() % 8 != 0;
                for (uint32_t chunk = 0; chunk < N_CHUNKS; chunk++)
                        if (rand() % (1 + _i % 5) == 0)
                                lacks(&nodes, node, chunk);
        }
        check_plan(&nodes);
        ck_assert_uint_le(nodes.moves.n_moves, MOVES_MAX);
        moves_fini(&nodes.moves);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "plan", a_new_dataset_is_fetched_by_all_nodes_in_turn_and_goes_to_all, 0 },
                { "plan", chunks_go_in_the_order_that_the_situation_says, 0 },
                { "plan", what_a_node_has_does_not_leave_the_origin_again, 0 },
                { "plan", a_latecomer_is_served_by_four_others_and_the_rest_is_left_alone, 0 },
                { "plan", a_node_that_cannot_write_is_sent_nothing_and_holds_up_nobody, 0 },
                { "plan", without_an_origin_what_nobody_has_is_counted_and_not_waited_for, 0 },
                { "plan", the_next_round_takes_another_source, 0 },
                { "any", whatever_is_missing_anywhere_arrives_by_eight_moves_at_most, 200 },
        };

        return suite_run("moves", rows, sizeof(rows) / sizeof(rows[0]));
}
