/* pipeline/feed.h: what one rank is being served: its ring, its terms, and how far its batches are planned.
 *
 * A feed is made on a background thread (touching its memory takes a while) and handed to the planner. From then on
 * it belongs to the planner: only the planner moves the cursor, and it frees the feed when the rank has left and the
 * last of its samples has come back from the workers. Workers see a feed through their tasks. The main thread keeps
 * the pointer until it calls pipeline_remove(), and may seek and read counters in between. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/threads/queue.h"
#include "daemon/codec/programs/programs.h"
#include "daemon/collate/collating.h"
#include "daemon/data/orders/order_table.h"
#include "daemon/pipeline/batch.h"
#include "daemon/pipeline/catalog/catalog.h"
#include "daemon/pipeline/jobs/job.h"
#include "daemon/pipeline/memory/large_buffers.h"
#include "daemon/pipeline/replay/replay_state.h"
#include "daemon/ring/batch_ring.h"

/* Requests of the main thread to the planner; bits, so that the same request twice counts once. */
enum feed_command {
        FEED_ADD = 1,
        FEED_REMOVE = 2,
        FEED_SEEK = 4,
        FEED_DRAIN = 8,
        FEED_REPLAY = 16,
        FEED_REPLAY_END = 32,
};

struct desk;
struct task;
STAILQ_HEAD(tasks, task);

/* What is counted for a rank (base/number_rows.h). */
struct rank_counters {
        RANK_COUNTERS(NUMBER_COUNTED)
};

/* How far a look-ahead has come (pipeline/planner/lookahead.h): the sample that is next. */
struct feed_ahead {
        uint64_t epoch, step;
        uint32_t idx_sample;
};

struct feed {
        TAILQ_ENTRY(feed) entry;     /* the planner's list */
        TAILQ_ENTRY(feed) commanded; /* planner->lock: has a request */
        uint32_t commands;           /* planner->lock; enum feed_command */
        struct cursor sought;        /* planner->lock */

        struct job *job;
        struct catalog_dataset *dataset;
        struct programs *programs;
        struct layout layout; /* of its slots */
        struct ring *ring;
        uint32_t rank;
        bool has_rows;               /* its samples can be copied from mapped arrays (pipeline/pipeline_rows.h) */
        bool may_hang;               /* its files are on a file system where a read may never return */
        uint64_t n_samples;          /* of the dataset; DLP_UNKNOWN of one that is a stream */
        uint32_t batch_samples;      /* that a batch has at most */
        uint64_t large_max;          /* bytes of a file that can be read */
        struct budget *budget;       /* memory_limit */
        struct dlp_epoch_plan whole; /* of an epoch from its beginning */
        int wake_socket;             /* any worker sends one byte here */
        int release_fd;              /* eventfd: the client writes, the planner waits for edges and never reads */

        _Atomic uint64_t n_seeks;  /* so far, by the main thread; batches from before the last one are dropped */
        _Atomic uint64_t ahead_ns; /* how far its look-ahead has come, or NUMBER_UNKNOWN */
        _Atomic bool has_left;     /* the rank: its samples are dropped */
        _Atomic bool is_touched;   /* all pages of the ring exist; until then another thread works on them */
        _Atomic bool broken;       /* the client wrote an impossible value: the main thread closes its session */
        struct rank_counters counters;
        _Atomic uint32_t n_to_read; /* samples that are read although they could be copied: some were not in memory */

        /* The planner's own, written for each sample. */
        _Alignas(64) uint64_t planned_seeks;
        uint64_t epoch, step;       /* of the batch that is planned next, or being planned */
        struct dlp_epoch_plan plan; /* of `epoch`, from where it was resumed */
        uint64_t end_epoch;         /* plan no epoch from here on */
        uint64_t length;            /* samples of an epoch: n_samples, or, once a stream has ended, what it had */
        struct batch *batch;        /* being planned, or NULL */
        uint32_t idx_sample;        /* next one of it */
        struct order_table *order;  /* of `epoch`; NULL after the stream has ended */
        uint64_t order_epoch;
        struct order_table *next_order; /* of the epoch after it, made in the background */
        struct foresight *foresight;    /* of the whole epoch (pipeline/planner/foresight.h); NULL: it is of no use */
        struct feed_ahead ahead;        /* what of its samples is fetched before they are planned, */
        uint64_t horizon_ns;            /* and how far; 0: no more in this turn */
        uint32_t n_tasks;               /* under way */
        struct budget large_budget;     /* reserved for buffers of large files; its limit is what was reserved */
        struct large_buffers large;
        struct tasks large_waiting;      /* in line for one */
        TAILQ_HEAD(, trouble) parked;    /* samples that wait for their dataset (pipeline/failure/park.h) */
        uint64_t n_outages;              /* that had ended when its files were opened last */
        enum dlp_wait_reason stopped_by; /* nothing is planned for it: SLOT, until its eventfd says that there is one;
                                            ORDER and SAMPLES, in this turn; OUTAGE, as long as that lasts */
        struct dlp_wait noticed;         /* of its reads and functions, by the last look (pipeline/planner/waits.h) */
        struct dlp_wait waits;           /* why its rank waits; */
        uint64_t told_ns;                /* when its client was last told, 0: it was not */
        bool past_cache;                 /* packed samples are read past the page cache */
        bool is_given_up;                /* its samples were parked for too long */
        bool is_removed;                 /* removed: free it when its last task is back */
        bool drains;                     /* begins no further batch */
        bool is_ended;                   /* nothing more to plan */

        struct replay replay;
        struct isolated_feed *isolated; /* what cells get of it; NULL: its fields are decoded by workers */
        struct desk *desk;              /* for functions of the trainer's; NULL: it has none */

        struct batch batches[DLP_SLOTS_MAX]; /* by slot */
};

TAILQ_HEAD(feeds, feed);

/* The spec of the order of one of its epochs. */
struct order_spec feed_order_spec(const struct feed *feed, uint64_t epoch);

/* Planner: continues there. If nothing is left of that epoch, continues with the next one, as at an epoch's end. */
void feed_go_to(struct feed *feed, const struct cursor *cursor);
void feed_next_epoch(struct feed *feed);

/* Planner: the dataset, a stream, has ended with n_samples. What is planned is still right; the client is told. */
void feed_learn_length(struct feed *feed, uint64_t n_samples);

/* Planner: how many units the epoch has whose order a sampler has made. -EINVAL with `why` if it is resumed after their
 * end. */
int feed_learn_units(struct feed *feed, uint64_t n_units, struct why *why);

/* Planner: plans nothing more until a seek. Frees the memory of its orders; batches under way hold their own reference.
 */
void feed_end(struct feed *feed);

/* Wakes the client. Any thread; never blocks: if the socket buffer is full, a wake-up is already on its way. */
void feed_wake(struct feed *feed);
