/* pipeline/workers/pool.h: the set of workers: how many there are, and what they may take.
 *
 * The number can change while work goes on. One more is a thread that begins to take from the queue; one fewer is a
 * word in the queue: the next worker that comes for a sample ends instead. So no sample is ever taken away from a
 * worker, and it does not matter which of them ends.
 *
 * Threads: only the main thread, except pool_n_workers(). */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "daemon/base/machine/cpus.h"
#include "daemon/base/settings.h"
#include "daemon/base/work/pace.h"
#include "daemon/pipeline/counters.h"
#include "daemon/pipeline/workers/worker_thread.h"

#define POOL_TEXT_MAX 320u

enum {
        POOL_NICE_STAYS = 1
};

struct pool_options {
        const struct settings *settings; /* in force: workers, nice and cpu_ceiling */
        struct fair_queue *ready;
        struct planner *planner;
        struct budget *budget;
        struct scratch_pool *scratch;
        struct decode_limits limits;
        enum decode_jpeg decode_jpeg;
        struct cells *cells;         /* whose time counts as the workers'; NULL: there are none */
        struct isolation *isolation; /* NULL: workers decode */
        uint64_t scratch_bytes;      /* of all workers together, at most */
};

struct pool {
        struct worker_options options; /* for workers that begin */
        struct cells *cells;
        uint64_t scratch_bytes; /* of all together, at most */
        const struct settings *settings;
        uint32_t n_asked;         /* 0: as many as there are CPUs for us */
        bool is_by_hand;          /* that is not the configuration's */
        uint32_t nice;            /* as configured last, */
        struct cpu_share ceiling; /* and this */
        struct cpus cpus;         /* as found when the number was set */
        struct pace pace;
        _Atomic uint32_t n_workers;          /* without those that are to end */
        struct counters left;                /* the counters of workers that have ended */
        struct worker *workers[WORKERS_MAX]; /* by the number in their names; NULL = free */
};

/* No worker yet. Takes a zeroed pool. */
void pool_init(struct pool *pool, const struct pool_options *options);

/* Stops the queue, waits for the workers' samples, joins. Once; takes a zeroed pool. */
void pool_stop(struct pool *pool);

/* Applies the settings, at the start and after each reload; counts the CPUs anew. Does not wait for workers
 * that are to end: their samples may take a while. Returns 0; POOL_NICE_STAYS if running workers may not lower their
 * nice value (new ones have it); -ENOMEM with the numbers or -EAGAIN (too many threads): then their number is
 * unchanged. */
int pool_configure(struct pool *pool, struct why *why);

/* Another number by hand, until the configuration is read again. -EINVAL above WORKERS_MAX; errors as above. */
int pool_set_workers(struct pool *pool, uint32_t n_workers, struct why *why);

/* Any thread. */
uint32_t pool_n_workers(const struct pool *pool);

/* The number that was asked for: 0 for as many as CPUs. */
uint32_t pool_n_asked(const struct pool *pool);

/* What they may take of CPU time per wall time, in thousandths: affinity, quota and ceiling. Main thread. */
uint64_t pool_cpus_milli(const struct pool *pool);

/* Scratch that its workers have reserved: each keeps what it had at its start, whatever the number of workers becomes.
 */
uint64_t pool_scratch_bytes(const struct pool *pool);

/* The reason for their number, and what they may take, for people. */
const char *pool_text(const struct pool *pool, char text[POOL_TEXT_MAX]);

/* Adds what all workers have counted since the start. */
void pool_count(struct pool *pool, struct counters *sum);
