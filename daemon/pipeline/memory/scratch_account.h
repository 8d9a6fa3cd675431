/* pipeline/memory/scratch_account.h: how much of the memory for large pictures a user, or a job, has had (pipeline/memory/scratch.h).
 *
 * What counts is bytes times the time for which they were held, divided by the job's weight. */
#pragma once

#include <stdint.h>

/* Part of a user and of a job; zeroed at first; guarded by the pool's lock. */
struct scratch_account {
        uint64_t had;      /* SCRATCH_ACCOUNT_UNIT */
        uint64_t now;      /* of a user: `had` of the job of that user that was served last; new jobs begin there */
        uint32_t n_active; /* tasks that hold memory or wait for it */
};
