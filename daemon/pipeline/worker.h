/* pipeline/worker.h: the pool that turns encoded samples into pixels in their place.
 *
 * Workers take samples from one queue, whoever's they are, so that a batch is spread over all of them and an idle one
 * never waits beside a busy one. Each owns a decoder and a workspace and keeps them warm; in the steady state a sample
 * allocates nothing. */
#pragma once

#include <pthread.h>
#include <stdint.h>

#include "daemon/base/budget.h"
#include "daemon/base/work_queue.h"
#include "daemon/decode/decode.h"
#include "daemon/pipeline/counters.h"
#include "daemon/pipeline/planner.h"

#define WORKER_SCRATCH_BYTES (8ull << 20) /* a picture of about a megapixel, and its rows */

struct worker {
        pthread_t thread;
        struct work_queue *ready; /* tasks whose bytes have come, or could not */
        struct planner *planner;  /* where tasks go back to */
        struct budget *budget;
        struct counters *counters;
        struct decoder *decoder;
        struct workspace *workspace;
        uint64_t charged_bytes; /* own thread: paid for scratch */
        uint64_t kept_bytes;    /* paid for all the time */
        uint64_t max_scratch_bytes;
};

struct worker_options {
        struct work_queue *ready;
        struct planner *planner;
        struct budget *budget;
        struct counters *counters;
        struct decode_limits limits;
        uint64_t scratch_bytes; /* to pay for from the start; WORKER_SCRATCH_BYTES unless memory is short */
};

/* -ENOMEM with the numbers if the scratch does not fit the budget. */
int worker_start(struct worker *worker, const struct worker_options *options, uint32_t idx, struct why *why);

/* The queue must have been stopped. Joins. */
void worker_stop(struct worker *worker);
