/* pipeline/failure/damage.h: how many damaged samples a job has met, and how many it tolerates.
 *
 * A sample counts once, whichever rank of this node meets it, in however many epochs: what is limited is the dataset's
 * state and not the run's length. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/bitmap.h"
#include "proto/base/why.h"

struct damage {
        pthread_mutex_t lock; /* guards `met`; a leaf */
        struct bitmap met;
        _Atomic uint64_t n_met;
        uint64_t n_allowed; /* 0: any number */
};

/* Can this be asked for? 0 any number; below 1 a share of the samples; else a whole number. 0 or -EINVAL. */
int max_errors_check(double max_errors, struct why *why);

/* The number that it stands for; 0: any. A share is rounded up. `max_errors` has been checked. */
uint64_t max_errors_allowed(double max_errors, uint64_t n_samples);

/* 0 or -ENOMEM. */
int damage_init(struct damage *damage, double max_errors, uint64_t n_samples);
void damage_fini(struct damage *damage);

/* A rank has met this one. Returns false if that is one too many. Any thread. */
bool damage_meet(struct damage *damage, uint64_t sample);
