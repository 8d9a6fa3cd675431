/* ring/lent.h: memory that clients still hold after they have left.
 *
 * A client may keep its mappings and descriptors for as long as it likes: arrays outlive the loader, or a forked child
 * has inherited them. The pages exist until the last of these is gone, so they stay charged to memory_limit until then.
 *
 * How does the daemon know? A client gets open file descriptions of its own (lent_open()), not the daemon's. A
 * description lives as long as any descriptor, mapping, forked child or packet on its way refers to it. The kernel
 * grants a write lease on the file only if nobody else has it open; unlike a lock on the description, the client cannot
 * change that without releasing the memory. Where leases do not work (an old kernel, a file system without them), a
 * shared lock on the description is checked instead; if a client removes that lock on purpose, its pages are taken
 * away, as far as the seals allow.
 *
 * Threads: any; the list has a lock, a leaf. A look costs a few system calls a piece of memory. */
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "daemon/base/budget.h"
#include "daemon/base/threads/queue.h"
#include "proto/base/why.h"

#define LENT_WHOSE_MAX 192u

struct lent;

struct lent_list {
        pthread_mutex_t lock;
        TAILQ_HEAD(, lent) list;  /* lock */
        _Atomic uint64_t n_bytes; /* charged for them */
        _Atomic uint32_t n;
};

void lent_list_init(struct lent_list *list);

/* Releases all entries, whoever holds the memory, because the process ends. Returns the bytes to the budget. */
void lent_list_fini(struct lent_list *list);

/* Opens the memory anew, for a client: O_RDONLY or O_RDWR. Returns the descriptor, to be closed after it has
 * been sent; else a negative errno. -ENOSYS: there is no /proc, and it would be unknown who holds what. */
int lent_open(int fd, int flags, struct why *why);

/* Takes over a piece of memory that is no longer mapped here: its descriptor, and `n_bytes` of `budget` (which
 * outlives the list), which are released when nobody holds it any more, perhaps at once. `whose` is copied, for the
 * log. */
void lent_leave(struct lent_list *list, struct budget *budget, int fd, uint64_t n_bytes, const char *whose);

/* Frees what nobody holds any more. Called now and then, and when memory is short. */
void lent_look(struct lent_list *list);
