/* A sweeper whose thread is kept from working for a moment: what is left to it meanwhile waits, and what a caller frees
 * by itself does not. */
#pragma once

#include <check.h>
#include <pthread.h>
#include <sched.h>

#include "daemon/base/work/sweeper.h"

struct stuck_sweeper {
        struct sweep sweep;
        pthread_mutex_t lock;
};

static inline void stuck_until_unlocked(void *userdata) {
        struct stuck_sweeper *stuck = userdata;

        pthread_mutex_lock(&stuck->lock);
        pthread_mutex_unlock(&stuck->lock);
}

static inline void sweeper_stick(struct stuck_sweeper *stuck) {
        pthread_mutex_init(&stuck->lock, NULL);
        pthread_mutex_lock(&stuck->lock);
        sweeper_free(&stuck->sweep, SWEEP_BYTES, stuck_until_unlocked, stuck);
}

/* Returns when all that was left to it is done. */
static inline void sweeper_go_on(struct stuck_sweeper *stuck) {
        ck_assert_uint_gt(sweeper_n_waiting(), 1); /* something was left to it */
        pthread_mutex_unlock(&stuck->lock);
        while (sweeper_n_waiting() > 0)
                sched_yield();
        pthread_mutex_destroy(&stuck->lock);
}
