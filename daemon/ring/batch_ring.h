/* ring/batch_ring.h: one rank's ring: two shared memories and the states of its slots.
 *
 *   free -> filling -> complete -> ready -> leased -> free
 *
 * A filling slot belongs to the workers. A complete slot waits for its turn, because batches are published in the order
 * in which their slots were taken. Ready and leased differ only for the client (and in what status shows). The states
 * are kept in the daemon's own memory: the client learns of a slot when it is published, and what it reports in return
 * (proto/layout.h, its page) is checked before it is used.
 *
 * Threads: the planner takes slots and reclaims released ones; any worker completes. ring->lock guards publishing and
 * is never held across anything slower than a few stores; only that of step_waits is taken under it. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/base_trace.h"
#include "daemon/base/budget.h"
#include "daemon/base/work/sweeper.h"
#include "daemon/ring/lent.h"
#include "daemon/ring/segment.h"
#include "proto/base/why.h"
#include "proto/layout.h"
#include "proto/meter.h"

enum {
        RING_NO_SLOT = 1
};

enum slot_state {
        SLOT_FREE,
        SLOT_FILLING,
        SLOT_COMPLETE,
        SLOT_READY, /* or leased: the client's */
};

struct slot {
        uint32_t idx;
        enum slot_state state; /* ring->lock */
        uint64_t sequence;
        uint64_t planned_ns;  /* when it was taken */
        uint64_t word_before; /* what the client's word for this slot held when it was taken */
        uint8_t *base;        /* slot_bytes of payload */
        struct dlp_slot_record *record;
        struct dlp_columns columns;
        struct dlp_place *places; /* of its ragged tensors, batch_size for each; NULL: none is ragged */
};

struct ring_options {
        struct dlp_geometry geometry;
        struct segment_options memory; /* n_bytes and name are filled in here */
        struct budget *budget;         /* pays for both memories; outlives the ring */
        struct lent_list *held;        /* takes both memories when the client has left; outlives the ring */
        char whose[LENT_WHOSE_MAX];    /* for the log: "rank 3 of job x" */
        uint64_t generation;
        uint32_t rank;            /* for events */
        struct step_waits *waits; /* is told of the waits for its batches; outlives the ring; NULL: nobody is */
};

struct ring {
        struct segment control_segment, payload_segment;
        struct dlp_control *control;
        struct dlp_client_page *page;
        struct budget *budget;
        struct lent_list *held;
        struct step_waits *waits;
        struct sweep sweep;
        uint64_t control_bytes, payload_bytes; /* charged for each */
        uint64_t made_ns;
        uint32_t rank;
        struct dlp_meter told; /* main thread: what ring_meter() said last */
        char whose[LENT_WHOSE_MAX];

        _Atomic uint64_t traced; /* its job's word (base/base_trace.h); written with the lock */
        pthread_mutex_t lock;
        uint64_t next_sequence;         /* lock; of the slot taken next */
        uint64_t next_publish;          /* lock */
        uint64_t n_released;            /* lock; batches given back since attach */
        uint64_t last_epoch, last_step; /* lock; of the batch published last */
        bool is_watched;                /* planner: the client writes to the eventfd when it releases */
        uint64_t released_at_ns;        /* lock; when the last release was noticed; at first, when the ring was made */
        uint64_t consume_ns;            /* lock; how long the client takes for a batch that is ready, smoothed */
        uint64_t making_ns; /* lock; of the batch released last: from taking its slot until it was ready; 0 at first */

        uint32_t n_slots;
        struct slot slots[];
};

/* Reserves, makes and seals the memory. Blocks while pages are touched; do not call it on the main thread. -ENOMEM with
 * the numbers if the budget or the node does not have enough, -EOVERFLOW if the sizes exceed DLP_PAYLOAD_MAX. */
int ring_new(const struct ring_options *options, struct ring **ret_ring, struct why *why);

/* Batches published so far. Any thread. */
uint64_t ring_n_published(const struct ring *ring);

/* Touches the pages that ring_new() left untouched, so that the first batch need not wait for them. Blocks. */
void ring_touch_rest(struct ring *ring, uint32_t n_threads);

/* Call it after the lent_fd of both segments has been sent to the client: closes them here, so that only the client has
 * them. */
void ring_was_sent(struct ring *ring);

/* Unmaps the memory. What nobody holds is returned to the budget; if the client still has mappings, they stay valid for
 * it and charged, see lent.h. */
void ring_free(struct ring *ring);

/* The bytes that it has reserved. */
uint64_t ring_bytes(const struct ring *ring);

/* Takes a free slot for the next batch. Returns 0; RING_NO_SLOT if none is free; -EPROTO if the client wrote an
 * impossible value into its page. Never blocks. Planner only. */
int ring_take(struct ring *ring, struct slot **ret_slot);

/* Asks the client to write to the eventfd when it releases a slot. Call ring_take() once more afterwards. Planner only.
 */
void ring_watch(struct ring *ring, bool watch);

/* The slot's record and payload are complete: publishes it, and the complete ones after it, as soon as those before it
 * are published, and wakes a client that sleeps on them. Returns true if the client asked for a packet: send one. Any
 * thread. */
bool ring_complete(struct ring *ring, struct slot *slot);

/* Tells the client how many samples its stream has. Returns whether a packet must wake it. Any thread. */
bool ring_set_length(struct ring *ring, uint64_t n_samples);

/* For people: slots in each state, as far as the client reports what it holds, and released batches. Any thread. */
struct ring_counts {
        uint32_t n_filling, n_ready, n_leased;
        uint64_t n_released;
        uint64_t epoch, step; /* of the batch that it takes next; if none is ready, of the one that it took last */
};
void ring_count(struct ring *ring, struct ring_counts *ret_counts);

/* While its job is traced, each slot that comes back is told as events: when it was filled, ready, held; and when the
 * trainer waited for it. `word` is the job's. Main thread, likewise the end, which tells what is under way then. */
void ring_trace(struct ring *ring, uint64_t word);
void ring_trace_end(struct ring *ring);

/* For people: what the client reports about its waiting, as far as it is possible; sums never decrease. Main thread. */
void ring_meter(struct ring *ring, uint64_t now_ns, struct dlp_meter *ret_meter);
