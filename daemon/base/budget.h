/* base/budget.h: the account of memory_limit.
 *
 * Rings, buffers and caches are reserved here before they are allocated, so that a request that does not fit is
 * refused, and running jobs are never affected. The account only counts: it neither allocates nor frees. */
#pragma once

#include <stdint.h>

#include "proto/base/why.h"

struct budget {
        uint64_t limit_bytes;        /* fixed before threads start; UINT64_MAX: no limit */
        const char *variable;        /* of the environment, which sets memory_limit; NULL: a configuration does */
        _Atomic uint64_t used_bytes; /* relaxed: a sum, it orders nothing else; <= limit_bytes */

        /* A user's share: what is reserved here is reserved in `whole` as well, and is at most a percentage of what
         * others have left there. NULL: this is the whole. */
        struct budget *whole;
        _Atomic uint32_t percent;
        uint32_t uid;

        _Atomic uint32_t n_held; /* pieces of its memory that clients keep after they have left (ring/lent.h) */
};

/* An empty share of `whole`, which outlives it. */
void budget_share_init(struct budget *share, struct budget *whole, uint32_t uid, uint32_t percent);

/* Takes `bytes` for `what` ("the ring of rank 3"), all or nothing. Returns 0, or -ENOMEM with a sentence that names the
 * numbers and what to do; of a share it begins with "user_memory". Any thread; never blocks. */
int budget_reserve(struct budget *budget, uint64_t bytes, const char *what, struct why *why);

/* Returns reserved bytes; returning more than was reserved is our own bug (asserted). Any thread. */
void budget_release(struct budget *budget, uint64_t bytes);

/* The bytes that are reserved now. */
uint64_t budget_used(struct budget *budget);
