/* base/pace.h: a ceiling on the CPU time that a set of threads takes, without privileges.
 *
 * Each thread says after each piece of work how much CPU time it took. All of it goes into one account that is paid off
 * at the ceiling's speed; whoever finds it overdrawn rests until what he sees is paid. So the threads together stay
 * below the ceiling over any time much longer than a piece of work, none sleeps while it holds work, and nothing comes
 * in bursts but PACE_CREDIT_NS of what was saved up. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define PACE_CREDIT_NS 20000000u /* wall time: who was idle may be so far ahead */

struct pace {
        pthread_mutex_t lock; /* a leaf; covers what follows */
        pthread_cond_t changed;
        _Atomic uint64_t milli; /* CPU time a wall time, in thousandths; 0 = no ceiling; read without the lock, too */
        uint64_t paid_at_ns;    /* when all that was taken so far is paid */
        uint32_t n_set;         /* how often the ceiling was set: who rests under an old one goes on */
        bool is_stopped;
};

void pace_init(struct pace *pace);
void pace_fini(struct pace *pace);

/* Another ceiling; what is owed is forgotten, and who rests goes on. Any thread. */
void pace_set(struct pace *pace, uint64_t milli);

/* Nobody rests any more. */
void pace_stop(struct pace *pace);

/* Behind a piece of work: takes account of the calling thread's CPU time since its last call and rests if that is due.
 * `clock_ns` is the thread's own, 0 at first. Without a ceiling costs a load. */
void pace_rest(struct pace *pace, uint64_t *clock_ns);

/* The arithmetic: `spent_ns` of CPU time were taken until `now_ns`. Returns when to go on. lock is held. */
uint64_t pace_charge(struct pace *pace, uint64_t now_ns, uint64_t spent_ns);
