/* io/uring.c: many files at once through one ring.
 *
 * A file is read by a chain of three linked entries: open it into the chain's own place of the ring's file table, read,
 * close. One system call begins any number of chains. A chain handles the common case only: a regular file with the
 * length that the index says. All other cases go to read_file() on the small pool, so the ring's thread never blocks
 * except in the ring.
 *
 * A part of an owner's file is a chain of one read once the file is kept open. The first read of such a file goes to
 * the pool, which opens it. If no more files can be kept, parts are read like whole files.
 *
 * The links: open -> read is IOSQE_IO_LINK, so a file that cannot be opened cancels the rest. Read -> close is
 * IOSQE_IO_HARDLINK: the chain asks for one byte more than the file has, so every good read is a short one. A plain
 * link would take that for a failure, cancel the close and leave the place occupied.
 *
 * Reads that hang: with O_NONBLOCK the open of a FIFO does not wait, but the ring still waits with a read that could be
 * polled (FIFO, terminal, with O_NONBLOCK or without). So a read that takes longer than stall_ms is cancelled. For a
 * regular file on a slow disk the cancellation has no effect, or the pool reads the file again. The ring's own thread
 * never calls a file system that may make us wait without end (may_hang): the kernel tries an open at once if it has
 * the names cached, and some file systems ask their server even then. Threads of the kernel (io-wq) do it instead, as
 * many as may hang there. O_NONBLOCK does no harm to regular files: those that are not cached are read as well. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <liburing.h>
#include <poll.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/base/threads/mailbox.h"
#include "daemon/base/threads/thread.h"
#include "daemon/io/reader_private.h"
#include "proto/base/bytes.h"
#include "proto/base/clock.h"

#define POOL_THREADS     2u                  /* one may hang on a dead mount, and the other still judges */
#define LEAVING_STALL_NS (1000ull * 1000000) /* the longest wait for a silent read while the reader stops */
#define BUFFERS_MAX      16384u              /* the most that one ring accepts */
#define UNKEPT_LOOKS     16u                 /* each 16th part of a file that cannot be kept open is looked at */

enum operation {
        OPERATION_OPEN,
        OPERATION_READ,
        OPERATION_CLOSE,
        OPERATION_OTHER
};

/* user_data: the operation in the lowest two bits, and the chain's index above them. */
#define USER_DATA(idx, operation) ((uint64_t)(idx) << 2 | (uint64_t)(operation))
#define USER_DATA_LISTEN          USER_DATA(0, OPERATION_OTHER)
#define USER_DATA_RECALL          USER_DATA(1, OPERATION_OTHER)

/* One place of the file table and its request. */
struct chain {
        struct read_request *request; /* NULL: free */
        struct kept_file *kept;       /* the kept file that is read; NULL: it opens a file itself */
        uint64_t started_ns;          /* or when its read was last cancelled */
        uint32_t n_left;              /* completions to come: of all three entries, or of the read alone */
        bool is_direct;               /* past the page cache */
        struct open_how how;          /* the kernel reads it when the entries are submitted */
        int open_result, read_result;
};

struct uring {
        struct reader *reader;
        struct mailbox mailbox; /* submitters -> the ring's thread; a pointer to this struct = leave */
        pthread_t thread;
        sem_t is_opened; /* posted once open_result is set */
        int open_result;
        struct why open_why;
        _Atomic bool is_told_to_leave;

        /* Used only by the ring's thread (SINGLE_ISSUER), from here to the end. */
        struct io_uring ring;
        struct chain *chains;  /* options.depth */
        uint32_t *free_chains; /* a stack of indices */
        uint32_t n_free;
        bool is_listening; /* a poll of the mailbox's fd is in the ring */
        bool is_leaving;
        uint64_t checked_ns; /* when it last looked for stalls */
        uint32_t n_recalls;  /* cancellations added since none was left in the ring */
        uint32_t n_unkept;   /* parts of files that could not be kept open */
};

static struct io_uring_sqe *uring_next_entry(struct uring *uring) {
        struct io_uring_sqe *entry = io_uring_get_sqe(&uring->ring);

        assert(entry); /* room for depth chains, depth cancellations and listening, however long they stay there */
        return entry;
}

/* To be called after the prep functions, which clear the flags. */
static void uring_mark(struct io_uring_sqe *entry, uint64_t user_data, unsigned flags) {
        entry->user_data = user_data;
        entry->flags |= (uint8_t)flags;
}

/* ---- opening the ring: the best setup that the kernel offers ------------------------------------------------- */

static int uring_refuse(struct why *why, int error, const char *step) {
        const char *name = strerrorname_np(-error);
        const char *hint;

        switch (-error) {
        case EPERM:
        case EACCES:
                hint = ": seccomp or kernel.io_uring_disabled?";
                break;
        case ENOSYS:
        case EINVAL:
                hint = ": a kernel before 5.19?";
                break;
        case EMFILE:
                hint = ": more files than RLIMIT_NOFILE allows";
                break;
        case ENOMEM:
                hint = ": RLIMIT_MEMLOCK?";
                break;
        default:
                hint = "";
        }
        return why_set(why, error, "io_uring refused at %s (%s%s)", step, name ? name : "unknown error", hint);
}

static int uring_set_up(struct uring *uring) {
        /* DEFER_TASKRUN: completions are handled when this thread asks for them, not whenever the kernel interrupts it.
         * SUBMIT_ALL: one bad entry does not delay those after it. Older kernels know only some of these flags. */
        static const unsigned FLAGS[] = {
                IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN | IORING_SETUP_SINGLE_ISSUER |
                        IORING_SETUP_DEFER_TASKRUN,
                IORING_SETUP_SUBMIT_ALL | IORING_SETUP_COOP_TASKRUN,
                0,
        };
        unsigned n_entries = 4 * uring->reader->options.depth + 2; /* chains of three, cancellations, listening */
        int r = -EINVAL;

        for (size_t i = 0; i < sizeof(FLAGS) / sizeof(FLAGS[0]) && r == -EINVAL; i++)
                r = io_uring_queue_init(n_entries, &uring->ring, FLAGS[i]);
        return r;
}

/* Each read in progress may hang in a thread of the kernel, and no read may wait for another one's thread. The kernel's
 * own limit is four threads for each CPU. Kernels before 5.15 refuse this call: there, jobs wait for each other. */
static void allow_threads(struct uring *uring) {
        unsigned n_threads[2] = { uring->reader->options.depth, 0 }; /* for files; 0: leaves the others as they are */

        io_uring_register_iowq_max_workers(&uring->ring, n_threads);
}

static int wait_for_one(struct uring *uring) {
        struct io_uring_cqe *completion;
        int r;

        do {
                r = io_uring_submit_and_wait(&uring->ring, 1);
        } while (r == -EINTR);
        if (r < 0)
                return r;

        r = io_uring_wait_cqe(&uring->ring, &completion);
        if (r < 0)
                return r;
        r = completion->res;
        io_uring_cqe_seen(&uring->ring, completion);
        return r;
}

/* A seccomp filter may allow making the ring and refuse its operations, so this opens and closes one file as a test. */
static int try_open(struct uring *uring) {
        struct io_uring_sqe *entry;
        int r;

        entry = uring_next_entry(uring);
        io_uring_prep_openat_direct(entry, AT_FDCWD, "/", O_RDONLY | O_DIRECTORY, 0, 0);
        r = wait_for_one(uring);
        if (r < 0)
                return r;

        entry = uring_next_entry(uring);
        io_uring_prep_close_direct(entry, 0);
        return wait_for_one(uring);
}

static int register_buffers(struct uring *uring, struct why *why) {
        const struct reader_options *options = &uring->reader->options;
        char size[BYTES_TEXT_MAX], limit[BYTES_TEXT_MAX];
        struct rlimit memlock;
        struct iovec *buffers;
        int r;

        if (options->n_buffers == 0)
                return why_set(why, -ENOENT, "there are none");
        if (options->n_buffers > BUFFERS_MAX)
                return why_set(why, -EINVAL, "%" PRIu32 " are more than the %u that a ring takes", options->n_buffers,
                               BUFFERS_MAX);

        buffers = calloc(options->n_buffers, sizeof(*buffers));
        if (!buffers)
                return why_set(why, -ENOMEM, "no memory for the list of them");
        for (uint32_t i = 0; i < options->n_buffers; i++)
                buffers[i] = (struct iovec){ .iov_base = options->buffers + (size_t)i * options->buffer_bytes,
                                             .iov_len = options->buffer_bytes };
        r = io_uring_register_buffers(&uring->ring, buffers, options->n_buffers);
        free(buffers);
        if (r >= 0)
                return 0;

        getrlimit(RLIMIT_MEMLOCK, &memlock);
        return why_errno(why, r, "%s refused, RLIMIT_MEMLOCK is %s; raise it, or reading is a little slower",
                         format_bytes(size, options->n_buffers * (uint64_t)options->buffer_bytes),
                         memlock.rlim_cur == RLIM_INFINITY ? "infinite" : format_bytes(limit, memlock.rlim_cur));
}

static int open_ring(struct uring *uring) {
        struct reader *reader = uring->reader;
        int r;

        r = uring_set_up(uring);
        if (r < 0)
                return uring_refuse(&uring->open_why, r, "setup");
        allow_threads(uring);

        r = io_uring_register_files_sparse(&uring->ring, reader->options.depth);
        if (r < 0) {
                uring_refuse(&uring->open_why, r, "registering files");
                goto fail;
        }

        r = try_open(uring);
        if (r < 0) {
                uring_refuse(&uring->open_why, r, "opening a file");
                goto fail;
        }

        reader->report.has_fixed_buffers = register_buffers(uring, &reader->report.buffers_why) == 0;
        return 0;

fail:
        io_uring_queue_exit(&uring->ring);
        return r;
}

/* ---- one chain: submit, complete ----------------------------------------------------------------------------- */

/* Is this the common case? */
static bool fits_chain(const struct read_request *request) {
        return request->length > 0 && read_request_fits(request);
}

static void go_slow_way(struct uring *uring, struct read_request *request) {
        atomic_fetch_add_explicit(&uring->reader->counts.n_slow, 1, memory_order_relaxed);
        reader_pool_submit(uring->reader, request);
}

static uint32_t take_chain(struct uring *uring, struct read_request *request, uint32_t n_operations) {
        uint32_t idx;

        assert(uring->n_free > 0); /* at most depth requests are in progress */
        idx = uring->free_chains[--uring->n_free];
        uring->chains[idx] = (struct chain){ .request = request, .started_ns = clock_now_ns(), .n_left = n_operations };
        return idx;
}

/* `file`: a descriptor, or a place of the ring's table if `flags` has IOSQE_FIXED_FILE. */
static void add_read(struct uring *uring, uint32_t idx, int file, unsigned flags) {
        const struct chain *chain = &uring->chains[idx];
        const struct read_request *request = chain->request;
        unsigned async = request->may_hang ? IOSQE_ASYNC : 0;
        unsigned n_wanted = (unsigned)(chain->is_direct ? read_request_blocks(request) : read_request_wanted(request));
        struct io_uring_sqe *entry = uring_next_entry(uring);

        if (request->idx_buffer >= 0 && uring->reader->report.has_fixed_buffers)
                io_uring_prep_read_fixed(entry, file, request->buffer, n_wanted, request->offset, request->idx_buffer);
        else
                io_uring_prep_read(entry, file, request->buffer, n_wanted, request->offset);
        uring_mark(entry, USER_DATA(idx, OPERATION_READ), flags | async);
}

static void begin_chain(struct uring *uring, struct read_request *request) {
        unsigned async = request->may_hang ? IOSQE_ASYNC : 0;
        uint32_t idx = take_chain(uring, request, 3);
        int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;
        struct io_uring_sqe *entry;
        struct open_how *how = &uring->chains[idx].how;

        if (request->past_cache && read_request_is_aligned(request)) {
                uring->chains[idx].is_direct = true;
                flags |= O_DIRECT;
        }

        /* No O_CLOEXEC: it is refused here, and files in the ring's table are not inherited anyway. */
        entry = uring_next_entry(uring);
        *how = (struct open_how){ .flags = (unsigned)flags, .resolve = request->may_leave ? 0 : BENEATH_RESOLVE };
        io_uring_prep_openat2_direct(entry, request->dir_fd, request->path, how, idx);
        uring_mark(entry, USER_DATA(idx, OPERATION_OPEN), IOSQE_IO_LINK | async);

        add_read(uring, idx, (int)idx, IOSQE_FIXED_FILE | IOSQE_IO_HARDLINK);

        entry = uring_next_entry(uring);
        io_uring_prep_close_direct(entry, idx);
        uring_mark(entry, USER_DATA(idx, OPERATION_CLOSE), async);
}

/* The file is open: only the read is left. Returns false if the request must be read in another way. */
static bool begin_kept(struct uring *uring, struct read_request *request, struct kept_file *kept) {
        bool is_direct = atomic_load_explicit(&kept->is_direct, memory_order_relaxed);
        uint32_t idx;

        if (is_direct && !read_request_is_aligned(request))
                return false;
        idx = take_chain(uring, request, 1);
        uring->chains[idx].kept = kept;
        uring->chains[idx].is_direct = is_direct;
        add_read(uring, idx, kept->fd, 0);
        return true;
}

/* Closing may hang, so this thread does not do it. */
static void put_kept(struct uring *uring, struct kept_file *kept) {
        if (kept_files_put(&uring->reader->kept, kept))
                reader_pool_close_files(uring->reader);
}

static void uring_begin_part(struct uring *uring, struct read_request *request) {
        struct kept_files *files = &uring->reader->kept;
        struct kept_file *kept = kept_files_find(files, request);
        bool is_due = kept && read_kept_is_due(kept, request);

        if (!kept && kept_files_have_room(files)) {
                reader_pool_submit(uring->reader, request); /* the pool opens it, which may block */
        } else if (!kept && request->stamp && uring->n_unkept++ % UNKEPT_LOOKS == 0) {
                reader_pool_submit(uring->reader, request); /* which looks whether it has changed */
        } else if (!kept) {
                begin_chain(uring, request);
        } else if (is_due && request->may_hang) {
                put_kept(uring, kept);
                reader_pool_submit(uring->reader, request); /* the pool looks at it */
        } else if ((is_due && !read_kept_look(kept, request)) || !begin_kept(uring, request, kept)) {
                put_kept(uring, kept);
                go_slow_way(uring, request);
        }
}

/* Has all of it arrived? A whole file must not have one byte more; a part may include the rest of its last block. */
static bool is_good(const struct chain *chain) {
        uint64_t n = (uint64_t)chain->read_result;

        if (chain->read_result < 0)
                return false;
        return chain->request->is_part ? n >= chain->request->length : n == chain->request->length;
}

/* All completions have arrived: the place is free again, and the kernel no longer uses the request's memory. This must
 * not come earlier: a close that has not run yet would close the file of the next chain. */
static void end_chain(struct uring *uring, struct chain *chain) {
        struct read_request *request = chain->request;

        bool is_read = is_good(chain);

        if (chain->kept)
                put_kept(uring, chain->kept);
        chain->request = NULL;
        uring->free_chains[uring->n_free++] = (uint32_t)(chain - uring->chains);

        if (is_read) {
                reader_count(&uring->reader->counts.n_direct, chain->is_direct);
                request->n_bytes = request->length;
                reader_finish(uring->reader, request);
                return;
        }
        if (chain->open_result >= 0 && chain->read_result >= 0)
                atomic_fetch_add_explicit(&uring->reader->counts.n_short, 1, memory_order_relaxed);
        go_slow_way(uring, request);
}

/* The close failed although the open had worked. This empties the place, so that the next chain can use it. */
static void close_by_force(struct uring *uring, uint32_t idx) {
        int none = -1;

        io_uring_register_files_update(&uring->ring, idx, &none, 1);
}

static void on_completion(struct uring *uring, uint64_t user_data, int result) {
        uint32_t idx = (uint32_t)(user_data >> 2);
        struct chain *chain;

        if ((user_data & 3) == OPERATION_OTHER) {
                if (user_data == USER_DATA_LISTEN)
                        uring->is_listening = false; /* the next turn pops, then listens again */
                return;
        }

        chain = &uring->chains[idx];
        assert(chain->request);
        switch ((enum operation)(user_data & 3)) {
        case OPERATION_OPEN:
                chain->open_result = result;
                break;
        case OPERATION_READ:
                chain->read_result = result;
                break;
        default:
                if (result < 0 && chain->open_result >= 0)
                        close_by_force(uring, idx);
        }
        if (--chain->n_left == 0)
                end_chain(uring, chain);
}

/* ---- the thread ---------------------------------------------------------------------------------------------- */

static void uring_begin(struct uring *uring, struct read_request *request) {
        if (!fits_chain(request))
                go_slow_way(uring, request);
        else if (request->owner)
                uring_begin_part(uring, request);
        else
                begin_chain(uring, request);
}

static void uring_take_requests(struct uring *uring) {
        struct reader *reader = uring->reader;
        void *item;

        while ((item = mailbox_pop(&uring->mailbox))) {
                if (item == uring)
                        uring->is_leaving = true;
                else if (atomic_load(&reader->is_stopping))
                        reader_cancel(reader, item);
                else
                        uring_begin(uring, item);
        }
}

/* To be called only after a pop that returned NULL: that arms the fd. */
static void listen_to_mailbox(struct uring *uring) {
        struct io_uring_sqe *entry;

        if (uring->is_listening)
                return;

        entry = uring_next_entry(uring);
        io_uring_prep_poll_add(entry, mailbox_fd(&uring->mailbox), POLLIN);
        uring_mark(entry, USER_DATA_LISTEN, 0);
        uring->is_listening = true;
}

static uint64_t stall_ns(const struct uring *uring) {
        uint64_t stall = uring->reader->options.stall_ms * 1000000ull;

        return uring->is_leaving && stall > LEAVING_STALL_NS ? LEAVING_STALL_NS : stall;
}

static void recall(struct uring *uring, uint32_t idx, enum operation operation) {
        struct io_uring_sqe *entry = uring_next_entry(uring);

        uring->n_recalls++;
        io_uring_prep_cancel64(entry, USER_DATA(idx, operation), 0);
        uring_mark(entry, USER_DATA_RECALL, 0);
}

static void recall_stalled(struct uring *uring) {
        uint64_t now = clock_now_ns();

        if (now - uring->checked_ns < stall_ns(uring) / 4)
                return;
        uring->checked_ns = now;

        for (uint32_t i = 0; i < uring->reader->options.depth; i++) {
                struct chain *chain = &uring->chains[i];

                if (!chain->request || now - chain->started_ns < stall_ns(uring))
                        continue;
                if (uring->n_recalls >= uring->reader->options.depth)
                        return;          /* the kernel has not accepted the earlier ones yet */
                chain->started_ns = now; /* cancelled again after another stall_ms: it may hang in its next step */
                recall(uring, i, chain->n_left == 3 ? OPERATION_OPEN : OPERATION_READ);
        }
}

/* Sleeps until a completion or a request arrives, or until it is time to look for stalls. Without requests there is no
 * time-out. */
static void submit_and_wait(struct uring *uring) {
        uint64_t check_ns = stall_ns(uring) / 4;
        struct __kernel_timespec limit = { .tv_sec = (long long)(check_ns / 1000000000u),
                                           .tv_nsec = (long long)(check_ns % 1000000000u) };
        bool is_idle = uring->n_free == uring->reader->options.depth;
        struct io_uring_cqe *completion;
        int r;

        r = io_uring_submit_and_wait_timeout(&uring->ring, &completion, 1, is_idle ? NULL : &limit, NULL);
        /* Entries that could not be submitted stay in the ring for the next turn. Any other error is our own bug. */
        assert(r >= 0 || r == -ETIME || r == -EINTR || r == -EAGAIN || r == -EBUSY || r == -ENOMEM);
        if (r == -EAGAIN || r == -EBUSY || r == -ENOMEM)
                usleep(1000);
        if (io_uring_sq_ready(&uring->ring) == 0)
                uring->n_recalls = 0;
}

static void uring_reap(struct uring *uring) {
        struct io_uring_cqe *completion;
        unsigned head, n = 0;

        io_uring_for_each_cqe(&uring->ring, head, completion) {
                on_completion(uring, completion->user_data, completion->res);
                n++;
        }
        io_uring_cq_advance(&uring->ring, n);
}

static void *uring_main(void *argument) {
        struct uring *uring = argument;
        struct reader *reader = uring->reader;
        bool is_open;

        /* The thread that opens the ring must be the one that uses it. */
        uring->open_result = open_ring(uring);
        is_open = uring->open_result == 0;
        sem_post(&uring->is_opened);

        while (is_open) {
                uring_take_requests(uring);
                if (uring->is_leaving && uring->n_free == reader->options.depth)
                        break;
                listen_to_mailbox(uring);
                recall_stalled(uring);
                submit_and_wait(uring);
                uring_reap(uring);
        }

        if (is_open)
                io_uring_queue_exit(&uring->ring);
        reader_thread_leaves(reader);
        return NULL;
}

/* ---- the backend's functions --------------------------------------------------------------------------------- */

static void uring_free(struct uring *uring) {
        mailbox_fini(&uring->mailbox);
        sem_destroy(&uring->is_opened);
        free(uring->free_chains);
        free(uring->chains);
        free(uring);
}

static int uring_new(struct reader *reader, struct uring **ret_uring) {
        uint32_t depth = reader->options.depth;
        struct uring *uring;
        int r;

        uring = calloc(1, sizeof(*uring));
        if (!uring)
                return -ENOMEM;
        uring->reader = reader;
        sem_init(&uring->is_opened, 0, 0);

        uring->chains = calloc(depth, sizeof(*uring->chains));
        uring->free_chains = calloc(depth, sizeof(*uring->free_chains));
        r = uring->chains && uring->free_chains ? mailbox_init(&uring->mailbox, depth + 1) : -ENOMEM;
        if (r < 0) {
                uring_free(uring);
                return r;
        }
        while (uring->n_free < depth) {
                uring->free_chains[uring->n_free] = depth - 1 - uring->n_free;
                uring->n_free++;
        }

        *ret_uring = uring;
        return 0;
}

/* Starts the thread and waits for the result of opening the ring. */
static int start_thread(struct uring *uring, struct why *why) {
        int r;

        r = reader_thread_start(uring->reader, &uring->thread, "dl-reader", uring_main, uring);
        if (r < 0)
                return why_errno(why, r, "io_uring's thread");

        while (sem_wait(&uring->is_opened) < 0)
                assert(errno == EINTR);
        if (uring->open_result < 0) {
                thread_join(uring->thread);
                if (why)
                        *why = uring->open_why;
        }
        return uring->open_result;
}

static int uring_start(struct reader *reader, struct why *why) {
        uint32_t n_threads = reader->options.n_threads < POOL_THREADS ? reader->options.n_threads : POOL_THREADS;
        struct uring *uring = NULL;
        int r;

        r = uring_new(reader, &uring);
        if (r < 0)
                return why_errno(why, r, "io_uring's memory");

        /* Before the ring's thread, which needs it. */
        r = reader_pool_start(reader, n_threads, why);
        if (r < 0) {
                uring_free(uring);
                return r;
        }

        r = start_thread(uring, why);
        if (r < 0) {
                reader_pool_leave(reader);
                reader_pool_fini(reader);
                uring_free(uring);
                return r;
        }

        reader->uring = uring;
        return 0;
}

static void uring_submit(struct reader *reader, struct read_request *request) {
        int r = mailbox_push(&reader->uring->mailbox, request);

        assert(r == 0); /* there is room for depth requests and the message to leave */
        (void)r;
}

static void uring_leave(struct reader *reader) {
        struct uring *uring = reader->uring;
        int r;

        reader_pool_leave(reader);
        if (atomic_exchange(&uring->is_told_to_leave, true))
                return;
        r = mailbox_push(&uring->mailbox, uring);
        assert(r == 0);
        (void)r;
}

static void uring_fini(struct reader *reader) {
        struct uring *uring = reader->uring;
        void *item;

        thread_join(uring->thread);
        reader_pool_fini(reader);
        /* After the pool, because a done() above may have submitted another request. */
        while ((item = mailbox_pop(&uring->mailbox)))
                if (item != uring)
                        reader_cancel(reader, item);

        uring_free(uring);
        reader->uring = NULL;
}

const struct reader_backend reader_uring = {
        .name = "io_uring",
        .start = uring_start,
        .submit = uring_submit,
        .leave = uring_leave,
        .fini = uring_fini,
};
