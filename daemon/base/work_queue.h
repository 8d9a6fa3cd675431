/* base/work_queue.h: work for a pool of threads that have nothing else to wait for.
 *
 * A bounded queue of pointers, first in first out. Any thread pushes; the pool's threads block in pop. The caller knows
 * how much can be under way at most and says so as the capacity, so that a push always finds room.
 *
 * One mutex, held for a few instructions; a push wakes a thread only if one sleeps. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct work_queue {
        pthread_mutex_t lock; /* a leaf: nothing else is locked below it; covers all that follows */
        void **items;         /* a circle */
        uint32_t capacity;
        uint32_t idx_first;
        uint32_t n_items;
        uint32_t n_waiting; /* threads that sleep in pop; up to here what a push or a pop writes: one cache line */

        bool is_stopped;
        pthread_cond_t filled;
};

/* `capacity` (1 or more) is the most that is ever queued. Returns 0 or -ENOMEM. */
int work_queue_init(struct work_queue *queue, uint32_t capacity);

/* Once no thread uses the queue any more. */
void work_queue_fini(struct work_queue *queue);

/* Any thread; never blocks for long; `item` is not NULL. More than the promised capacity is our own bug (asserted).
 * Allowed after stop: such an item waits for work_queue_pop_nowait(). */
void work_queue_push(struct work_queue *queue, void *item);

/* Blocks until there is an item, and returns it. NULL, even if items are left: the queue was stopped. */
void *work_queue_pop(struct work_queue *queue);

/* The next item, or NULL if there is none; also after stop: so the one who stops takes out what is left. */
void *work_queue_pop_nowait(struct work_queue *queue);

/* Sends all threads home that sleep in pop, now and later. Any thread. */
void work_queue_stop(struct work_queue *queue);
