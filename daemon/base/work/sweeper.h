/* base/work/sweeper.h: gives back large pieces of memory, on a thread of its own.
 *
 * The kernel frees pages at one or two GiB a second, on a busy machine less. A ring or an order may have many GiB, and
 * the thread that is the last to let go of it is usually the planner's or the main one, which serves everybody: so any
 * user could stop all others by leaving. Here they only leave a note. What is small they free themselves. */
#pragma once

#include <stdint.h>

#include "daemon/base/threads/queue.h"
#include "proto/base/why.h"

#define SWEEP_BYTES (16ull << 20) /* from this size on: milliseconds */

/* Part of what is to be freed, so that leaving it here cannot fail. */
struct sweep {
        STAILQ_ENTRY(sweep) entry;
        void (*work)(void *userdata);
        void *userdata;
};

/* Before that and after the end, everything is done by its caller. */
int sweeper_start(struct why *why);

/* Does the rest first. */
void sweeper_stop(void);

/* Runs work(userdata), which frees `n_bytes`: now if they are few, else soon, on the sweeper's thread. The sweep is the
 * callee's from then on. Any thread. */
void sweeper_free(struct sweep *sweep, uint64_t n_bytes, void (*work)(void *userdata), void *userdata);

/* What still waits or is being done. */
uint32_t sweeper_n_waiting(void);

/* Unmaps, in pieces: meanwhile no other thread of the process can map anything. */
void sweeper_unmap(void *base, uint64_t n_bytes);
