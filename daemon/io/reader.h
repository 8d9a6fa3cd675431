/* io/reader.h: bytes from files.
 *
 * A request names a file (or a part of one) and the memory for its bytes; done() is called when they have arrived, or
 * when it is certain that they will not. There are two ways of reading, with the same results: io_uring, with one
 * thread that has up to `depth` files open at once, and a pool of threads that call pread(), for systems that refuse
 * io_uring. The report says which one is used, and why.
 *
 * A whole file is compared with the index: one byte more than the length is requested, so that a file that has grown is
 * noticed as well as one that has shrunk. Nothing is ever mapped, so a file that shrinks causes an error and no SIGBUS.
 * A file that is not (or no longer) a regular file is refused, and a FIFO, socket or terminal in its place delays only
 * its own request.
 *
 * If a file has an owner, many parts of it are read: it is opened once and kept open, within a limit (io/kept_files.h).
 * About once a second it is looked at whether it was written to meanwhile, so that what lies elsewhere now is not read
 * at its old place for long.
 * Such parts can be read past the page cache, straight from the disk into the buffer: for datasets larger than memory
 * this saves a copy and the work of the cache, which is most of the cost of a read.
 *
 * Threads: submit from any. done() runs on a thread of the reader, possibly on several at once; it should only pass the
 * request on, and may submit. Memory: nothing is allocated after the start. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/threads/queue.h"
#include "proto/base/why.h"

#define READER_LENGTH_UNKNOWN UINT64_MAX
#define READER_ALIGN          4096u /* bytes: what O_DIRECT likes on every disk */
#define READER_DEPTH_MAX      4096u /* requests: 4 entries each stay below io_uring's 32,768 */

struct read_request;

/* Reads of all jobs of one user, or of one household of a user. Embedded in an object of the caller; zeroed at first,
 * except `above`; outlives its shares. Only the reader uses the rest. */
struct read_group {
        struct read_group *above; /* the user of a household; NULL: it is a user */
        uint32_t n_held;          /* threads that read for it */
};

/* Requests belong to shares: those of one share do not wait for threads that those of another one hold. A share is part
 * of an object of the caller, zeroed at first except `group`, and outlives its requests. The rest is the reader's. */
struct read_share {
        struct read_group *group; /* the household or user whose it is; NULL: of nobody */
        STAILQ_HEAD(, read_request) waiting;
        TAILQ_ENTRY(read_share) entry; /* while requests wait */
        uint32_t n_held;               /* threads that read for it */
        bool is_begun;
};

struct file_stamp;

/* The caller's, and not touched by it from submit until done(). */
struct read_request {
        int dir_fd;       /* where `path` begins: the dataset's root */
        const char *path; /* relative to it; a copy is not made */
        bool may_leave; /* links in it may lead out of it: what beneath_root() was told, so that it need not be asked */
        uint64_t offset; /* bytes; 0 unless is_part */
        uint64_t length; /* bytes, as the index says; READER_LENGTH_UNKNOWN: up to the file's end, wherever that is */
        bool is_part;    /* a range of a larger file: what comes after it is not checked */
        const struct file_stamp *stamp; /* of a part: what the file was when it was found there; NULL: not known */
        int64_t settled_ns;             /* a file that was last changed until then has it at the same place */

        const void *owner; /* of a part: whose file it is, until reader_forget(); never looked at. NULL: it is opened
                            * and closed for this request alone */
        uint32_t idx_file; /* which of the owner's files */
        bool past_cache; /* of an owner's file: read with O_DIRECT, if the file system does that and offset, buffer and
                          * capacity are multiples of READER_ALIGN; bytes of the buffer after `length`, up to such a
                          * multiple, are overwritten */

        struct read_share *share; /* NULL: all such requests are one share */
        bool may_hang; /* calls to its file system may block for ever: it is over the network, or of a program */

        uint8_t *buffer;
        size_t capacity;    /* bytes; for a whole file of known length at least one more than that; for one of unknown
                             * length a file that does not fit is refused with -EFBIG */
        int32_t idx_buffer; /* which of the options' buffers `buffer` lies in; -1: in none, any memory will do */

        void *userdata;                   /* the caller's; never looked at */
        STAILQ_ENTRY(read_request) entry; /* the reader's */

        /* Set when done() is called. */
        int result;     /* 0 = all bytes are there; else a negative errno:
                         * -ENOENT, -EACCES, -EISDIR, ... as open() and read() say; -EINVAL not a regular file;
                         * -EBADMSG the length is not the index's; -EREMCHG the file was written to, or another one has
                         * taken its place; -EFBIG the buffer is too small; -ECANCELED stopped;
                         * -EIO also if the file system brought fewer bytes than it says that the file has */
        size_t n_bytes; /* in the buffer; the request's length if that was known; 0 after an error */
        struct why why; /* after an error: names the path and the reason */
};

struct reader_options {
        uint32_t depth; /* requests that are outstanding at once, at most; 1 to READER_DEPTH_MAX */

        /* Memory that the caller will mostly read into: n_buffers of buffer_bytes each, one after the other.
         * Registered with the kernel once, if the kernel allows it. n_buffers 0: none. Stays the caller's; outlives the
         * reader. */
        uint8_t *buffers;
        size_t buffer_bytes;
        uint32_t n_buffers;

        const char *backend;    /* "auto" (or NULL), "io_uring" or "threads" */
        uint32_t n_threads;     /* of the pread pool; 0: 8. io_uring keeps two of them for what goes the slow way */
        uint32_t stall_ms;      /* a read that takes longer is called back and tried the slow way; 0: 5,000 */
        uint32_t stop_limit_ms; /* how long reader_stop() waits; 0: 10,000 */

        void (*done)(struct read_request *request);
};

/* What was obtained from the system; constant after the start. */
struct reader_report {
        const char *backend;    /* "io_uring" or "threads" */
        struct why backend_why; /* why not io_uring; empty if it is */
        uint32_t n_threads;     /* of the pread pool */
        bool has_fixed_buffers; /* buffers are registered with the kernel */
        struct why buffers_why; /* why not; empty if they are */
};

/* Sums since the start. */
struct reader_counts {
        uint64_t n_reads;  /* requests done, errors included, cancelled ones not */
        uint64_t n_bytes;  /* bytes delivered */
        uint64_t n_errors; /* requests done with an error, cancelled ones not */
        uint64_t n_slow;   /* requests that io_uring's chain could not serve, so that pread() decided */
        uint64_t n_direct; /* requests that were read past the page cache */
        uint64_t n_short;  /* those of them whose chain brought fewer or more bytes than the index says */
};

struct reader;

/* Starts the threads. With "auto" a refused io_uring is not an error: the pool takes over and the report says why (the
 * caller logs it). Returns 0; -EINVAL for impossible options; or the errno with which the chosen backend was refused.
 */
int reader_start(const struct reader_options *options, struct reader **ret_reader, struct why *why);

/* Any thread; never blocks. More than `depth` outstanding are our own bug (asserted); a request is outstanding until
 * just before its done(), so done() itself may submit the next. While the reader stops, what is submitted is completed
 * with -ECANCELED; nothing may be submitted after it stopped. */
void reader_submit(struct reader *reader, struct read_request *request);

/* Replaces threads that hang. Call it a few times a second while requests are outstanding. One thread at a time; starts
 * threads, else does not block. */
void reader_tend(struct reader *reader);

/* The owner's files are no longer needed: a thread of the reader closes them; files that are being read are closed when
 * that is done. They may be read again, and are then opened again. Any thread; does not block. */
void reader_forget(struct reader *reader, const void *owner);

/* Completes what has not begun with -ECANCELED, waits for what is under way, ends the threads and frees the reader.
 * Blocks for stop_limit_ms at most. Returns 0; or -ETIMEDOUT if a read hangs in the kernel (a dead network mount): then
 * the reader, its requests and their memory must be left where they are. It may be called again then. NULL is fine. Not
 * from done(). */
int reader_stop(struct reader *reader);

/* Valid as long as the reader. Any thread. */
const struct reader_report *reader_report(const struct reader *reader);

/* Any thread; the sums need not be of one instant. */
void reader_counts(const struct reader *reader, struct reader_counts *ret_counts);
