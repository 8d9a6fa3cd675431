/* base/cell/cell.h: code that runs in another process, as the daemon sees it.
 *
 * A cell is a process of the daemon's own program that does what the daemon should not. What strangers made is
 * interpreted in cells that have no files and no network, so that a mistake in a decoder hands nobody more than a cell:
 * what its memories hold, and packets on a channel whose other end believes no word (base/cell/cell_messages.h). What
 * the administrator has installed runs in cells that keep the daemon's rights, so that its mistakes cost nobody else
 * anything. All else is the same:
 *
 *      cell_start()        starts the process, unless it runs
 *      cell_area_widen()   memory that the daemon and cells have mapped; it outlives the process
 *      cell_lend()         the process gets a memory, unless it has it
 *      cell_ask()          an order, which says where in its memories things lie; its answer. The process works on
 *                          nothing else meanwhile, so the order is what it has ended over if it ends
 *      cell_reject()       the answer makes no sense
 *
 * Where there is no answer, or none in time, the process has been ended, `why` says what it did instead, and the next
 * cell_start() replaces it. Whether the order is given again, and what is to blame, is up to whoever asked.
 *
 * A cell belongs to one thread at a time. Its process ends with the thread that started it, and all that it started
 * ends with it. Memories are forgotten by any thread. The lock of `struct cells` is a leaf; nothing that waits is done
 * with it. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/base/cell/cell_messages.h"
#include "daemon/base/cell/spawn.h"
#include "daemon/base/threads/queue.h"

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

/* Memory that the daemon has mapped, too. */
struct cell_area {
        struct cell_memory memory; /* number 0: there is none */
        uint8_t *bytes;
};

/* An empty area. -ENOMEM, -EMFILE. Any thread. */
int cell_area_make(struct cells *cells, const char *name, uint64_t n_bytes, struct cell_area *ret_area);

/* Makes room for n_bytes, and always for one: what lay there is copied, and places in it are no longer valid. -ENOMEM,
 * -EMFILE: it stays as it is. */
int cell_area_widen(struct cells *cells, const char *name, uint64_t n_bytes, struct cell_area *area);

/* Does nothing if there is none. */
void cell_area_drop(struct cells *cells, struct cell_area *area);

/* CPU time that cells have taken, with those that have ended. Any thread. */
uint64_t cells_cpu_ns(struct cells *cells);

/* Sets the nice value of all that live; errors as worker_set_nice(). Any thread. */
int cells_set_nice(struct cells *cells, int nice);

/* ---- one of them: its thread ------------------------------------------------------------------------------------- */

/* All zeroes: no process runs. Private to base/cell. */
struct cell {
        LIST_ENTRY(cell) entry; /* cells->lock */
        struct cells *cells;
        enum cell_trust trust;
        struct spawned process; /* pid 0: none */
        uint64_t n_orders;
        uint64_t known[CELL_MEMORIES_MAX]; /* cells->lock; numbers of the memories that it has, 0: none */
        uint32_t idx_next;                 /* of the memory that makes room for another */
        int error;                         /* of lending; the next order has it */
        uint64_t asked_cpu_ns;             /* what it had taken when that was last asked */
};

/* For how long to wait. */
struct cell_patience {
        uint64_t limit_ns;
        bool (*is_over)(void *userdata); /* asked five times a second: does nobody want the answer any more? NULL: no */
        void *userdata;
};

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

/* Starts one and waits until it is ready, if none runs. CELL_REFUSES; the errors of cell_ask(); -EAGAIN, -ENOMEM,
 * -EMFILE, ...: no process was started. */
int cell_start(struct cell *cell, struct cells *cells, const struct cell_terms *terms, struct why *why);

/* Is this the error of a process that was there, and has ended? */
bool cell_has_failed(int error);

/* From now on orders may name the memory. Nothing is done if they may already. */
void cell_lend(struct cell *cell, const struct cell_memory *memory);

/* Sends an order, which begins with a struct cell_head whose number is filled in here, and waits for its answer, which
 * is copied as it is: nothing in it is checked but its head. Returns its bytes, sizeof(struct cell_head) to
 * CELL_MESSAGE_MAX. Else the process has ended, and `why` continues its name: -EPIPE: by itself, or with an answer that
 * makes no sense; -ETIMEDOUT: it did not answer; -ECANCELED: nobody wants the answer. */
ssize_t cell_ask(struct cell *cell, void *order, size_t n_order, void *answer, const struct cell_patience *patience,
                 struct why *why);

/* Ends the process, whose answer makes no sense. Returns -EPIPE, as cell_ask() would. */
int cell_reject(struct cell *cell, struct why *why);

/* Ends the process with all that it has started, whatever it does, if it runs. */
void cell_end(struct cell *cell);

/* 0: none runs. */
pid_t cell_pid(const struct cell *cell);

/* CPU time that the process has taken since this was asked; a system call. */
uint64_t cell_cpu_ns(struct cell *cell);
