/* stage/cluster_guard.h: ends the process if a call that knows no deadline does not come back. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct guard {
        pthread_t thread;
        pthread_mutex_t lock;
        pthread_cond_t ended;
        bool has_ended; /* under lock */
        bool is_running;
        uint64_t deadline_ns;
        uint32_t seconds;
        int status;
        const char *what;
};

/* From now on, for `seconds`: then the process says `what` (NULL: nothing) and ends with `status`, without further ado.
 * If no thread is to be had, nothing is guarded. Both from the same thread; `guard` stays where it is in between. */
void guard_begin(struct guard *guard, uint32_t seconds, int status, const char *what);
void guard_end(struct guard *guard);
