#include "daemon/pipeline/scratch.h"

#include <assert.h>

void scratch_pool_init(struct scratch_pool *pool, uint64_t n_bytes, struct fair_queue *ready) {
        *pool = (struct scratch_pool){ .ready = ready, .n_bytes = n_bytes, .n_free = n_bytes };
        STAILQ_INIT(&pool->waiting);
        pthread_mutex_init(&pool->lock, NULL);
}

void scratch_pool_fini(struct scratch_pool *pool) {
        assert(STAILQ_EMPTY(&pool->waiting) && pool->n_free == pool->n_bytes);
        pthread_mutex_destroy(&pool->lock);
}

int scratch_take(struct scratch_pool *pool, struct task *task, uint64_t n_bytes) {
        int r = 0;

        assert(n_bytes <= pool->n_bytes);

        pthread_mutex_lock(&pool->lock);
        if (STAILQ_EMPTY(&pool->waiting) && n_bytes <= pool->n_free) {
                pool->n_free -= n_bytes;
        } else {
                task->n_scratch_bytes = n_bytes;
                STAILQ_INSERT_TAIL(&pool->waiting, task, entry);
                r = SCRATCH_WAITS;
        }
        pthread_mutex_unlock(&pool->lock);
        return r;
}

void scratch_give(struct scratch_pool *pool, uint64_t n_bytes) {
        struct tasks granted = STAILQ_HEAD_INITIALIZER(granted);
        struct task *task;

        if (n_bytes == 0)
                return;
        pthread_mutex_lock(&pool->lock);
        pool->n_free += n_bytes;
        while ((task = STAILQ_FIRST(&pool->waiting)) && task->n_scratch_bytes <= pool->n_free) {
                STAILQ_REMOVE_HEAD(&pool->waiting, entry);
                pool->n_free -= task->n_scratch_bytes;
                STAILQ_INSERT_TAIL(&granted, task, entry);
        }
        pthread_mutex_unlock(&pool->lock);

        while ((task = STAILQ_FIRST(&granted))) {
                STAILQ_REMOVE_HEAD(&granted, entry);
                fair_queue_push(pool->ready, &task->batch->stream->job->share, &task->ready);
        }
}

uint64_t scratch_used(struct scratch_pool *pool) {
        uint64_t n_bytes;

        pthread_mutex_lock(&pool->lock);
        n_bytes = pool->n_bytes - pool->n_free;
        pthread_mutex_unlock(&pool->lock);
        return n_bytes;
}
