/* pipeline/memory/scratch.h: memory for pictures that need more than a worker has of its own.
 *
 * A fixed part of memory_limit, reserved when the daemon starts. The memory that a sample needs is known before it is
 * decoded. If its worker's own scratch is enough, as for the usual photo, this pool is not used. Otherwise all of it is
 * borrowed from here, and returned when the sample is done. If there is not enough, the sample waits, and its worker
 * takes other samples. So no sample fails because others use the memory, and none waits while it holds some. A picture
 * that needs more than the whole pool is a damaged sample, whatever else runs.
 *
 * Which waiting sample is next: of the user who has had the least, the household that has had the least, and of that
 * the job, in bytes times seconds by weight; within a job, the one that came first. It waits until there is enough for
 * it, and nobody overtakes it. So small pictures do not keep a large one waiting for ever, and many large ones of one
 * user delay another user's picture by at most one of them.
 *
 * Threads: any worker. One lock, a leaf, taken for large pictures only. */
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "daemon/base/threads/fair_queue.h"
#include "daemon/pipeline/task.h"

#define SCRATCH_WAITS 1

struct scratch_pool {
        struct fair_queue *ready; /* where samples continue */
        uint64_t n_bytes;         /* of all */
        pthread_mutex_t lock;
        uint64_t n_free;      /* lock */
        uint64_t now;         /* lock; `had` of the user who was served last: new users begin there */
        struct tasks waiting; /* lock; in the order in which they came */
};

void scratch_pool_init(struct scratch_pool *pool, uint64_t n_bytes, struct fair_queue *ready);

/* No sample may be waiting. */
void scratch_pool_fini(struct scratch_pool *pool);

/* Borrows `n_bytes`, at most the whole pool, for the task's sample, which has none, and records it in
 * task->n_scratch_bytes. Returns 0; or SCRATCH_WAITS: then the task belongs to the pool, which sends it back to the
 * workers when the memory is available. */
int scratch_take(struct scratch_pool *pool, struct task *task, uint64_t n_bytes, uint64_t now_ns);

/* The same, but the task never waits. False: the memory is not available, or others wait for it. */
bool scratch_try(struct scratch_pool *pool, struct task *task, uint64_t n_bytes, uint64_t now_ns);

/* Returns what the task has borrowed, if anything. Its batch must still be alive, because the job is charged. */
void scratch_give(struct scratch_pool *pool, struct task *task, uint64_t now_ns);
