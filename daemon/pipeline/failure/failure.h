/* pipeline/failure/failure.h: what happens to a sample that could not be served. The job's policy (on_error)
 * decides. */
#pragma once

#include "daemon/pipeline/workers/worker.h"

/* worker->fault has the error that was met with the task's candidate, and what is wrong with it. Followed by
 *
 *      PARK         it is not known yet whether the sample or its file system is at fault (pipeline/failure/outage.h)
 *      REST         a lack of memory or descriptors: the same candidate after a pause
 *      SUBSTITUTE   the next candidate
 *      SKIP         it is left out of its batch
 *      FAIL         its batch fails, and its job */
enum sample_state failure_decide(struct worker *worker, struct task *task);

enum sample_state failure_skip(struct worker *worker, struct task *task);

/* With worker->fault. */
enum sample_state failure_fail(struct worker *worker, struct task *task);

/* A function that gets the batch of the task whole has failed, or processes have ended over it: the batch fails, and
 * its job with it, whatever its policy for samples is, since no sample is to blame. The ledger has it with the first
 * one. Any worker. */
void failure_of_batch(struct task *task, const struct why *why, struct counters *counters);
