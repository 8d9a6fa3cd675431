/* pipeline/failure/outage.h: is a dataset's file system out of order, or is one of its samples damaged?
 *
 * A worker whose read failed asks outage_judge(). What only the file can be blamed for is damage at once. Otherwise the
 * sample is a suspect: a thread looks at the dataset and at the sample (data/look.h), and until it has looked the
 * sample waits. The rule, the same on every node:
 *
 *   - The dataset cannot be read: an outage. It is held; looks follow after 0.1 s, 0.2 s, ... 5 s, and nothing else is
 *     read meanwhile.
 *   - The dataset can be read, before and after the sample was looked at, and the sample cannot: it is damaged; if the
 *     error may pass (EIO, ESTALE), then only after SUSPECT_LOOKS such looks in a row, which take 0.7 s.
 *   - Otherwise it is read again.
 *
 * One thread a dataset, and only while there is something to look at. It may hang on a dead mount, so nobody waits for
 * it: whoever lets go of the outage leaves it to the thread.
 *
 * Threads: any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/dataset.h"
#include "proto/base/why.h"

#define SUSPECT_LOOKS 4u

struct outage;

/* 0 or -ENOMEM. Holds the dataset. */
int outage_new(struct dataset *dataset, struct outage **ret_outage);

/* The owner's: no look begins any more. Never blocks. NULL is fine. */
void outage_free(struct outage *outage);

enum outage_verdict {
        OUTAGE_DAMAGE, /* of the sample */
        OUTAGE_WAIT,   /* read it again once outage_has_cleared() says so of *ret_round */
};

/* Reading `sample` failed with `error`. Blocks for a mutex only. */
enum outage_verdict outage_judge(struct outage *outage, uint64_t sample, int error, uint64_t *ret_round);

/* Has a look that began after outage_judge() found the dataset readable? */
bool outage_has_cleared(struct outage *outage, uint64_t round);

/* Can the dataset not be read, as far as is known? `ret_why` (may be NULL) names the folder and says why. Also true for
 * a look that has not come back for a second. */
bool outage_is_held(struct outage *outage, struct why *ret_why);

/* Looks that have found the dataset readable after an outage: files that are kept open are of before. */
uint64_t outage_n_ended(const struct outage *outage);

/* Begins the look that is due, if its thread could not be started before (no memory). */
void outage_poke(struct outage *outage);
