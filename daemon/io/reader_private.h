/* io/reader_private.h: what the files of the reader share. Private to this folder.
 *
 *   reader.c      options, report, counters, the order of stopping
 *   uring.c       the chain open -> read -> close in one ring; uring_absent.c stands in for it without liburing
 *   threads.c     the pread pool: a backend of its own, and where io_uring sends its difficult cases
 *   read_file.c   one file with plain system calls; finds out what is wrong with it
 *   read_part.c   a part of a file that is kept open; kept_files.c keeps them */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "daemon/io/kept_files.h"
#include "daemon/io/reader.h"
#include "proto/base/clock.h"

struct reader_backend {
        const char *name;

        /* Starts the threads and fills in its part of the report. On failure undoes everything. */
        int (*start)(struct reader *reader, struct why *why);

        void (*submit)(struct reader *reader, struct read_request *request);

        /* Tells the threads to leave; is_stopping is set before. May be called again. Does not block. */
        void (*leave)(struct reader *reader);

        /* Called after all threads have left: joins them, cancels requests that were never begun, and frees
         * everything. */
        void (*fini)(struct reader *reader);
};

extern const struct reader_backend reader_uring;
extern const struct reader_backend reader_threads;

struct uring;
struct pool_thread;

struct read_pool {
        pthread_mutex_t lock;            /* no other lock is taken under it; guards all that changes */
        pthread_cond_t filled;           /* a request that may be taken is waiting, or is_stopped */
        TAILQ_HEAD(, read_share) shares; /* those with waiting requests */
        struct read_share own;           /* the share of requests without one */
        struct read_group nobody;        /* the user of shares without one */
        struct read_request closing;     /* not a read: stands for closing the files that must be closed */
        struct pool_thread *threads;     /* an array of n_max */
        uint32_t n_threads;              /* that are running */
        uint32_t n_wanted;               /* that should read, not counting hanging ones; also the most of one share */
        uint32_t n_user_max;             /* the most of one user: n_wanted threads are left to others */
        uint32_t n_max;
        bool is_closing; /* `closing` is in the queue */
        bool is_stopped;
};

struct reader {
        struct reader_options options; /* with the defaults filled in */
        struct reader_report report;
        const struct reader_backend *backend;

        struct kept_files kept;
        _Atomic bool has_said_refused; /* logged that a file cannot be read past the page cache */

        struct read_pool pool;
        struct uring *uring; /* NULL without io_uring */

        _Atomic uint32_t n_outstanding; /* <= options.depth */
        _Atomic bool is_stopping;

        pthread_mutex_t lock;   /* no other lock is taken under it; guards n_running */
        pthread_cond_t emptied; /* n_running became 0 */
        uint32_t n_running;     /* threads that have not left yet */

        struct { /* relaxed: sums that order nothing */
                _Atomic uint64_t n_reads, n_bytes, n_errors, n_slow, n_direct, n_short;
        } counts;
};

/* Starts one of the reader's threads / is the last call of such a thread. */
int reader_thread_start(struct reader *reader, pthread_t *ret_thread, const char *name, void *(*main)(void *),
                        void *argument);
void reader_thread_leaves(struct reader *reader);

/* request.result, .n_bytes and .why are set: counts the request and calls done(). */
void reader_finish(struct reader *reader, struct read_request *request);

/* Sets in the request that it was not read. Returns -ECANCELED. */
int reader_cancelled(struct read_request *request);

/* reader_cancelled() and reader_finish(). */
void reader_cancel(struct reader *reader, struct read_request *request);

/* The bytes to ask the kernel for: for a whole file one more than its length. Only if the length is known. */
static inline uint64_t read_request_wanted(const struct read_request *request) {
        return request->is_part ? request->length : request->length + 1;
}

/* Can a request of known length be read with one call? Offsets are bounded because -1 would mean the current position
 * of the file. */
#define READ_MAX 0x7ffff000u /* the most that the kernel reads in one call */
static inline bool read_request_fits(const struct read_request *request) {
        return request->length != READER_LENGTH_UNKNOWN && request->length < READ_MAX - READER_ALIGN &&
               request->offset <= INT64_MAX - READ_MAX && read_request_wanted(request) <= request->capacity;
}

/* The size of the whole blocks that hold the part. Only for a request that fits. */
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

/* Opens the request's file for reading if it is a regular file. `more_flags`: O_DIRECT or 0. Returns an errno; -EINVAL
 * if it is not a regular file; -EREMCHG if read_file_is_doubtful(). */
int read_file_open(const struct read_request *request, int more_flags, int *ret_fd);

/* Was it written to, or has another file taken its place, since the request's stamp? Its bytes may lie elsewhere. A
 * file that has only grown has them where they were. */
bool read_file_is_doubtful(const struct read_request *request, const struct stat *status);

/* Is it time to look at the kept file? Rarely where a server may be asked. */
#define LOOK_NS      1000000000ull
#define LOOK_HANG_NS 10000000000ull
static inline bool read_kept_is_due(const struct kept_file *file, const struct read_request *request) {
        return request->stamp && clock_now_ns() - atomic_load_explicit(&file->looked_ns, memory_order_relaxed) >=
                                         (request->may_hang ? LOOK_HANG_NS : LOOK_NS);
}

/* It is time to look at the kept file. Returns false if it is doubtful, or cannot be looked at: then it is looked at
 * again before each read. Blocks as fstat() does. */
bool read_kept_look(struct kept_file *file, const struct read_request *request);

/* Reads a part of an owner's file; otherwise as read_file(). */
void read_part(struct reader *reader, struct read_request *request);

/* Opens, checks, reads and closes the file with plain system calls. Sets result, n_bytes and why. Blocks as the disk
 * does, but does not block on a file that is not regular. */
void read_file(struct read_request *request);

int reader_pool_start(struct reader *reader, uint32_t n_threads, struct why *why);
void reader_pool_submit(struct reader *reader, struct read_request *request);
void reader_pool_close_files(struct reader *reader); /* those that kept_files has for it to close; does not block */
void reader_pool_tend(struct reader *reader);
void reader_pool_leave(struct reader *reader);
void reader_pool_fini(struct reader *reader);
