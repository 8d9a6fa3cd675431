/* base/fair_queue.h: work for a pool of threads, shared fairly between several who want it.
 *
 * Each share has a queue of its own, first in first out; a thread takes from the share that has had the least of the
 * threads' time, divided by its weight. What counts is the time that its items really took, not their number, so one
 * whose items take long gets fewer of them done, and the others notice nothing. A share without items is passed over:
 * no thread idles while anything waits.
 *
 * An item is charged what its share's items usually take when it is taken, and the difference when it is done: so
 * many threads that take at the same moment spread over the shares. A share that comes back after a pause begins
 * CREDIT behind the others at most: it cannot save up time, but one whose queue is empty for a moment loses nothing.
 *
 * As base/work_queue.h otherwise: one mutex, held for a few instructions and one look at each share that has items; a
 * push wakes a thread only if one sleeps. Nothing is allocated. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/queue.h"

#define FAIR_CREDIT_NS  500000000ll /* of one thread's time, at weight 1 */
#define FAIR_WEIGHT_MAX 1000u

struct fair_share;

/* Part of what is queued. The pusher's until pushed, the popper's once popped. */
struct fair_item {
        STAILQ_ENTRY(fair_item) entry;
        struct fair_share *share;
        int64_t charged_ns; /* when it was taken */
};

/* One who wants a share; part of whatever that is. Outlives its items. */
struct fair_share {
        STAILQ_HEAD(, fair_item) items; /* the queue's lock, as all up to `has_begun` */
        TAILQ_ENTRY(fair_share) entry;  /* in the queue's list while it has items */
        int64_t had_ns;                 /* threads' time that it was charged, divided by its weight */
        bool has_begun;                 /* had an item once */

        _Atomic uint32_t weight;   /* 1 to FAIR_WEIGHT_MAX; may be changed at any time */
        _Atomic int64_t usual_ns;  /* what an item takes, smoothed */
        _Atomic int64_t due_ns;    /* what done items took beyond what they were charged; not in had_ns yet */
        _Atomic uint64_t taken_ns; /* what done items took, all together: for people */
};

struct fair_queue {
        pthread_mutex_t lock;            /* a leaf: nothing else is locked below it; covers all that follows */
        uint32_t n_waiting;              /* threads that sleep in pop */
        uint32_t n_dismissed;            /* threads that are to leave, and have not yet */
        TAILQ_HEAD(, fair_share) shares; /* those that have items; up to here the line that a push writes */

        int64_t now_ns; /* had_ns of the share that was served last: newcomers begin there */
        bool is_stopped;
        pthread_cond_t filled;
};

void fair_queue_init(struct fair_queue *queue);

/* Once no thread uses the queue any more. */
void fair_queue_fini(struct fair_queue *queue);

/* Takes a zeroed share. */
void fair_share_init(struct fair_share *share, uint32_t weight);

/* Any thread; never blocks for long. Allowed after stop: such an item waits for fair_queue_pop_nowait(). */
void fair_queue_push(struct fair_queue *queue, struct fair_share *share, struct fair_item *item);

/* Blocks until there is an item, and returns it. NULL, even if items are left: this thread is to go home, because the
 * queue was stopped or it is one too many. */
struct fair_item *fair_queue_pop(struct fair_queue *queue);

/* The next item, or NULL if there is none; also after stop. */
struct fair_item *fair_queue_pop_nowait(struct fair_queue *queue);

/* The thread has spent so much time on an item that it popped. Before it lets go of what keeps the share alive; any
 * thread; no lock. */
void fair_item_done(struct fair_item *item, uint64_t taken_ns);

/* Takes back what it was charged when it was taken: it goes into the queue again undone, or is charged when it is done.
 * Any thread; no lock. */
void fair_item_refund(struct fair_item *item);

/* Sends `n` threads home: those that come to pop next, or sleep there. The others take what is queued. Any thread. */
void fair_queue_dismiss(struct fair_queue *queue, uint32_t n);

/* Takes back up to `n` dismissals that nobody has followed yet. Returns how many. Any thread. */
uint32_t fair_queue_retain(struct fair_queue *queue, uint32_t n);

/* Sends all threads home that sleep in pop, now and later. Any thread. */
void fair_queue_stop(struct fair_queue *queue);
