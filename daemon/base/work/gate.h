/* base/work/gate.h: threads of several users that work for long take turns, so that only a few of them run at once.
 *
 * A thread enters before it works, passes every few milliseconds, and leaves at the end. While others wait, it may have
 * to wait in gate_pass() until it is its turn again. Next is whoever waits of the user who has had the least time
 * inside (base/threads/fair_queue.h). So any number of threads of one user leave to another user what one of them
 * would. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/threads/fair_queue.h"

#define GATE_TURN_NS 5000000u /* how long a thread stays inside before it lets others in */

struct gate {
        pthread_mutex_t lock; /* only the queue's own lock is taken inside it */
        struct fair_queue queue;
        uint32_t n_most; /* threads that may be inside */
        uint32_t n_inside, n_waiting;
};

/* Of one thread. Zeroed at first. */
struct gate_turn {
        struct fair_item item;
        pthread_cond_t called;
        bool is_called;
        uint64_t since_ns;
};

void gate_init(struct gate *gate, uint32_t n_most);

/* Nobody is inside, and nobody waits. */
void gate_fini(struct gate *gate);

/* Blocks until it is this thread's turn. */
void gate_enter(struct gate *gate, struct fair_share *share, struct gate_turn *turn);

/* Lets others in, if the turn has lasted long enough and it is somebody else's: then it blocks until it is this
 * thread's again. Returns the time that the turn took; 0: it goes on. */
uint64_t gate_pass(struct gate *gate, struct gate_turn *turn);

/* Returns what the last turn took. */
uint64_t gate_leave(struct gate *gate, struct gate_turn *turn);
