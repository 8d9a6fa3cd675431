/* pipeline/failure/failure.h: what happens to a sample that could not be served. The job's policy (on_error)
 * decides. */
#pragma once

#include "daemon/pipeline/counters.h"
#include "daemon/pipeline/task.h"

enum failure {
        FAILURE_ENDS,       /* the sample has ended: it is left out, or the batch will fail */
        FAILURE_SUBSTITUTE, /* the task goes back, to be read with the next candidate */
        FAILURE_LATER,      /* the task goes back, to be read with the same candidate after a pause */
        FAILURE_HELD,       /* the same, once it is known that the dataset can be read (pipeline/failure/outage.h) */
};

/* Called by the worker that met `error` with the task's candidate. `why` says what is wrong with the file. Any
 * worker. */
enum failure failure_handle(struct task *task, int error, const struct why *why, struct counters *counters);

/* A function that gets the batch of the task whole has failed, or processes have ended over it: the batch fails, and
 * its job with it, whatever its policy for samples is, since no sample is to blame. The ledger has it with the first
 * one. Any worker. */
void failure_of_batch(struct task *task, const struct why *why, struct counters *counters);
