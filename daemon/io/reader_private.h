/* io/reader_private.h: what the reader's files share and nobody else sees.
 *
 * reader.c    options, report, counters, the order of stopping
 * uring.c     the chain open -> read -> close in one ring; uring_absent.c stands in for it where liburing is not to be
 * had threads.c   the pread pool: a backend of its own, and what io_uring hands its difficult cases to read_file.c one
 * file with plain system calls; the judge of what is wrong with it */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/base/work_queue.h"
#include "daemon/io/reader.h"

struct reader_backend {
        const char *name;

        /* Starts the threads, fills in the report's part. Leaves nothing behind on failure. */
        int (*start)(struct reader *reader, struct why *why);

        void (*submit)(struct reader *reader, struct read_request *request);

        /* Asks the threads to leave; is_stopping is set already. May be called again. Does not block. */
        void (*leave)(struct reader *reader);

        /* Once all have left: joins them, cancels what was never begun, frees. */
        void (*fini)(struct reader *reader);
};

extern const struct reader_backend reader_uring;
extern const struct reader_backend reader_threads;

struct uring;

struct reader {
        struct reader_options options; /* with the defaults filled in */
        struct reader_report report;
        const struct reader_backend *backend;

        struct work_queue pool_queue;
        pthread_t *pool_threads;
        uint32_t n_pool_threads;
        struct uring *uring; /* NULL without */

        _Atomic uint32_t n_outstanding; /* <= options.depth */
        _Atomic bool is_stopping;

        pthread_mutex_t lock;   /* a leaf; covers n_running */
        pthread_cond_t emptied; /* n_running became 0 */
        uint32_t n_running;     /* threads that have not left yet */

        struct { /* relaxed: sums that order nothing */
                _Atomic uint64_t n_reads, n_bytes, n_errors, n_slow, n_short;
        } counts;
};

/* Starts one of the reader's threads / is its last act. */
int reader_thread_start(struct reader *reader, pthread_t *ret_thread, const char *name, void *(*main)(void *),
                        void *argument);
void reader_thread_leaves(struct reader *reader);

/* Request.result, .n_bytes and .why are set: counts it and calls done(). */
void reader_finish(struct reader *reader, struct read_request *request);

/* The same with -ECANCELED. */
void reader_cancel(struct reader *reader, struct read_request *request);

/* The bytes to ask the kernel for: one more than a whole file has. Only for a known length. */
static inline uint64_t read_request_wanted(const struct read_request *request) {
        return request->is_part ? request->length : request->length + 1;
}

/* Opens, checks, reads and closes the file with plain system calls; sets result, n_bytes and why. Blocks as the disk
 * does, but not on what is not a regular file. */
void read_file(struct read_request *request);

int reader_pool_start(struct reader *reader, uint32_t n_threads, struct why *why);
void reader_pool_submit(struct reader *reader, struct read_request *request);
void reader_pool_leave(struct reader *reader);
void reader_pool_fini(struct reader *reader);
