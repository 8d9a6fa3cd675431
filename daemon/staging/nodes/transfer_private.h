/* staging/nodes/transfer_private.h: what the parts of a transfer share: its parcels, and who carries them.
 *
 *   transfer.c          windows and rounds: what is missing, until nothing is
 *   transfer_flow.c     one move on this node: bring, spread, hand to the writer; the calling thread
 *   transfer_carriers.c the threads beside it: the writers, the reader of our own disk, the fetcher's answers */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/threads/queue.h"
#include "daemon/fetch/fetch.h"
#include "daemon/staging/nodes/nodes_moves.h"
#include "daemon/staging/nodes/transfer.h"

enum parcel_status {
        PARCEL_WHOLE,
        PARCEL_FAILED, /* the chunk does not come; `text` says why */
        PARCEL_STOP,   /* nor does anything after those that are already under way: the source cannot go on */
};

/* Goes ahead of a chunk's bytes in each message. */
struct parcel_head {
        uint32_t status;
        uint32_t is_hopeful; /* FAILED: another node or a later try may bring it */
        uint64_t chunk;
        char text[DLP_TEXT_MAX];
};

/* A chunk on its way. The message is the head and the bytes right after it; the bytes begin at a page. */
struct parcel {
        TAILQ_ENTRY(parcel) entry;   /* in its pool, with the flow, or with the writer */
        TAILQ_ENTRY(parcel) to_read; /* with the reader, while it is with the flow */
        uint8_t *memory;             /* a page, at whose end the head lies, and CHUNK_BYTES */
        struct parcel_head *head;
        uint8_t *bytes;
        struct chunk place;
        uint64_t idx_route;
        bool is_source;  /* of the pool for what this node brings */
        bool is_fetched; /* from the origin; else from our own disk */
        bool is_ready;   /* brought, or known not to come; transfer->lock */

        struct fetch_job job;
        struct fetch_piece *pieces; /* CHUNK_FILES_MAX, for sources */
        struct cluster_spread *spread;
};

TAILQ_HEAD(parcels, parcel);

struct transfer {
        const struct transfer_options *options;
        struct fetcher *fetcher; /* NULL without an origin */
        uint32_t me;
        uint32_t round;
        uint64_t n_origin_before, n_retries_before; /* of an earlier transfer, in the same counts */
        uint64_t n_heard_bytes, heard_ns; /* of the origin, and when it last sent something or was not asked */

        pthread_mutex_t lock;   /* covers what follows; only fetcher.lock is taken under it */
        pthread_cond_t changed; /* a parcel became ready, was written, or came free */
        pthread_cond_t work;    /* for the writers and the reader */
        struct parcels free_source, free_receive;
        struct parcels to_read, to_write;
        uint32_t n_writing;    /* queued for the writers, or in their hands */
        bool is_over;          /* threads go home */
        bool is_disk_dead;     /* writing failed: nothing more is written here */
        bool is_stopping;      /* this node cannot go on: cancelled, or the origin does not answer */
        uint32_t n_unanswered; /* fetches in a row that got no answer */
        uint64_t n_failed;     /* in all of this transfer */
        uint64_t n_hopeful;    /* failures of this round that another round may mend */

        bool has_failed;
        int first_error;
        struct why first_why;

        struct parcel parcels[TRANSFER_PARCELS];
        pthread_t writers[TRANSFER_WRITERS], reader;
};

#define TRANSFER_UNANSWERED_MAX 3u    /* chunks in a row without an answer from the origin: it is away */
#define TRANSFER_FAILURES_MAX   1000u /* a wrong prefix or key fails each file: enough is enough */

static inline uint32_t parcel_message_bytes(uint32_t n_bytes) {
        return (uint32_t)sizeof(struct parcel_head) + n_bytes;
}

/* The threads, and memory for all parcels. `n_source` of them are for what this node brings. */
int transfer_start(struct transfer *transfer, uint32_t n_source, struct why *why);
void transfer_stop(struct transfer *transfer);

/* Takes over what the fetcher counts. `is_asked`: there are chunks that the origin has not sent yet; if nothing has
 * come of them for too long, this node stops. With the lock held. */
void transfer_count(struct transfer *transfer, bool is_asked);

/* Notes that something went wrong, on another node: the first is what the transfer ends with. With the lock held. */
void transfer_heard(struct transfer *transfer, int error, bool is_hopeful, const char *text);

/* The same on this node: it is counted and said. */
void transfer_failed(struct transfer *transfer, int error, bool is_hopeful, const char *text);

/* Begins to bring a chunk: from the origin or from our own disk. It becomes ready later. With the lock held. */
void parcel_bring(struct transfer *transfer, struct parcel *parcel, const struct route *route);

/* Hands a whole parcel to the writer, or back to its pool. With the lock held. */
void parcel_deliver(struct transfer *transfer, struct parcel *parcel);

/* Carries out one move; `group` may be that of a single node. Returns 0, or an errno if the cluster is beyond help. */
int flow_run(struct transfer *transfer, const struct move *move, struct cluster_group *group, struct why *why);
