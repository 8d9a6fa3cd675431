#include "daemon/base/base_trace.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/clock.h"

/* The writer's and the taker's words are on lines of their own. */
struct trace_buffer {
        STAILQ_ENTRY(trace_buffer) entry; /* of a thread that has ended */
        uint32_t id;                      /* of the thread */
        char name[16];
        bool is_told;
        uint32_t trace; /* whose events it takes */
        bool is_all;
        struct trace_subject open;               /* what the thread has begun */
        enum dlp_trace_kind open_kind;           /* as what it will be written, */
        uint64_t open_ns;                        /* and when it was; 0: nothing is begun */
        _Alignas(64) _Atomic uint64_t n_written; /* by the thread that it belongs to */
        _Atomic uint64_t n_dropped;              /* likewise */
        _Alignas(64) _Atomic uint64_t n_taken;
        _Alignas(64) struct dlp_trace_event events[TRACE_EVENTS];
};

_Atomic bool trace_runs;

static struct {
        pthread_mutex_t lock; /* guards the list, `kept` of its threads, and what follows; a leaf */
        TAILQ_HEAD(, trace_thread) threads;
        STAILQ_HEAD(, trace_buffer) left; /* of threads that have ended */
        struct budget *budget;            /* NULL: there is no trace */
        uint32_t number;
        bool is_all;
        uint64_t n_dropped; /* of buffers that are freed */
        bool is_stopped;
} trace = { .lock = PTHREAD_MUTEX_INITIALIZER,
            .threads = TAILQ_HEAD_INITIALIZER(trace.threads),
            .left = STAILQ_HEAD_INITIALIZER(trace.left) };

static _Thread_local struct trace_thread *own;
static _Thread_local const struct trace_subject *own_subject;

/* ---- writing ------------------------------------------------------------------------------------------------- */

static bool base_trace_is_of(const struct trace_buffer *buffer, uint64_t word) {
        return word == TRACE_NOBODY ? buffer->is_all : word >> 32 == buffer->trace;
}

static void base_trace_put(struct trace_buffer *buffer, const struct dlp_trace_event *event) {
        uint64_t n = atomic_load_explicit(&buffer->n_written, memory_order_relaxed);

        if (n - atomic_load_explicit(&buffer->n_taken, memory_order_acquire) == TRACE_EVENTS) {
                atomic_fetch_add_explicit(&buffer->n_dropped, 1, memory_order_relaxed);
                return;
        }
        buffer->events[n % TRACE_EVENTS] = *event;
        atomic_store_explicit(&buffer->n_written, n + 1, memory_order_release);
}

/* The thread's buffer, in which it may write until base_trace_let_go(); NULL: it has none. Sequentially consistent, as
 * in quiet(): either this sees no buffer, or quiet() sees that it is writing. */
static struct trace_buffer *base_trace_hold(struct trace_thread *thread) {
        atomic_store(&thread->is_writing, true);
        return atomic_load(&thread->buffer);
}

static void base_trace_let_go(struct trace_thread *thread) {
        atomic_store_explicit(&thread->is_writing, false, memory_order_release);
}

static struct dlp_trace_event event_of(const struct trace_subject *subject, uint32_t thread, enum dlp_trace_kind kind) {
        return (struct dlp_trace_event){ .epoch = subject->epoch,
                                         .step = subject->step,
                                         .sample = subject->sample,
                                         .job = subject->word == TRACE_NOBODY ? 0 : (uint32_t)subject->word,
                                         .rank = subject->rank,
                                         .thread = thread,
                                         .lane = subject->lane,
                                         .kind = (uint8_t)kind };
}

void trace_write(const struct trace_subject *subject, enum dlp_trace_kind kind, uint8_t detail, uint64_t begin_ns,
                 uint64_t end_ns, uint64_t value) {
        struct trace_thread *thread = own;
        struct trace_buffer *buffer;

        if (!thread || begin_ns > end_ns)
                return;
        buffer = base_trace_hold(thread);
        if (buffer && base_trace_is_of(buffer, subject->word)) {
                struct dlp_trace_event event = event_of(subject, thread->id, kind);

                event.detail = detail;
                event.begin_ns = begin_ns;
                event.end_ns = end_ns;
                event.value = value;
                base_trace_put(buffer, &event);
                if (kind == buffer->open_kind)
                        buffer->open_ns = 0;
                else if (kind == DLP_TRACE_STAGE && begin_ns < buffer->open_ns) /* its first stage began with it */
                        buffer->open_ns = begin_ns;
        }
        base_trace_let_go(thread);
}

void trace_open(const struct trace_subject *subject, enum dlp_trace_kind kind) {
        struct trace_thread *thread = own;
        struct trace_buffer *buffer;

        if (!thread)
                return;
        buffer = base_trace_hold(thread);
        if (buffer) {
                buffer->open = *subject;
                buffer->open_kind = kind;
                buffer->open_ns = clock_now_ns();
        }
        base_trace_let_go(thread);
}

void trace_set_subject(const struct trace_subject *subject) {
        own_subject = subject;
        if (subject)
                trace_open(subject, DLP_TRACE_SAMPLE);
}

/* With the lock, when the buffer's thread does not write any more: what it has begun. */
static void put_unfinished(struct trace_buffer *buffer, uint64_t now_ns) {
        struct dlp_trace_event event;

        if (buffer->open_ns == 0 || !base_trace_is_of(buffer, buffer->open.word))
                return;
        event = event_of(&buffer->open, buffer->id, buffer->open_kind);
        event.detail = DLP_TRACE_OPEN;
        event.begin_ns = buffer->open_ns;
        event.end_ns = now_ns;
        base_trace_put(buffer, &event);
        buffer->open_ns = 0;
}

void trace_stage(uint8_t stage, uint64_t begin_ns, uint64_t end_ns) {
        if (own_subject)
                trace_write(own_subject, DLP_TRACE_STAGE, stage, begin_ns, end_ns, 0);
}

/* ---- threads and their buffers ------------------------------------------------------------------------------- */

/* With the lock. */
static int base_trace_equip(struct trace_thread *thread, struct why *why) {
        int r = budget_reserve(trace.budget, sizeof(struct trace_buffer), "a trace's buffers", why);

        if (r < 0)
                return r;
        thread->kept = aligned_alloc(_Alignof(struct trace_buffer), sizeof(struct trace_buffer));
        if (!thread->kept) {
                budget_release(trace.budget, sizeof(struct trace_buffer));
                return why_errno(why, -ENOMEM, "a trace's buffers");
        }
        thread->kept->id = thread->id;
        memcpy(thread->kept->name, thread->name, sizeof(thread->name));
        thread->kept->is_told = false;
        thread->kept->trace = trace.number;
        thread->kept->is_all = trace.is_all;
        thread->kept->open_ns = 0;
        thread->kept->open_kind = DLP_TRACE_KINDS;
        atomic_init(&thread->kept->n_written, 0);
        atomic_init(&thread->kept->n_dropped, 0);
        atomic_init(&thread->kept->n_taken, 0);
        atomic_store(&thread->buffer, thread->kept);
        return 0;
}

/* With the lock. An event takes less than a microsecond to write, unless the thread loses its CPU in the middle. */
static void quiet(struct trace_thread *thread) {
        atomic_store(&thread->buffer, NULL);
        while (atomic_load(&thread->is_writing))
                sched_yield();
}

/* With the lock, when no thread writes into it. */
static void base_trace_buffer_free(struct trace_buffer *buffer) {
        trace.n_dropped += atomic_load_explicit(&buffer->n_dropped, memory_order_relaxed);
        free(buffer);
        budget_release(trace.budget, sizeof(*buffer));
}

/* With the lock. */
static void strip(struct trace_thread *thread) {
        if (!thread->kept)
                return;
        quiet(thread);
        base_trace_buffer_free(thread->kept);
        thread->kept = NULL;
}

/* With the lock: what the thread wrote waits to be taken. */
static void base_trace_leave(struct trace_thread *thread) {
        if (!thread->kept)
                return;
        quiet(thread);
        STAILQ_INSERT_TAIL(&trace.left, thread->kept, entry);
        thread->kept = NULL;
}

void trace_thread_begin(struct trace_thread *thread, const char *name) {
        assert(!own);
        *thread = (struct trace_thread){ .id = (uint32_t)gettid() };
        snprintf(thread->name, sizeof(thread->name), "%s", name);
        own = thread;
        pthread_mutex_lock(&trace.lock);
        TAILQ_INSERT_TAIL(&trace.threads, thread, entry);
        if (trace.budget && !trace.is_stopped)
                base_trace_equip(thread, NULL); /* without memory it is left out */
        pthread_mutex_unlock(&trace.lock);
}

void trace_thread_end(struct trace_thread *thread) {
        assert(own == thread);
        own = NULL;
        pthread_mutex_lock(&trace.lock);
        TAILQ_REMOVE(&trace.threads, thread, entry);
        base_trace_leave(thread);
        pthread_mutex_unlock(&trace.lock);
}

/* ---- the trace ----------------------------------------------------------------------------------------------- */

static void end_locked(void) {
        struct trace_thread *thread;

        atomic_store_explicit(&trace_runs, false, memory_order_relaxed);
        TAILQ_FOREACH(thread, &trace.threads, entry)
                strip(thread);
        while (!STAILQ_EMPTY(&trace.left)) {
                struct trace_buffer *buffer = STAILQ_FIRST(&trace.left);

                STAILQ_REMOVE_HEAD(&trace.left, entry);
                base_trace_buffer_free(buffer);
        }
        trace.budget = NULL;
}

static int base_trace_start_locked(bool is_all, struct budget *budget, struct why *why) {
        struct trace_thread *thread;
        int r;

        if (trace.budget)
                return why_set(why, -EBUSY, "there is a trace already");
        trace.number++;
        trace.is_all = is_all;
        trace.budget = budget;
        trace.n_dropped = 0;
        trace.is_stopped = false;
        TAILQ_FOREACH(thread, &trace.threads, entry) {
                r = base_trace_equip(thread, why);
                if (r < 0) {
                        end_locked();
                        return r;
                }
        }
        atomic_store_explicit(&trace_runs, true, memory_order_relaxed);
        return 0;
}

int trace_start(bool is_all, struct budget *budget, uint32_t *ret_trace, struct why *why) {
        int r;

        pthread_mutex_lock(&trace.lock);
        r = base_trace_start_locked(is_all, budget, why);
        if (r == 0)
                *ret_trace = trace.number;
        pthread_mutex_unlock(&trace.lock);
        return r;
}

static size_t take_from(struct trace_buffer *buffer, struct dlp_trace_event *events, size_t n_max) {
        uint64_t n_taken = atomic_load_explicit(&buffer->n_taken, memory_order_relaxed);
        uint64_t n = atomic_load_explicit(&buffer->n_written, memory_order_acquire) - n_taken;

        if (n > n_max)
                n = n_max;
        for (uint64_t i = 0; i < n; i++)
                events[i] = buffer->events[(n_taken + i) % TRACE_EVENTS];
        atomic_store_explicit(&buffer->n_taken, n_taken + n, memory_order_release);
        return (size_t)n;
}

/* A buffer whose thread has ended is freed once it is empty and its name has been told. */
static size_t take_what_is_left(struct dlp_trace_event *events, size_t n_max) {
        struct trace_buffer *buffer;
        size_t n, n_taken = 0;

        while ((buffer = STAILQ_FIRST(&trace.left)) && buffer->is_told) {
                n = take_from(buffer, events + n_taken, n_max - n_taken);
                n_taken += n;
                if (n_taken == n_max)
                        break;
                STAILQ_REMOVE_HEAD(&trace.left, entry);
                base_trace_buffer_free(buffer);
        }
        return n_taken;
}

size_t trace_take(struct dlp_trace_event *events, size_t n_max) {
        struct trace_thread *thread;
        size_t n;

        pthread_mutex_lock(&trace.lock);
        n = take_what_is_left(events, n_max);
        TAILQ_FOREACH(thread, &trace.threads, entry)
                if (thread->kept)
                        n += take_from(thread->kept, events + n, n_max - n);
        pthread_mutex_unlock(&trace.lock);
        return n;
}

uint64_t trace_n_dropped(void) {
        struct trace_thread *thread;
        uint64_t n;

        pthread_mutex_lock(&trace.lock);
        n = trace.n_dropped;
        TAILQ_FOREACH(thread, &trace.threads, entry)
                if (thread->kept)
                        n += atomic_load_explicit(&thread->kept->n_dropped, memory_order_relaxed);
        pthread_mutex_unlock(&trace.lock);
        return n;
}

/* With the lock. NULL: each has been told. */
static struct trace_buffer *next_untold(void) {
        struct trace_buffer *buffer;
        struct trace_thread *thread;

        TAILQ_FOREACH(thread, &trace.threads, entry)
                if (thread->kept && !thread->kept->is_told)
                        return thread->kept;
        STAILQ_FOREACH(buffer, &trace.left, entry)
        if (!buffer->is_told)
                return buffer;
        return NULL;
}

bool trace_tell_thread(uint32_t *ret_id, char name[16]) {
        struct trace_buffer *buffer;

        pthread_mutex_lock(&trace.lock);
        buffer = next_untold();
        if (buffer) {
                buffer->is_told = true;
                *ret_id = buffer->id;
                memcpy(name, buffer->name, sizeof(buffer->name));
        }
        pthread_mutex_unlock(&trace.lock);
        return buffer != NULL;
}

void trace_stop(void) {
        struct trace_thread *thread;

        pthread_mutex_lock(&trace.lock);
        atomic_store_explicit(&trace_runs, false, memory_order_relaxed);
        trace.is_stopped = true;
        TAILQ_FOREACH(thread, &trace.threads, entry) {
                if (!thread->kept)
                        continue;
                quiet(thread);
                put_unfinished(thread->kept, clock_now_ns());
        }
        pthread_mutex_unlock(&trace.lock);
}

void trace_end(void) {
        pthread_mutex_lock(&trace.lock);
        if (trace.budget)
                end_locked();
        pthread_mutex_unlock(&trace.lock);
}
