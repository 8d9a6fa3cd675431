/* pipeline/memory/scratch_account.h: how much of the memory for large pictures a user, a household, or a job, has had
 * (pipeline/memory/scratch.h).
 *
 * What counts is bytes times the time for which they were held, divided by the job's weight. */
#pragma once

#include <stdint.h>

/* Part of a user, a household and a job; zeroed at first, except `above`; guarded by the pool's lock. */
struct scratch_account {
        struct scratch_account *above; /* a job's household's, and a household's user's; NULL: a user's */
        uint64_t had;                  /* SCRATCH_ACCOUNT_UNIT */
        uint64_t now;                  /* `had` of the one below it that was served last: new ones begin there */
        uint32_t n_active;             /* tasks that hold memory or wait for it */
};
