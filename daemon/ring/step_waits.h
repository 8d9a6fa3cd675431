/* ring/step_waits.h: how long the ranks of a job waited for their data in its steps.
 *
 * Ranks that add up gradients wait for each other after each step, so the one that waits longest for its batch holds up
 * all of them, and it may be another one in each step. What the job loses is therefore the sum over the steps of the
 * longest wait, which the sums of the ranks do not tell. For people only: the numbers come from clients. */
#pragma once

#include <pthread.h>
#include <stdint.h>

#define STEP_WAITS_N 128u /* steps that may be open: ranks report a batch when they have had a ring's batches more */

struct step_waits {
        pthread_mutex_t lock; /* a leaf; guards what follows */
        struct {
                uint64_t epoch, step;
                uint64_t longest_ns;
        } steps[STEP_WAITS_N];
        uint64_t total_ns;
};

void step_waits_init(struct step_waits *waits);
void step_waits_destroy(struct step_waits *waits);

/* A rank has waited for its batch of this step. One that comes when its place has been taken by a later step is left
 * out. Any thread. */
void step_waits_add(struct step_waits *waits, uint64_t epoch, uint64_t step, uint64_t wait_ns);

/* Any thread. */
uint64_t step_waits_total(struct step_waits *waits);
