/* pipeline/memory/scratch.h: memory for pictures that need more than a worker has of its own.
 *
 * A fixed part of memory_limit, reserved when the daemon starts. What a sample needs is known before it is decoded.
 * Where its worker's own scratch is enough, as for the usual photo, this pool is not asked. Otherwise the whole need
 * comes from here, and is given back with the sample. If there is not enough, the sample waits, and its worker goes on
 * with others: so no sample fails for what others take, and nobody who has something waits for more. A picture that
 * needs more than the whole pool is damaged, whatever else runs.
 *
 * Whose turn it is among those that wait: the user who has had the least, and of that user's jobs the one that has had
 * the least, in bytes times seconds by weight; within a job, who came first. Whoever's turn it is waits until there is
 * enough for it, and nobody overtakes it: so small ones do not keep a large one waiting for ever, and many large ones
 * of one user do not keep another user's waiting longer than for one of them.
 *
 * Threads: any worker. One lock, a leaf, taken for large pictures only. */
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "daemon/base/fair_queue.h"
#include "daemon/pipeline/task.h"

#define SCRATCH_WAITS 1

struct scratch_pool {
        struct fair_queue *ready; /* where samples go on */
        uint64_t n_bytes;         /* of all */
        pthread_mutex_t lock;
        uint64_t n_free;      /* lock */
        uint64_t now;         /* lock; had by the user who was served last: newcomers begin there */
        struct tasks waiting; /* lock; in the order in which they came */
};

void scratch_pool_init(struct scratch_pool *pool, uint64_t n_bytes, struct fair_queue *ready);

/* Nobody may wait. */
void scratch_pool_fini(struct scratch_pool *pool);

/* Takes `n_bytes`, at most all there is, for the task's sample, which has none; task->n_scratch_bytes says so. Returns
 * 0; or SCRATCH_WAITS: then the task is the pool's, which sends it back to the workers once it has them. */
int scratch_take(struct scratch_pool *pool, struct task *task, uint64_t n_bytes, uint64_t now_ns);

/* Gives back what the task has; fine if it has none. Its batch must still be alive: the job is charged. */
void scratch_give(struct scratch_pool *pool, struct task *task, uint64_t now_ns);
