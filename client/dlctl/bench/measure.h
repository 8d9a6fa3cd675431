/* dlctl/bench/measure.h: how fast this node serves a dataset to a trainer that takes no time. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/dlctl/bench/times.h"
#include "client/dlctl/command.h"
#include "client/include/dlclient.h"
#include "proto/limits.h"

#define BENCH_VERDICT_MAX 2100u /* bytes with NUL */

/* What was measured; all but the first batch is between two moments at which batches were taken. */
struct measured {
        char pipeline[DLP_PIPELINE_MAX]; /* in its normal spelling */
        double first_batch_s;            /* from dlc_open() on */
        double seconds;
        uint64_t n_batches, n_samples;
        uint64_t n_skipped;     /* damaged samples */
        uint64_t n_bytes;       /* handed out */
        uint64_t waited_ns;     /* in dlc_next() */
        uint64_t worker_ns;     /* of the daemon's workers, for this job */
        uint64_t all_worker_ns; /* the same for all jobs, also of users whose jobs are not shown; never less */
        double client_s;        /* CPU time of this process */
        uint32_t n_workers;
        uint32_t n_other_jobs; /* that were served at its end: they share workers and disks */
        struct times times;    /* of dlc_next() */
        char limit[32];        /* what dlctl diagnose would say of the time that was measured */
        char verdict[BENCH_VERDICT_MAX];
};

/* Opens a loader, reads `seconds` after a moment of warming up, epoch after epoch, and closes it. A shorter stream ends
 * it earlier. Shows on stderr how far it is, if that is a terminal. Returns an exit code, an error has been printed;
 * EXIT_INTERRUPTED after SIGINT or SIGTERM, then `ret_measured` has what there is by then (no batch: seconds is 0). */
int measure(const struct context *context, const struct dlc_options *options, double seconds,
            struct measured *ret_measured);

/* Has a signal come? The handlers are installed by the first measure(). */
bool measure_is_interrupted(void);
