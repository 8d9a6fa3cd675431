/* ring/held.h: memory that clients still hold after they have left.
 *
 * A client may keep its mappings and descriptors for as long as it likes: arrays outlive the loader, a forked child has
 * inherited them. The pages stay until the last of them is gone, so they stay charged to memory_limit until then.
 *
 * How is it known? A client gets open file descriptions of its own (held_lend()), not the daemon's. A description lives
 * as long as any descriptor, mapping, forked child or packet on its way refers to it. A write lease on the file is
 * granted only to who has it open alone; unlike a lock on the description, the client cannot give up what it says
 * without giving up the memory. Where leases do not work (an old kernel, a file system without them) a shared lock that
 * the description holds is asked instead; who removes that one on purpose has its pages taken away, as far as the seals
 * allow.
 *
 * Threads: any; the list has a lock, a leaf. A look costs a few system calls a piece of memory. */
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "daemon/base/budget.h"
#include "daemon/base/queue.h"
#include "proto/base/why.h"

#define HELD_WHOSE_MAX 192u

struct held;

struct held_list {
        pthread_mutex_t lock;
        TAILQ_HEAD(, held) list;  /* lock */
        _Atomic uint64_t n_bytes; /* charged for them */
        _Atomic uint32_t n;
};

void held_list_init(struct held_list *list);

/* Lets go of all, whoever holds it: the process ends. Gives the budget back. */
void held_list_fini(struct held_list *list);

/* Opens the memory anew, for a client: O_RDONLY or O_RDWR. Returns the descriptor, which is to be closed once it is
 * sent; else a negative errno: without /proc it is not known who holds what, so nothing is handed out. */
int held_lend(int fd, int flags, struct why *why);

/* Takes over a piece of memory that is no longer mapped here: its descriptor, and `n_bytes` of `budget` (which
 * outlives the list), which are released once nobody holds it any more; now, if so. `whose` is copied, for the log. */
void held_leave(struct held_list *list, struct budget *budget, int fd, uint64_t n_bytes, const char *whose);

/* Frees what nobody holds any more. Called now and then, and when memory is short. */
void held_look(struct held_list *list);
