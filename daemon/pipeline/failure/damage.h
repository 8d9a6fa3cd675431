/* pipeline/failure/damage.h: how many damaged samples a job has met, and how many it tolerates.
 *
 * A sample counts once, whichever rank of this node meets it, and in however many epochs: the limit is for the state of
 * the dataset, not for the length of the run. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/bitmap.h"
#include "proto/base/why.h"

struct damage {
        pthread_mutex_t lock; /* guards `met`; no other lock is taken under it */
        struct bitmap met;
        _Atomic uint64_t n_met;
        uint64_t n_allowed; /* 0: any number */
};

/* Is this value allowed? 0 means any number, a value below 1 is a share of the samples, and any other must be a whole
 * number. Returns 0 or -EINVAL. */
int max_errors_check(double max_errors, struct why *why);

/* The number of samples that the value stands for; 0: any. A share is rounded up. `max_errors` must have been
 * checked. */
uint64_t max_errors_allowed(double max_errors, uint64_t n_samples);

/* Returns 0 or -ENOMEM. */
int damage_init(struct damage *damage, double max_errors, uint64_t n_samples);
void damage_fini(struct damage *damage);

/* A rank has met this damaged sample. Returns false if that is one too many. Any thread. */
bool damage_meet(struct damage *damage, uint64_t sample);
