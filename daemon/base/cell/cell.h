/* base/cell/cell.h: a process of the daemon's own program that has no files and no network, as the daemon sees it.
 *
 * What strangers made is interpreted in cells, so that a mistake in a decoder hands nobody more than a cell: what its
 * memories hold, and packets on a channel whose other end believes no word (base/cell/words.h). A cell is for one user.
 *
 * A cell belongs to one thread, which starts it, gives it orders one at a time, and ends it. It ends with that thread.
 * Memories are forgotten by any thread. The lock of `struct cells` is a leaf; nothing that waits is done with it. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/base/cell/words.h"
#include "daemon/base/queue.h"

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

/* All cells unmap the memory, as soon as they are done with what they do. Any thread. */
void cells_forget(struct cells *cells, uint64_t number);

/* CPU time that cells have taken, with those that have ended. Any thread. */
uint64_t cells_cpu_ns(struct cells *cells);

/* Sets the nice value of all that live; errors as worker_set_nice(). Any thread. */
int cells_set_nice(struct cells *cells, int nice);

/* ---- one of them: its thread ------------------------------------------------------------------------------------- */

/* Starts one and waits until it is confined, ten seconds at most. -EAGAIN, -ENOMEM, -EMFILE: the machine is short of
 * something; anything else with what is wrong. */
int cell_start(struct cells *cells, const char *kind, const void *setup, size_t n_setup, struct cell **ret_cell,
               struct why *why);

pid_t cell_pid(const struct cell *cell);

/* Its CPU time so far, as the kernel counts it. */
uint64_t cell_cpu_ns(const struct cell *cell);

/* From now on orders may name the memory. Nothing is done if they may already. */
int cell_lend(struct cell *cell, const struct cell_memory *memory);

/* For how long to wait. */
struct cell_patience {
        uint64_t limit_ns;
        bool (*is_over)(void *userdata); /* asked once a second: does nobody want the answer any more? */
        void *userdata;
};

/* Sends an order, which begins with a struct cell_head whose number is filled in here, and waits for its answer, which
 * is copied as it is: nothing in it is checked but its head. Returns its bytes, sizeof(struct cell_head) to
 * CELL_MESSAGE_MAX. -EPIPE: the cell has ended; -ETIMEDOUT: it does not answer; -EPROTO: it answered something else;
 * -ECANCELED: nobody wants the answer. After an error it can only be ended. */
ssize_t cell_ask(struct cell *cell, void *order, size_t n_order, void *answer, const struct cell_patience *patience);

/* Ends it, whatever it does. `error` of cell_ask(): then `ret_how` says how it ended, as in "ended by signal 11
 * (Segmentation fault)", with what it wrote to its standard error. 0: it is not needed any more. Takes NULL. */
void cell_end(struct cell *cell, int error, struct why *ret_how);
