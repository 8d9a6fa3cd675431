#include "daemon/staging/nodes/transfer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/staging/nodes/transfer_private.h"
#include "proto/base/cleanup.h"

#define WINDOW_CHUNKS 65536u /* 256 GiB: 8 KiB of bits a node, 8 MiB with a thousand nodes */
#define WINDOW_BYTES  (WINDOW_CHUNKS / 8)

/* What each node says of itself before a round. */
struct standing {
        uint8_t is_able;     /* can write */
        uint8_t is_stopping; /* cannot go on */
        uint8_t is_hopeful;  /* something went wrong in the last round that another may mend */
        uint8_t reserved[5];
        uint8_t missing[WINDOW_BYTES];
};

struct rounds {
        struct transfer *transfer;
        struct standing *standings; /* of all nodes */
        uint8_t *is_able;
        uint32_t *order;   /* in which the chunks of the window come */
        uint64_t first, n; /* chunks of the window */
        bool is_hopeful, is_stopping;
};

static void take_standing(const struct rounds *rounds, struct standing *ret_standing) {
        struct transfer *transfer = rounds->transfer;
        const struct tree *tree = transfer->options->tree;

        memset(ret_standing, 0, sizeof(*ret_standing));
        pthread_mutex_lock(&transfer->lock);
        ret_standing->is_able = tree && !transfer->is_disk_dead;
        ret_standing->is_stopping = transfer->is_stopping || (transfer->options->cancel && *transfer->options->cancel);
        ret_standing->is_hopeful = transfer->n_hopeful > 0;
        transfer->n_hopeful = 0;
        pthread_mutex_unlock(&transfer->lock);
        if (tree)
                memcpy(ret_standing->missing, tree_missing(tree) + rounds->first / 8, (rounds->n + 7) / 8);
        else
                memset(ret_standing->missing, 0xff, sizeof(ret_standing->missing));
}

static int transfer_gather(struct rounds *rounds, struct why *why) {
        struct cluster *cluster = rounds->transfer->options->cluster;
        struct standing mine;
        int r;

        take_standing(rounds, &mine);
        r = cluster_gather(cluster, &mine, sizeof(mine), rounds->standings, why);
        if (r < 0)
                return r;
        rounds->is_hopeful = rounds->is_stopping = false;
        for (uint32_t node = 0; node < cluster_n_nodes(cluster); node++) {
                rounds->is_able[node] = rounds->standings[node].is_able;
                rounds->is_stopping |= rounds->standings[node].is_stopping;
                rounds->is_hopeful |= rounds->standings[node].is_hopeful;
        }
        return 0;
}

/* Large files come in turns, chunk by chunk, a few at a time: the SHA-256 of a file is one stream, so that is what
 * several CPUs can hash side by side. An archive is unpacked while it comes: those come one after the other. */
static void transfer_take_turns(struct rounds *rounds) {
        const struct transfer_options *options = rounds->transfer->options;
        uint32_t n_turns = plan_has_archives(options->plan) ? 1 : TRANSFER_WRITERS;
        struct {
                uint64_t next, end; /* chunks of a file */
        } turns[TRANSFER_WRITERS] = { 0 };
        uint64_t next = 0;

        for (uint64_t n = 0, i = 0; n < rounds->n; i = (i + 1) % n_turns) {
                if (turns[i].next == turns[i].end && next < rounds->n) {
                        struct chunk chunk = chunks_get(options->chunks, rounds->first + next);
                        uint64_t first, n_chunks = chunks_of_file(options->chunks, chunk.first_file, &first);
                        uint64_t end = first + n_chunks - rounds->first;

                        turns[i].next = next;
                        turns[i].end = next = end < rounds->n ? end : rounds->n;
                }
                if (turns[i].next < turns[i].end)
                        rounds->order[n++] = (uint32_t)turns[i].next++;
        }
}

static int plan_round(const struct rounds *rounds, struct moves *ret_moves) {
        const struct transfer_options *options = rounds->transfer->options;
        struct moves_situation situation = {
                .n_nodes = cluster_n_nodes(options->cluster),
                .first_chunk = rounds->first,
                .n_chunks = rounds->n,
                .order = rounds->order,
                .missing = rounds->standings[0].missing,
                .n_bytes = sizeof(struct standing),
                .is_able = rounds->is_able,
                .has_origin = options->http != NULL,
                .round = rounds->transfer->round,
        };

        return moves_plan(&situation, ret_moves);
}

static int carry_out(struct rounds *rounds, const struct moves *moves, struct why *why) {
        struct transfer *transfer = rounds->transfer;
        int r = 0;

        for (uint32_t i = 0; i < moves->n_moves && r == 0; i++) {
                struct cluster_group *group = NULL;

                r = cluster_group_new(transfer->options->cluster, moves->moves[i].members, &group, why);
                if (r == 0 && group)
                        r = flow_run(transfer, &moves->moves[i], group, why);
                cluster_group_free(group);
        }
        if (r == 0 && transfer->options->tree && !transfer->is_disk_dead) {
                struct why sync_why;
                int sync_r = tree_sync(transfer->options->tree, &sync_why);

                if (sync_r < 0) {
                        pthread_mutex_lock(&transfer->lock);
                        transfer->is_disk_dead = true;
                        transfer_failed(transfer, sync_r, false, sync_why.text);
                        pthread_mutex_unlock(&transfer->lock);
                }
        }
        return r;
}

/* Rounds until the window has all, or there is no hope. */
static int run_window(struct rounds *rounds, struct why *why) {
        for (uint32_t round = 0; round < TRANSFER_ROUNDS; round++) {
                struct moves moves;
                uint64_t n_chunks;
                int r = transfer_gather(rounds, why);

                if (r < 0 || rounds->is_stopping || (round > 0 && !rounds->is_hopeful))
                        return r;
                rounds->transfer->round = round;
                r = plan_round(rounds, &moves);
                if (r < 0)
                        return why_errno(why, r, "the plan of a round");
                n_chunks = moves.n_chunks;
                if (moves.n_out_of_reach > 0) {
                        pthread_mutex_lock(&rounds->transfer->lock);
                        transfer_failed(rounds->transfer, -ENODATA, false,
                                        "no node has some of the chunks, and there is no origin to fetch them from");
                        pthread_mutex_unlock(&rounds->transfer->lock);
                }
                r = carry_out(rounds, &moves, why);
                moves_fini(&moves);
                if (r < 0 || n_chunks == 0)
                        return r;
        }
        return 0;
}

static int run_windows(struct transfer *transfer, struct why *why) {
        uint32_t n_nodes = cluster_n_nodes(transfer->options->cluster);
        _cleanup_(freep) struct standing *standings = calloc(n_nodes, sizeof(*standings));
        _cleanup_(freep) uint8_t *is_able = calloc(n_nodes, 1);
        uint64_t n_chunks = chunks_count(transfer->options->chunks);
        _cleanup_(freep)
                uint32_t *order = calloc(n_chunks < WINDOW_CHUNKS ? n_chunks + 1 : WINDOW_CHUNKS, sizeof(*order));
        struct rounds rounds = { .transfer = transfer, .standings = standings, .is_able = is_able, .order = order };
        int r = 0;

        if (!standings || !is_able || !order)
                return why_errno(why, -ENOMEM, "what %u nodes lack", n_nodes);
        for (; rounds.first < n_chunks && r == 0 && !rounds.is_stopping; rounds.first += WINDOW_CHUNKS) {
                rounds.n = n_chunks - rounds.first < WINDOW_CHUNKS ? n_chunks - rounds.first : WINDOW_CHUNKS;
                transfer_take_turns(&rounds);
                r = run_window(&rounds, why);
        }
        return r;
}

/* How it stands with this node in the end. */
static int verdict(struct transfer *transfer, struct why *why) {
        const struct transfer_options *options = transfer->options;

        if (options->cancel && *options->cancel)
                return why_set(why, -ECANCELED, "cancelled; what has been written is kept for the next run");
        if (!options->tree || tree_is_complete(options->tree))
                return 0;
        if (transfer->has_failed)
                return why_set(why, transfer->first_error, "%s", transfer->first_why.text);
        return why_set(why, -EIO, "another node could not go on; what has been written is kept for the next run");
}

int transfer_run(const struct transfer_options *options, struct why *why) {
        _cleanup_(freep) struct transfer *transfer = calloc(1, sizeof(*transfer));
        bool is_alone = cluster_n_nodes(options->cluster) == 1;
        int r;

        if (!transfer)
                return why_errno(why, -ENOMEM, "a transfer");
        transfer->options = options;
        r = transfer_start(transfer, is_alone ? TRANSFER_ALONE : TRANSFER_AHEAD, why);
        if (r < 0)
                return r;
        if (run_windows(transfer, why) < 0) {
                /* The process is about to be ended. Threads may hang in a dead disk, and MPI holds on to our memory:
                 * nothing is waited for, or taken from under anybody. */
                transfer = NULL;
                return TRANSFER_LOST;
        }
        r = verdict(transfer, why);
        transfer_stop(transfer);
        return r;
}
