/* base/work/errand.h: what a request makes threads do beside samples, such as building an index or reading a tokenizer,
 * takes no more of the CPUs the more of it a user asks for, and is paid for.
 *
 * Such threads wait for disks, for processes and for each other, so they cannot take turns as in base/work/gate.h: one
 * that hangs would keep its turn. Instead the nice value of each grows with their number. All errands of one user
 * together weigh as much as half as many threads as there are CPUs, and the kernel divides the CPUs between them and
 * those of other users. Their CPU time is charged to the user's part of the workers.
 *
 * A thread says that it begins and ends, and looks now and then: then it is charged, and follows its nice value. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/threads/fair_queue.h"

#define ERRAND_NICE_MAX 19

/* Of one user. Zeroed at first, but the payer; outlives the threads. */
struct errands {
        struct fair_group *payer; /* is charged with the time */
        _Atomic uint32_t n_threads;
};

/* The nice value of errands, from their next look on: that of a single thread, if the process itself has not a higher
 * one. Main thread, before errands or while there are some. */
void errands_set_nice(int nice);

/* The same for one of n_threads threads that together weigh as much as n_weigh of them. */
int errand_nice(int nice, uint32_t n_threads, uint32_t n_weigh);

/* The calling thread works for somebody until errand_end(); NULL: for nobody, who is not charged, and has the nice
 * value of a single thread. Somebody else sets `is_unwanted` when the work has become useless; NULL: nobody does.
 * Within an errand another one changes nothing. A thread that may not lower its nice value keeps what it had last: it
 * should end with its errand. */
void errand_begin(struct errands *errands, const _Atomic bool *is_unwanted);
void errand_end(void);

/* Quick; call it after each few thousand things, or before each read. -ECANCELED: nobody wants it any more. Outside of
 * an errand it does nothing. */
int errand_look(void);

/* That of the calling thread, for others that do a part of its work; NULL: it is nobody's, or on none. */
struct errands *errand_joined(void);
