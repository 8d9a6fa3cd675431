/* pipeline/workers/worker.h: what a worker has while it works on samples: decoder, workspace, scratch memory, counters. Its own thread
 * (pipeline/workers/worker_thread.h) alone. */
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/base/base_trace.h"
#include "daemon/base/budget.h"
#include "daemon/base/threads/fair_queue.h"
#include "daemon/base/work/pace.h"
#include "daemon/codec/codec_tools.h"
#include "daemon/pipeline/counters.h"
#include "daemon/pipeline/isolation/rendering.h"
#include "daemon/pipeline/memory/scratch.h"

struct planner;

#define WORKER_SCRATCH_BYTES (8ull << 20) /* a picture of about a megapixel, and its rows */

/* Handed from the function that met it to those that handle it (pipeline/failure/failure.h). */
struct fault {
        int error;
        uint32_t code; /* if the batch fails: as of job_fail() */
        struct why why;
};

struct worker {
        pthread_t thread;
        pid_t tid;
        uint32_t idx;             /* in its name */
        struct fair_queue *ready; /* tasks whose bytes have arrived, or could not be read */
        struct planner *planner;  /* where tasks go back to */
        struct budget *budget;
        struct scratch_pool *scratch; /* for samples for which its own scratch is too small */
        struct pace *pace;
        struct decode_limits limits;
        enum decode_jpeg decode_jpeg;
        int nice; /* that it begins with */

        sem_t began; /* posted when `result` is set */
        int result;  /* of making decoder and workspace */
        struct why why;

        _Alignas(64) struct counters *counters; /* its own counters, added up when somebody asks */
        struct codec_tools *tools;
        uint64_t own_bytes;        /* of scratch, paid for as long as it lives */
        uint64_t clock_ns;         /* own thread: base/work/pace.h */
        uint64_t serving_ns;       /* own thread: time of the current sample */
        struct fair_thread taking; /* the queue's */
        const struct batch *batch; /* own thread: of the current sample, */
        bool may_yield, yields;    /* which can be made again from its bytes later, and is to be */
        struct fault fault;        /* own thread: what is wrong with it */
        struct counters counted;
        struct rendering rendering;   /* own thread: what cells do for it */
        struct trace_thread traced;   /* own thread */
        struct trace_subject subject; /* own thread: of the current sample, while trace_is_on() */
        _Atomic bool has_left;        /* set last: only the join is left */
};

/* Has it, or the task, as much scratch memory already? Its own thread. */
bool worker_has_scratch(const struct worker *worker, const struct task *task, uint64_t need);

/* Lets the worker use so much memory for its sample. Returns 0; SCRATCH_WAITS: the task comes back once there is as
 * much; -EFBIG: there never is. worker_settle() gives it back. Its own thread. */
int worker_reserve(struct worker *worker, struct task *task, uint64_t need);
void worker_settle(struct worker *worker, struct task *task);

/* Where it counts what it does for a batch's job. */
struct tally *worker_tally(const struct worker *worker, const struct batch *batch);
