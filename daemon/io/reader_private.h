/* io/reader_private.h: what the reader's files share and nobody else sees.
 *
 * reader.c    options, report, counters, the order of stopping
 * uring.c       the chain open -> read -> close in one ring; uring_absent.c stands in for it without liburing
 * threads.c     the pread pool: a backend of its own, and what io_uring hands its difficult cases to
 * read_file.c   one file with plain system calls; the judge of what is wrong with it
 * read_part.c   a part of a file that is kept open; kept_files.c keeps them */
#pragma once

#include <pthread.h>
#include <stdatomic.h>

#include "daemon/io/kept_files.h"
#include "daemon/io/reader.h"

struct reader_backend {
        const char *name;

        /* Starts the threads, fills in the report's part. Undoes everything on failure. */
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
struct pool_thread;

struct read_pool {
        pthread_mutex_t lock;            /* a leaf; covers all that changes */
        pthread_cond_t filled;           /* something waits that may be taken, or is_stopped */
        TAILQ_HEAD(, read_share) shares; /* those with requests that wait */
        struct read_share own;           /* of requests without one */
        struct read_user nobody;         /* of shares without a user */
        struct read_request closing;     /* stands for: close the files that are to be closed */
        struct pool_thread *threads;     /* n_max */
        uint32_t n_threads;              /* that run */
        uint32_t n_wanted;               /* that are to read, beside those that hang; of one share at most */
        uint32_t n_user_max;             /* of one user at most: n_wanted are left to others */
        uint32_t n_max;
        bool is_closing; /* `closing` waits */
        bool is_stopped;
};

struct reader {
        struct reader_options options; /* with the defaults filled in */
        struct reader_report report;
        const struct reader_backend *backend;

        struct kept_files kept;
        _Atomic bool has_said_refused; /* that something cannot be read past the page cache */

        struct read_pool pool;
        struct uring *uring; /* NULL without */

        _Atomic uint32_t n_outstanding; /* <= options.depth */
        _Atomic bool is_stopping;

        pthread_mutex_t lock;   /* a leaf; covers n_running */
        pthread_cond_t emptied; /* n_running became 0 */
        uint32_t n_running;     /* threads that have not left yet */

        struct { /* relaxed: sums that order nothing */
                _Atomic uint64_t n_reads, n_bytes, n_errors, n_slow, n_direct, n_short;
        } counts;
};

/* Starts one of the reader's threads / is its last act. */
int reader_thread_start(struct reader *reader, pthread_t *ret_thread, const char *name, void *(*main)(void *),
                        void *argument);
void reader_thread_leaves(struct reader *reader);

/* Request.result, .n_bytes and .why are set: counts it and calls done(). */
void reader_finish(struct reader *reader, struct read_request *request);

/* Says in the request that it was not read. Returns -ECANCELED. */
int reader_cancelled(struct read_request *request);

/* Does both. */
void reader_cancel(struct reader *reader, struct read_request *request);

/* The bytes to ask the kernel for: one more than a whole file has. Only for a known length. */
static inline uint64_t read_request_wanted(const struct read_request *request) {
        return request->is_part ? request->length : request->length + 1;
}

/* What of a known length will do for a read of one call. Offsets are bounded because -1 would mean "where the file
 * stands". */
#define READ_MAX 0x7ffff000u /* bytes that the kernel reads at once, at most */
static inline bool read_request_fits(const struct read_request *request) {
        return request->length != READER_LENGTH_UNKNOWN && request->length < READ_MAX - READER_ALIGN &&
               request->offset <= INT64_MAX - READ_MAX && read_request_wanted(request) <= request->capacity;
}

/* The bytes of the whole blocks that hold a part. Only for a request that fits. */
static inline uint64_t read_request_blocks(const struct read_request *request) {
        return (request->length + READER_ALIGN - 1) / READER_ALIGN * READER_ALIGN;
}

/* Can it be read past the page cache? */
static inline bool read_request_is_aligned(const struct read_request *request) {
        return request->offset % READER_ALIGN == 0 && (uintptr_t)request->buffer % READER_ALIGN == 0 &&
               read_request_blocks(request) <= request->capacity;
}

static inline void reader_count(_Atomic uint64_t *counter, uint64_t n) {
        atomic_fetch_add_explicit(counter, n, memory_order_relaxed);
}

/* Opens the request's file for reading if it is a regular one. `more_flags`: O_DIRECT or 0. Errno; -EINVAL if it is
 * not.
 */
int read_file_open(const struct read_request *request, int more_flags, int *ret_fd);

/* Reads a part of an owner's file; as read_file(). */
void read_part(struct reader *reader, struct read_request *request);

/* Opens, checks, reads and closes the file with plain system calls; sets result, n_bytes and why. Blocks as the disk
 * does, but not on what is not a regular file. */
void read_file(struct read_request *request);

int reader_pool_start(struct reader *reader, uint32_t n_threads, struct why *why);
void reader_pool_submit(struct reader *reader, struct read_request *request);
void reader_pool_close_files(struct reader *reader); /* those that kept_files holds for it; does not block */
void reader_pool_tend(struct reader *reader);
void reader_pool_leave(struct reader *reader);
void reader_pool_fini(struct reader *reader);
