/* pipeline/worker.h: the threads that turn a sample's stored bytes into tensors, in their place in the slot.
 *
 * Workers take samples from one queue, so that a batch is spread over all of them and no worker is idle beside a busy
 * one. When several jobs have samples there, the job that has had the least of the workers' time comes first. Each
 * worker owns a decoder and a workspace and keeps them; in the steady state a sample allocates nothing. A worker makes
 * these itself, on its own thread: so their memory is near the CPUs on which it runs, and what it writes for each
 * sample shares no cache line with another worker. */
#pragma once

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/base/base_trace.h"
#include "daemon/base/budget.h"
#include "daemon/base/fair_queue.h"
#include "daemon/base/work/pace.h"
#include "daemon/codec/codec_tools.h"
#include "daemon/pipeline/counters.h"
#include "daemon/pipeline/isolation/rendering.h"
#include "daemon/pipeline/memory/scratch.h"
#include "daemon/pipeline/planner.h"

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

struct worker_options {
        struct fair_queue *ready;
        struct planner *planner;
        struct budget *budget;
        struct scratch_pool *scratch;
        struct pace *pace;
        struct decode_limits limits;
        enum decode_jpeg decode_jpeg;
        int nice;
        struct isolation *isolation; /* NULL: it decodes by itself */
        uint64_t scratch_bytes;      /* to pay for from the start; WORKER_SCRATCH_BYTES unless memory is short */
};

/* Waits until the worker has made its decoder and workspace. -ENOMEM with the numbers if the scratch does not fit the
 * budget; then everything is undone. */
int worker_start(const struct worker_options *options, uint32_t idx, struct worker **ret_worker, struct why *why);

/* Joins the thread and frees the worker. The queue must have been stopped, or have dismissed the worker, which then
 * finishes its sample and ends. Its decoder and workspace are freed when it ends, not only here. */
void worker_join(struct worker *worker);

/* Has it, or the task, as much scratch memory already? Its own thread. */
bool worker_has_scratch(const struct worker *worker, const struct task *task, uint64_t need);

/* Lets the worker use so much memory for its sample. Returns 0; SCRATCH_WAITS: the task comes back once there is as
 * much; -EFBIG: there never is. worker_settle() gives it back. Its own thread. */
int worker_reserve(struct worker *worker, struct task *task, uint64_t need);
void worker_settle(struct worker *worker, struct task *task);

/* Where it counts what it does for a batch's job. */
struct tally *worker_tally(const struct worker *worker, const struct batch *batch);

/* The CPU time that it has taken beyond what its counters say. Any thread, before the join. */
uint64_t worker_cpu_ns(struct worker *worker);

/* Sets its nice value, 0 to 19. Lowering it needs a privilege (-EACCES). Any thread. */
int worker_set_nice(struct worker *worker, int nice);
