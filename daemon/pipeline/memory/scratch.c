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

static struct job *scratch_job_of(const struct task *task) {
        return task->batch->feed->job;
}

/* ---- called with the lock held ------------------------------------------------------------------------------- */

/* Where newcomers beside the account begin. */
static uint64_t *now_of(struct scratch_pool *pool, struct scratch_account *account) {
        return account->above ? &account->above->now : &pool->now;
}

/* As users, as households of one user, or as jobs of one household. */
static bool scratch_is_before(const struct scratch_account *a, const struct scratch_account *b) {
        while (a->above != b->above) {
                a = a->above;
                b = b->above;
        }
        return a->had < b->had;
}

/* A linear search is enough: there are at most a few hundred tasks, and it runs once for each large picture. */
static struct task *next_locked(struct scratch_pool *pool) {
        struct task *task, *next = NULL;

        STAILQ_FOREACH(task, &pool->waiting, entry)
        if (!next || scratch_is_before(&scratch_job_of(task)->scratch, &scratch_job_of(next)->scratch))
                next = task;
        return next;
}

static void grant_locked(struct scratch_pool *pool, struct task *task, uint64_t now_ns) {
        pool->n_free -= task->n_scratch_bytes;
        task->scratch_ns = now_ns;
        for (struct scratch_account *account = &scratch_job_of(task)->scratch; account; account = account->above) {
                uint64_t *now = now_of(pool, account);

                if (*now < account->had)
                        *now = account->had;
        }
}

/* ---- public functions ---------------------------------------------------------------------------------------- */

/* Not past those that wait: otherwise small pictures would keep a large one waiting for ever. */
static bool is_free_locked(const struct scratch_pool *pool, uint64_t n_bytes) {
        return STAILQ_EMPTY(&pool->waiting) && n_bytes <= pool->n_free;
}

/* An account that was idle starts at the present: idle time does not count as savings. */
static void ask_locked(struct scratch_pool *pool, struct task *task, uint64_t n_bytes) {
        task->n_scratch_bytes = n_bytes;
        for (struct scratch_account *account = &scratch_job_of(task)->scratch; account; account = account->above) {
                uint64_t now = *now_of(pool, account);

                if (account->n_active++ == 0 && account->had < now)
                        account->had = now;
        }
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
        struct job *job = scratch_job_of(task);
        struct task *next;
        uint64_t had;

        if (task->n_scratch_bytes == 0)
                return;
        had = task->n_scratch_bytes / UNIT_BYTES * ((now_ns - task->scratch_ns) / UNIT_NS);
        had /= atomic_load_explicit(&job->share.weight, memory_order_relaxed);

        pthread_mutex_lock(&pool->lock);
        pool->n_free += task->n_scratch_bytes;
        task->n_scratch_bytes = 0;
        for (struct scratch_account *account = &job->scratch; account; account = account->above) {
                account->had += had;
                account->n_active--;
        }
        while ((next = next_locked(pool)) && next->n_scratch_bytes <= pool->n_free) {
                STAILQ_REMOVE(&pool->waiting, next, task, entry);
                grant_locked(pool, next, now_ns);
                STAILQ_INSERT_TAIL(&granted, next, entry);
        }
        pthread_mutex_unlock(&pool->lock);

        /* Without the lock: the queue has one of its own, and no lock is taken inside another. */
        while ((next = STAILQ_FIRST(&granted))) {
                STAILQ_REMOVE_HEAD(&granted, entry);
                fair_queue_push(pool->ready, &scratch_job_of(next)->share, &next->ready);
        }
}
