/* pipeline/worker.h: the pool that turns encoded samples into pixels in their place.
 *
 * Workers take samples from one queue, so that a batch is spread over all of them and an idle one never waits beside a
 * busy one. When several jobs have samples there, the job that has had the least of the workers' time comes first. Each
 * owns a decoder and a workspace and keeps them warm; in the steady state a sample allocates nothing. A worker makes
 * what it works with itself, on its own thread: so the memory is near to the CPUs that it runs on, and what it writes
 * for each sample lies in no cache line that another worker writes. */
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/base/budget.h"
#include "daemon/base/fair_queue.h"
#include "daemon/base/pace.h"
#include "daemon/codec/codec.h"
#include "daemon/pipeline/counters.h"
#include "daemon/pipeline/memory/scratch.h"
#include "daemon/pipeline/planner.h"

#define WORKER_SCRATCH_BYTES (8ull << 20) /* a picture of about a megapixel, and its rows */

struct worker {
        pthread_t thread;
        pid_t tid;
        uint32_t idx;             /* in its name */
        struct fair_queue *ready; /* tasks whose bytes have come, or could not */
        struct planner *planner;  /* where tasks go back to */
        struct budget *budget;
        struct scratch_pool *scratch; /* for what its own does not suffice for */
        struct pace *pace;
        struct decode_limits limits;
        enum decode_jpeg decode_jpeg;
        int nice; /* that it begins with */

        sem_t began; /* posted when `result` is there */
        int result;  /* of making what it works with */
        struct why why;

        _Alignas(64) struct counters *counters; /* what it counts into: its own, added up when somebody asks */
        struct codec_tools *tools;
        uint64_t own_bytes;  /* of scratch, paid for as long as it lives */
        uint64_t clock_ns;   /* own thread: base/pace.h */
        uint64_t serving_ns; /* own thread: that the sample in hand took */
        struct counters counted;
        _Atomic bool has_left; /* its last word: only the join is left */
};

struct worker_options {
        struct fair_queue *ready;
        struct planner *planner;
        struct budget *budget;
        struct scratch_pool *scratch;
        struct pace *pace;
        struct decode_limits limits;
        enum decode_jpeg decode_jpeg;
        int nice;
        uint64_t scratch_bytes; /* to pay for from the start; WORKER_SCRATCH_BYTES unless memory is short */
};

/* Waits until it has what it works with. -ENOMEM with the numbers if the scratch does not fit the budget; then nothing
 * is left behind. */
int worker_start(const struct worker_options *options, uint32_t idx, struct worker **ret_worker, struct why *why);

/* Joins, and frees it. The queue must have been stopped, or have dismissed it: it then ends its sample and leaves. What
 * it needed goes when it leaves, not only here. */
void worker_join(struct worker *worker);

/* Sets its nice value, 0 to 19. Lowering it needs a privilege (-EACCES). Any thread. */
int worker_set_nice(struct worker *worker, int nice);
