/* pipeline/failure/failure.h: what becomes of a sample that could not be served: the job's policy. */
#pragma once

#include "daemon/pipeline/counters.h"
#include "daemon/pipeline/task.h"

enum failure {
        FAILURE_ENDS,       /* the sample has ended: left out, or the batch is to fail */
        FAILURE_SUBSTITUTE, /* the task goes back to be read with the next candidate, */
        FAILURE_LATER,      /* or with the same one when it has rested, */
        FAILURE_HELD,       /* or when it is known that the dataset can be read (pipeline/failure/outage.h) */
};

/* Any worker, which met `error` with the task's candidate; `why` says what is wrong with the file. */
enum failure failure_handle(struct task *task, int error, const struct why *why, struct counters *counters);
