/* base/base_trace.h: what threads did and when, for a while, if somebody asks for it.
 *
 * A thread that takes part calls trace_thread_begin() at its start. While a trace runs, each such thread has a buffer
 * of its own, into which it alone writes, and which one other thread empties: there is no lock and no shared line. A
 * full buffer drops events and counts them. Between traces there is no buffer, and an event costs one relaxed load.
 *
 * Each trace has a number. A job that is traced carries it in a word, and an event about the job is written only where
 * the buffer is of the same trace: so an event that was about to be written for one trace never gets into the next one,
 * and whoever traces gets nothing of jobs that he may not see.
 *
 * There is at most one trace in a process. trace_start() to trace_end() are called by one thread. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/budget.h"
#include "daemon/base/threads/queue.h"
#include "proto/trace.h"

#define TRACE_EVENTS 8192u /* of a thread: half a megabyte, and half a second of a worker that is in a hurry */

/* ---- threads that take part ---------------------------------------------------------------------------------- */

struct trace_buffer;

/* Embedded in an object of the thread; only the functions here use it. */
struct trace_thread {
        TAILQ_ENTRY(trace_thread) entry;
        _Atomic(struct trace_buffer *) buffer; /* NULL: nothing is written */
        _Atomic bool is_writing;
        struct trace_buffer *kept; /* the same until it is freed */
        uint32_t id;               /* the kernel's */
        char name[16];
};

/* The calling thread takes part from now on, under this name, until trace_thread_end(). If a trace runs, it gets a
 * buffer, as far as there is memory. What it wrote can still be taken when it has ended. */
void trace_thread_begin(struct trace_thread *thread, const char *name);
void trace_thread_end(struct trace_thread *thread);

/* A job's word says in which trace it is, and its number there; 0: in none. It is read only while trace_is_on(). */
#define TRACE_NOBODY UINT64_MAX /* what is of no job: only a trace of the whole daemon has it */

static inline uint64_t trace_word(uint32_t trace, uint32_t job) {
        return (uint64_t)trace << 32 | job;
}

/* Whom an event is about. */
struct trace_subject {
        uint64_t word;
        uint32_t rank;
        uint16_t lane;
        uint64_t epoch, step, sample;
};

extern _Atomic bool trace_runs; /* only for trace_is_on() */

static inline bool trace_is_on(void) {
        return __builtin_expect(atomic_load_explicit(&trace_runs, memory_order_relaxed), false);
}

/* Writes an event, if the calling thread takes part and the trace is of this subject. Never blocks. What the caller
 * does not know the begin of, because no trace ran then, begins at UINT64_MAX, and is left out. */
void trace_write(const struct trace_subject *subject, enum dlp_trace_kind kind, uint8_t detail, uint64_t begin_ns,
                 uint64_t end_ns, uint64_t value);

/* From now on trace_stage() of the calling thread is about this subject, a sample; NULL: it writes nothing. The subject
 * stays the caller's. If the trace stops before the thread writes its DLP_TRACE_SAMPLE, the sample is told as not over:
 * a worker that hangs in it is seen. */
void trace_set_subject(const struct trace_subject *subject);

/* The calling thread begins something now that it will write as `kind`. If the trace stops before that, it is told as
 * not over. A thread has one such thing at a time. */
void trace_open(const struct trace_subject *subject, enum dlp_trace_kind kind);
void trace_stage(uint8_t stage, uint64_t begin_ns, uint64_t end_ns);

/* ---- the trace ----------------------------------------------------------------------------------------------- */

/* Makes the buffers, and begins; *ret_trace is the trace's number. `is_all`: it also has what is of no job. -ENOMEM
 * with a sentence; -EBUSY if there is a trace. `budget` pays, and outlives the trace. */
int trace_start(bool is_all, struct budget *budget, uint32_t *ret_trace, struct why *why);

/* Takes at most n_max of the events that were written so far, those of one thread in the order in which they were
 * written. Returns how many. */
size_t trace_take(struct dlp_trace_event *events, size_t n_max);

/* How many were dropped so far. */
uint64_t trace_n_dropped(void);

/* The name of a thread that was not told yet in this trace. False: there is none. */
bool trace_tell_thread(uint32_t *ret_id, char name[16]);

/* After this no thread writes. What they have begun and not written is told as not over. What was written can still be
 * taken. */
void trace_stop(void);

/* Frees the buffers; also stops. Without a trace it does nothing. */
void trace_end(void);
