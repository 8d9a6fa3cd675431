/* io/threads.c: the pread pool.
 *
 * Each thread reads one file at a time, so n_threads is the depth that the disk sees. io_uring has a small pool as
 * well: files of unknown length, and files whose chain failed, may block there as long as they need.
 *
 * Each share (a job) has a queue of waiting requests. A thread takes the next request from the user who holds the
 * fewest threads, of that user's households from the one that holds the fewest, and so on to a share. No share holds
 * more than n_threads. A thread whose read has not come back for a while is replaced by another thread. So hanging
 * reads hold only threads that have been replaced: at most n_threads for each job, and for all jobs of a user as many
 * as leave n_threads to others. */
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "daemon/base/threads/thread.h"
#include "daemon/io/reader_private.h"
#include "proto/base/clock.h"

#define LATE_NS 1000000000ull /* a read that takes longer keeps its thread, and another thread takes its place */

struct pool_thread {
        struct reader *reader;
        pthread_t thread;
        uint64_t since_ns; /* guarded by the lock: when its read began; 0: it is waiting */
};

/* ---- the queue, under its lock ------------------------------------------------------------------------------- */

static struct read_share *threads_share_of(struct read_pool *pool, struct read_request *request) {
        return request->share ? request->share : &pool->own;
}

static struct read_group *threads_group_of(struct read_pool *pool, const struct read_share *share) {
        return share->group ? share->group : &pool->nobody;
}

static const struct read_group *threads_user_of(struct read_pool *pool, const struct read_share *share) {
        const struct read_group *group = threads_group_of(pool, share);

        while (group->above)
                group = group->above;
        return group;
}

static bool threads_is_before(struct read_pool *pool, const struct read_share *share, const struct read_share *other) {
        const struct read_group *group = threads_group_of(pool, share), *other_group = threads_group_of(pool, other);
        uint32_t n_held = threads_user_of(pool, share)->n_held, n_other = threads_user_of(pool, other)->n_held;

        if (n_held == n_other) {
                n_held = group->n_held;
                n_other = other_group->n_held;
        }
        return n_held != n_other ? n_held < n_other : share->n_held < other->n_held;
}

static struct read_share *next_share_locked(struct read_pool *pool) {
        struct read_share *share, *best = NULL;

        TAILQ_FOREACH(share, &pool->shares, entry)
                if (share->n_held < pool->n_wanted && threads_user_of(pool, share)->n_held < pool->n_user_max &&
                    (!best || threads_is_before(pool, share, best)))
                        best = share;
        return best;
}

static struct read_request *threads_take_locked(struct read_pool *pool, struct read_share *share) {
        struct read_request *request = STAILQ_FIRST(&share->waiting);

        STAILQ_REMOVE_HEAD(&share->waiting, entry);
        TAILQ_REMOVE(&pool->shares, share, entry);
        if (!STAILQ_EMPTY(&share->waiting)) /* at the end: so shares that hold as many come before it */
                TAILQ_INSERT_TAIL(&pool->shares, share, entry);
        if (request == &pool->closing)
                pool->is_closing = false;
        return request;
}

/* So many threads more. */
static void threads_hold_locked(struct read_pool *pool, struct read_share *share, int n) {
        share->n_held += (uint32_t)n;
        for (struct read_group *group = threads_group_of(pool, share); group; group = group->above)
                group->n_held += (uint32_t)n;
}

static void push_locked(struct read_pool *pool, struct read_request *request) {
        struct read_share *share = threads_share_of(pool, request);

        if (!share->is_begun)
                STAILQ_INIT(&share->waiting);
        share->is_begun = true;
        if (STAILQ_EMPTY(&share->waiting))
                TAILQ_INSERT_TAIL(&pool->shares, share, entry);
        STAILQ_INSERT_TAIL(&share->waiting, request, entry);
}

/* ---- the threads --------------------------------------------------------------------------------------------- */

static struct read_request *pool_next(struct read_pool *pool, struct pool_thread *thread) {
        struct read_request *request = NULL;
        struct read_share *share;

        pthread_mutex_lock(&pool->lock);
        while (!(share = next_share_locked(pool)) && !pool->is_stopped)
                pthread_cond_wait(&pool->filled, &pool->lock);
        if (share && !pool->is_stopped) {
                request = threads_take_locked(pool, share);
                threads_hold_locked(pool, share, 1);
                thread->since_ns = clock_now_ns();
        }
        pthread_mutex_unlock(&pool->lock);
        return request;
}

/* The share may hold one more thread now, but no thread has to be woken: this thread looks for the next request
 * itself. */
static void pool_done(struct read_pool *pool, struct pool_thread *thread, struct read_share *share) {
        pthread_mutex_lock(&pool->lock);
        threads_hold_locked(pool, share, -1);
        thread->since_ns = 0;
        pthread_mutex_unlock(&pool->lock);
}

static void pool_read(struct reader *reader, struct read_request *request) {
        if (request == &reader->pool.closing) {
                kept_files_close(&reader->kept);
                return;
        }
        if (atomic_load(&reader->is_stopping)) {
                request->n_bytes = 0;
                request->result = reader_cancelled(request);
        } else if (request->owner) {
                read_part(reader, request);
        } else {
                read_file(request);
        }
}

static void *pool_main(void *argument) {
        struct pool_thread *thread = argument;
        struct reader *reader = thread->reader;
        struct read_request *request;

        while ((request = pool_next(&reader->pool, thread))) {
                struct read_share *share = threads_share_of(&reader->pool, request);

                pool_read(reader, request);
                /* Before the request is done: after that the share may be gone. */
                pool_done(&reader->pool, thread, share);
                if (request != &reader->pool.closing)
                        reader_finish(reader, request);
        }
        reader_thread_leaves(reader);
        return NULL;
}

/* ---- start, more threads, stop ------------------------------------------------------------------------------- */

static int threads_pool_start_one(struct reader *reader) {
        struct read_pool *pool = &reader->pool;
        struct pool_thread *thread = &pool->threads[pool->n_threads];
        char name[THREAD_NAME_MAX + 1];
        int r;

        thread->reader = reader;
        snprintf(name, sizeof(name), "dl-read-%" PRIu32, pool->n_threads % 100000);
        r = reader_thread_start(reader, &thread->thread, name, pool_main, thread);
        if (r < 0)
                return r;
        pthread_mutex_lock(&pool->lock);
        pool->n_threads++;
        pthread_mutex_unlock(&pool->lock);
        return 0;
}

int reader_pool_start(struct reader *reader, uint32_t n_threads, struct why *why) {
        struct read_pool *pool = &reader->pool;
        int r;

        /* Even if all requests in progress hang, n_threads threads are left to read. */
        *pool = (struct read_pool){ .n_wanted = n_threads, .n_max = n_threads + reader->options.depth };
        pool->n_user_max = reader->options.depth > n_threads ? reader->options.depth : n_threads;
        pool->threads = calloc(pool->n_max, sizeof(*pool->threads));
        if (!pool->threads)
                return why_set(why, -ENOMEM, "reader: no memory for %" PRIu32 " threads", pool->n_max);
        TAILQ_INIT(&pool->shares);
        pthread_mutex_init(&pool->lock, NULL);
        pthread_cond_init(&pool->filled, NULL);

        while (pool->n_threads < n_threads) {
                r = threads_pool_start_one(reader);
                if (r < 0) {
                        why_errno(why, r, "reader: thread %" PRIu32 " of %" PRIu32, pool->n_threads + 1, n_threads);
                        reader_pool_leave(reader);
                        reader_pool_fini(reader);
                        return r;
                }
        }

        reader->report.n_threads = n_threads;
        return 0;
}

/* How many threads are missing, because others hang while a request waits that may be taken? */
static uint32_t n_missing(struct read_pool *pool) {
        uint64_t now_ns = clock_now_ns();
        uint32_t n_late = 0, n;

        pthread_mutex_lock(&pool->lock);
        for (uint32_t i = 0; i < pool->n_threads; i++)
                n_late += pool->threads[i].since_ns != 0 && now_ns > pool->threads[i].since_ns + LATE_NS;
        n = pool->n_wanted + n_late;
        if (n > pool->n_max)
                n = pool->n_max;
        n = pool->n_threads < n && next_share_locked(pool) ? n - pool->n_threads : 0;
        pthread_mutex_unlock(&pool->lock);
        return n;
}

void reader_pool_tend(struct reader *reader) {
        if (atomic_load(&reader->is_stopping))
                return;
        for (uint32_t n = n_missing(&reader->pool); n > 0; n--)
                if (threads_pool_start_one(reader) < 0)
                        return; /* the next reader_tend() tries again */
}

void reader_pool_submit(struct reader *reader, struct read_request *request) {
        struct read_pool *pool = &reader->pool;

        pthread_mutex_lock(&pool->lock);
        push_locked(pool, request);
        pthread_mutex_unlock(&pool->lock);
        pthread_cond_signal(&pool->filled);
}

void reader_pool_close_files(struct reader *reader) {
        struct read_pool *pool = &reader->pool;

        pthread_mutex_lock(&pool->lock);
        if (!pool->is_closing)
                push_locked(pool, &pool->closing);
        pool->is_closing = true;
        pthread_mutex_unlock(&pool->lock);
        pthread_cond_signal(&pool->filled);
}

void reader_pool_leave(struct reader *reader) {
        struct read_pool *pool = &reader->pool;

        pthread_mutex_lock(&pool->lock);
        pool->is_stopped = true;
        pthread_mutex_unlock(&pool->lock);
        pthread_cond_broadcast(&pool->filled);
}

void reader_pool_fini(struct reader *reader) {
        struct read_pool *pool = &reader->pool;
        struct read_share *share;

        if (!pool->threads)
                return;
        for (uint32_t i = 0; i < pool->n_threads; i++)
                thread_join(pool->threads[i].thread);
        while ((share = TAILQ_FIRST(&pool->shares))) {
                struct read_request *request = threads_take_locked(pool, share);

                if (request != &pool->closing)
                        reader_cancel(reader, request);
        }
        pthread_cond_destroy(&pool->filled);
        pthread_mutex_destroy(&pool->lock);
        free(pool->threads);
        *pool = (struct read_pool){ 0 };
        reader->report.n_threads = 0;
}

static int threads_start(struct reader *reader, struct why *why) {
        why_set(&reader->report.buffers_why, 0, "only io_uring registers buffers");
        return reader_pool_start(reader, reader->options.n_threads, why);
}

const struct reader_backend reader_threads = {
        .name = "threads",
        .start = threads_start,
        .submit = reader_pool_submit,
        .leave = reader_pool_leave,
        .fini = reader_pool_fini,
};
