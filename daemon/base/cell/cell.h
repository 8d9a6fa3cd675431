/* base/cell/cell.h: a process of the daemon's own program that does what the daemon should not, as the daemon sees it.
 *
 * What strangers made is interpreted in cells that have no files and no network, so that a mistake in a decoder hands
 * nobody more than a cell: what its memories hold, and packets on a channel whose other end believes no word
 * (base/cell/words.h). What the administrator has installed runs in cells that keep the daemon's rights, so that its
 * mistakes cost nobody else anything. All else is the same: how they start, are asked, watched, ended and replaced.
 *
 * A cell belongs to one thread at a time, which gives it orders one by one, and ends it. It ends with the thread that
 * started it, and all that it started ends with it. Memories are forgotten by any thread. The lock of `struct cells` is
 * a leaf; nothing that waits is done with it. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/base/cell/words.h"
#include "daemon/base/queue.h"

#define CELL_WRITTEN_MAX 200u /* bytes of what it wrote that are told */

struct cell;

/* All cells of a daemon. */
struct cells {
        const char *program; /* that is started; "/proc/self/exe" is this one, also after an update replaced its file */
        pthread_mutex_t lock;
        LIST_HEAD(, cell) list;      /* lock */
        uint64_t ended_cpu_ns;       /* lock; of those that have ended */
        _Atomic uint64_t n_memories; /* numbers given so far */
};

/* The program's name stays the caller's. */
void cells_init(struct cells *cells, const char *program);
void cells_fini(struct cells *cells);

/* A part of shared memory that cells may have. */
struct cell_memory {
        uint64_t number; /* no other memory has had it; 0: none */
        uint64_t n_bytes;
        int fd; /* the caller's */
        bool is_writable;
};

uint64_t cells_number(struct cells *cells);

/* Memory of this size for cells, made of `bytes` if they are given, which nobody can change then, else writable and
 * empty. Its size is fixed. -ENOMEM, -EMFILE. Any thread. */
int cells_share(struct cells *cells, const char *name, const void *bytes, uint64_t n_bytes,
                struct cell_memory *ret_memory);

/* Cells unmap it, and its descriptor is closed. Does nothing for memory of number 0. Any thread. */
void cells_unshare(struct cells *cells, struct cell_memory *memory);

/* All cells unmap the memory, as soon as they are done with what they do. Any thread. */
void cells_forget(struct cells *cells, uint64_t number);

/* CPU time that cells have taken, with those that have ended. Any thread. */
uint64_t cells_cpu_ns(struct cells *cells);

/* Sets the nice value of all that live; errors as worker_set_nice(). Any thread. */
int cells_set_nice(struct cells *cells, int nice);

/* ---- one of them: its thread ------------------------------------------------------------------------------------- */

/* For how long to wait. */
struct cell_patience {
        uint64_t limit_ns;
        bool (*is_over)(void *userdata); /* asked five times a second: does nobody want the answer any more? NULL: no */
        void *userdata;
};

/* How a cell ended. */
struct cell_ending {
        bool has_hung_up;                   /* it had closed its channel, and was killed */
        int status;                         /* as wait() says, if it had not */
        char written[CELL_WRITTEN_MAX + 1]; /* the first line of what it wrote, of a CELL_STRANGE; else "" */
};

/* "ended by signal 11 (Segmentation fault)", with what it wrote; `error` is what cell_start() or cell_ask() said. */
void cell_ending_describe(const struct cell_ending *ending, int error, struct why *ret_how);

/* What is to be started. */
struct cell_terms {
        const char *kind; /* base/cell/inside.h */
        enum cell_trust trust;
        const void *setup; /* what its kind needs */
        size_t n_setup;
        struct cell_patience hello; /* until it is ready */
};

/* Positive outcome: it says that it cannot be this, in `why`. It has ended. */
#define CELL_REFUSES 1

/* Starts one and waits until it is ready. CELL_REFUSES; the errors of cell_ask(): it ended, see `ret_ending`; -EAGAIN,
 * -ENOMEM, -EMFILE, ...: no process was started. */
int cell_start(struct cells *cells, const struct cell_terms *terms, struct cell **ret_cell,
               struct cell_ending *ret_ending, struct why *why);

pid_t cell_pid(const struct cell *cell);

/* Its CPU time so far, as the kernel counts it. */
uint64_t cell_cpu_ns(const struct cell *cell);

/* From now on orders may name the memory. Nothing is done if they may already. */
int cell_lend(struct cell *cell, const struct cell_memory *memory);

/* Sends an order, which begins with a struct cell_head whose number is filled in here, and waits for its answer, which
 * is copied as it is: nothing in it is checked but its head. Returns its bytes, sizeof(struct cell_head) to
 * CELL_MESSAGE_MAX. -EPIPE: the cell has ended; -ETIMEDOUT: it does not answer; -EPROTO: it answered something else;
 * -ECANCELED: nobody wants the answer. After an error it can only be ended. */
ssize_t cell_ask(struct cell *cell, void *order, size_t n_order, void *answer, const struct cell_patience *patience);

/* Ends it with all that it has started, whatever it does. `error` of cell_ask(): then it is given a moment to end by
 * itself if it has hung up, and `ret_ending` says how it ended. 0: it is not needed any more. Takes NULL. */
void cell_end(struct cell *cell, int error, struct cell_ending *ret_ending);
