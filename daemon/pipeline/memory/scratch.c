#include "daemon/pipeline/memory/scratch.h"

#include <assert.h>

/* Accounts count bytes times time, in units of 4 KiB for a microsecond: a gigabyte may be held for a year. */
#define UNIT_BYTES 4096
#define UNIT_NS    1024

void scratch_pool_init(struct scratch_pool *pool, uint64_t n_bytes, struct fair_queue *ready) {
        *pool = (struct scratch_pool){ .ready = ready, .n_bytes = n_bytes, .n_free = n_bytes };
        STAILQ_INIT(&pool->waiting);
        pthread_mutex_init(&pool->lock, NULL);
}

void scratch_pool_fini(struct scratch_pool *pool) {
        assert(STAILQ_EMPTY(&pool->waiting) && pool->n_free == pool->n_bytes);
        pthread_mutex_destroy(&pool->lock);
}

static struct job *job_of(const struct task *task) {
        return task->batch->stream->job;
}

/* ---- called with the lock held ------------------------------------------------------------------------------- */

/* An account that was idle starts at the present: idle time does not count as savings. */
static void begin_locked(struct scratch_account *account, uint64_t now) {
        if (account->n_active++ == 0 && account->had < now)
                account->had = now;
}

static void charge_locked(struct scratch_account *account, uint64_t had) {
        account->had += had;
        account->n_active--;
}

static bool is_before(const struct job *a, const struct job *b) {
        if (a->user != b->user && a->user->scratch.had != b->user->scratch.had)
                return a->user->scratch.had < b->user->scratch.had;
        return a->user == b->user && a->scratch.had < b->scratch.had;
}

/* A linear search is enough: there are at most a few hundred tasks, and it runs once for each large picture. */
static struct task *next_locked(struct scratch_pool *pool) {
        struct task *task, *next = NULL;

        STAILQ_FOREACH(task, &pool->waiting, entry)
        if (!next || is_before(job_of(task), job_of(next)))
                next = task;
        return next;
}

static void grant_locked(struct scratch_pool *pool, struct task *task, uint64_t now_ns) {
        struct job *job = job_of(task);

        pool->n_free -= task->n_scratch_bytes;
        task->scratch_ns = now_ns;
        if (pool->now < job->user->scratch.had)
                pool->now = job->user->scratch.had;
        if (job->user->scratch.now < job->scratch.had)
                job->user->scratch.now = job->scratch.had;
}

/* ---- public functions ---------------------------------------------------------------------------------------- */

/* Not past those that wait: otherwise small pictures would keep a large one waiting for ever. */
static bool is_free_locked(const struct scratch_pool *pool, uint64_t n_bytes) {
        return STAILQ_EMPTY(&pool->waiting) && n_bytes <= pool->n_free;
}

static void ask_locked(struct scratch_pool *pool, struct task *task, uint64_t n_bytes) {
        struct job *job = job_of(task);

        task->n_scratch_bytes = n_bytes;
        begin_locked(&job->user->scratch, pool->now);
        begin_locked(&job->scratch, job->user->scratch.now);
}

int scratch_take(struct scratch_pool *pool, struct task *task, uint64_t n_bytes, uint64_t now_ns) {
        bool is_free;
        int r = 0;

        assert(n_bytes <= pool->n_bytes && task->n_scratch_bytes == 0);

        pthread_mutex_lock(&pool->lock);
        is_free = is_free_locked(pool, n_bytes);
        ask_locked(pool, task, n_bytes);
        if (is_free) {
                grant_locked(pool, task, now_ns);
        } else {
                STAILQ_INSERT_TAIL(&pool->waiting, task, entry);
                r = SCRATCH_WAITS;
        }
        pthread_mutex_unlock(&pool->lock);
        return r;
}

bool scratch_try(struct scratch_pool *pool, struct task *task, uint64_t n_bytes, uint64_t now_ns) {
        bool is_free;

        assert(task->n_scratch_bytes == 0);

        pthread_mutex_lock(&pool->lock);
        is_free = is_free_locked(pool, n_bytes);
        if (is_free) {
                ask_locked(pool, task, n_bytes);
                grant_locked(pool, task, now_ns);
        }
        pthread_mutex_unlock(&pool->lock);
        return is_free;
}

void scratch_give(struct scratch_pool *pool, struct task *task, uint64_t now_ns) {
        struct tasks granted = STAILQ_HEAD_INITIALIZER(granted);
        struct job *job = job_of(task);
        struct task *next;
        uint64_t had;

        if (task->n_scratch_bytes == 0)
                return;
        had = task->n_scratch_bytes / UNIT_BYTES * ((now_ns - task->scratch_ns) / UNIT_NS);
        had /= atomic_load_explicit(&job->share.weight, memory_order_relaxed);

        pthread_mutex_lock(&pool->lock);
        pool->n_free += task->n_scratch_bytes;
        task->n_scratch_bytes = 0;
        charge_locked(&job->user->scratch, had);
        charge_locked(&job->scratch, had);
        while ((next = next_locked(pool)) && next->n_scratch_bytes <= pool->n_free) {
                STAILQ_REMOVE(&pool->waiting, next, task, entry);
                grant_locked(pool, next, now_ns);
                STAILQ_INSERT_TAIL(&granted, next, entry);
        }
        pthread_mutex_unlock(&pool->lock);

        /* Without the lock: the queue has one of its own, and no lock is taken inside another. */
        while ((next = STAILQ_FIRST(&granted))) {
                STAILQ_REMOVE_HEAD(&granted, entry);
                fair_queue_push(pool->ready, &job_of(next)->share, &next->ready);
        }
}
