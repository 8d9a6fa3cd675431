/* pipeline/scratch.h: memory for pictures that need more than a worker has of its own.
 *
 * A fixed part of memory_limit, reserved when the daemon starts. What a sample needs is known before it is decoded.
 * Where its worker's own scratch is enough, as for the usual photo, this pool is not asked. Otherwise the whole need
 * comes from here, and is given back with the sample. If there is not enough, the sample waits in line, and its worker
 * goes on with others: so no sample fails for what others take, a large one is not overtaken for ever by small ones,
 * and nobody who has something waits for more. A picture that needs more than the whole pool is damaged, whatever else
 * runs.
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
        struct tasks waiting; /* lock; in line */
};

void scratch_pool_init(struct scratch_pool *pool, uint64_t n_bytes, struct fair_queue *ready);

/* Nobody may wait. */
void scratch_pool_fini(struct scratch_pool *pool);

/* Takes `n_bytes`, at most all there is, for the task's sample. Returns 0; or SCRATCH_WAITS: then the task is the
 * pool's, which sends it back to the workers with task->n_scratch_bytes granted. */
int scratch_take(struct scratch_pool *pool, struct task *task, uint64_t n_bytes);

/* Gives back what was taken or granted. 0 is fine. */
void scratch_give(struct scratch_pool *pool, uint64_t n_bytes);

/* What is taken now. */
uint64_t scratch_used(struct scratch_pool *pool);
