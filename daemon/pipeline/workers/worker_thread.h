/* pipeline/workers/worker_thread.h: the threads that turn a sample's stored bytes into tensors, in their place in the slot.
 *
 * Workers take samples from one queue, so that a batch is spread over all of them and no worker is idle beside a busy
 * one. When several jobs have samples there, the job that has had the least of the workers' time comes first. Each
 * worker owns a decoder and a workspace and keeps them; in the steady state a sample allocates nothing. A worker makes
 * these itself, on its own thread: so their memory is near the CPUs on which it runs, and what it writes for each
 * sample shares no cache line with another worker. */
#pragma once

#include "daemon/pipeline/workers/worker.h"

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

/* The CPU time that it has taken beyond what its counters say. Any thread, before the join. */
uint64_t worker_cpu_ns(struct worker *worker);

/* Sets its nice value, 0 to 19. Lowering it needs a privilege (-EACCES). Any thread. */
int worker_set_nice(struct worker *worker, int nice);
