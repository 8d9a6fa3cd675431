/* base/work/pace.h: a ceiling on the CPU time that a set of threads takes, without privileges.
 *
 * After each piece of work a thread reports how much CPU time it took. All of it goes into one account that is paid off
 * at the ceiling's rate; a thread that finds it overdrawn rests until it is paid off. So the threads together stay
 * below the ceiling over any time much longer than a piece of work, no thread sleeps while it holds work, and a burst
 * is at most PACE_CREDIT_NS long. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define PACE_CREDIT_NS 20000000u /* wall time that idle threads may save up */

struct pace {
        pthread_mutex_t lock; /* a leaf; covers what follows */
        pthread_cond_t changed;
        _Atomic uint64_t milli; /* CPU time per wall time, in thousandths; 0 = no ceiling; also read without the lock */
        uint64_t paid_at_ns;    /* when all that was taken so far is paid */
        uint32_t n_set;         /* how often the ceiling was set: a thread that rests under an old one continues */
        bool is_stopped;
};

void pace_init(struct pace *pace);
void pace_fini(struct pace *pace);

/* Sets another ceiling; what is owed is forgotten, and resting threads continue. Any thread. */
void pace_set(struct pace *pace, uint64_t milli);

/* Ends all rests, now and later. */
void pace_stop(struct pace *pace);

/* Is there a ceiling? */
bool pace_is_set(const struct pace *pace);

/* Call it after a piece of work: charges the calling thread's CPU time since its last call, and `others_ns` that
 * others took for it, and rests if that is due. `clock_ns` belongs to the thread, 0 at first. Without a ceiling it
 * costs one load. */
void pace_rest(struct pace *pace, uint64_t *clock_ns, uint64_t others_ns);

/* The arithmetic: `spent_ns` of CPU time were taken until `now_ns`. Returns when to continue. lock is held. */
uint64_t pace_charge(struct pace *pace, uint64_t now_ns, uint64_t spent_ns);
