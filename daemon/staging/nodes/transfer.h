/* staging/nodes/transfer.h: brings every chunk of a plan to every node that lacks it.
 *
 * All nodes call it together. Window by window (bounded memory, however large the dataset) the nodes tell each other
 * what they lack and compute the same moves (staging/nodes/nodes_moves.h); a move is carried out as one pipeline on
 * each of its members:
 *
 *   origin -> fetcher (12 chunks ahead) \
 *                                        > spread to the members, 8 under way -> writers -> disk
 *   own disk -> one thread              /
 *
 * A chunk that its source cannot bring is told to all as an empty message with the reason, so nobody waits for it. What
 * went wrong in one round (a bad file, a fetch that failed) is tried in the next from another node and mirror; then it
 * stays missing and is told. What is good stays.
 *
 * Memory: TRANSFER_PARCELS chunks. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/fetch/fetch_http.h"
#include "daemon/staging/nodes/cluster.h"
#include "daemon/store/plan/chunks.h"
#include "daemon/store/plan/plan.h"
#include "daemon/store/tree/tree.h"
#include "proto/base/why.h"

#define TRANSFER_AHEAD   12u /* chunks that a source brings before their turn */
#define TRANSFER_ALONE   14u /* the same of a node alone: what a kill can cost stays below 64 MiB */
#define TRANSFER_PARCELS 24u /* chunks in memory, at most: 96 MiB */
#define TRANSFER_SPREADS 8u  /* chunks on their way between nodes: measured, fewer leave gaps, more gain nothing */
#define TRANSFER_ROUNDS  3u  /* tries of a window, while there is hope */
#define TRANSFER_WRITERS 4u  /* threads that write and hash, at most; large files that come in turns, for them */

/* Sums of this node; written by the transfer, read by anybody. */
struct transfer_counts {
        _Atomic uint64_t n_bytes_done;   /* written here */
        _Atomic uint64_t n_bytes_origin; /* bodies from the origin */
        _Atomic uint64_t n_files_done;
        _Atomic uint64_t n_retries;
        _Atomic uint64_t n_errors; /* chunks that did not come, files that were bad: this round's or an earlier one's */
};

struct transfer_options {
        struct cluster *cluster;
        const struct plan *plan;
        const struct chunks *chunks;
        struct tree *tree; /* NULL: this node takes nothing, as another one writes for it (a shared file system) */
        struct http *http; /* NULL: nothing can be had from an origin, only from nodes that have it */
        uint32_t n_connections;
        uint32_t silence_s; /* an origin that has sent nothing for so long, while it was asked, is away */
        const _Atomic bool *cancel;
        struct transfer_counts *counts;

        /* Called about every 50 ms on the calling thread. A negative errno ends the transfer at once: it is lost. */
        int (*look)(void *userdata, struct why *why);
        /* A chunk is on this node's disk; on a writer's thread, several at the same time. May be NULL. */
        void (*written)(void *written_userdata, uint64_t idx_chunk);
        void *written_userdata;
        /* Something went wrong and was, or will be, tried again; any thread. May be NULL. */
        void (*say)(void *userdata, const char *text);
        void *userdata;
};

#define TRANSFER_LOST 1

/* Blocks until no node lacks anything, or no further round would change it. Returns 0 if this node lacks nothing
 * (others may: the caller asks them); -EIO, -ENOSPC, -EBADMSG, ... with the first thing that went wrong here or at a
 * source; -ECANCELED; TRANSFER_LOST with `why`: the nodes can no longer reach each other, and nothing is left but
 * cluster_abort(). */
int transfer_run(const struct transfer_options *options, struct why *why);
