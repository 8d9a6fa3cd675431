/* pipeline/failure/outage.h: is a dataset's file system out of order, or is one of its samples damaged?
 *
 * A worker whose read failed calls outage_judge(). An error that only the file can cause is damage at once. Otherwise
 * the sample becomes a suspect and waits, until a thread has looked at the dataset and at the sample (data/look.h). The
 * rule is the same on every node:
 *
 *   - The dataset cannot be read: an outage. The dataset is held; looks follow after 0.1 s, 0.2 s, ... 5 s, and nothing
 *     else is read in the meantime.
 *   - The dataset can be read, both before and after the look at the sample, but the sample cannot: it is damaged. If
 *     the error may be temporary (EIO, ESTALE), it takes READ_ERROR_TRIES such looks in a row, which is 0.7 s.
 *   - Otherwise the sample is read again.
 *
 * There is one thread for each dataset, and only while there is something to look at. It may hang on a dead mount, so
 * no other thread waits for it: an owner that lets go of the outage leaves it to the thread.
 *
 * Threads: any. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/dataset.h"
#include "proto/base/why.h"

struct outage;

/* Returns 0 or -ENOMEM. Holds the dataset. */
int outage_new(struct dataset *dataset, struct outage **ret_outage);

/* Called by the owner: no look begins after this. Never blocks. Takes NULL. */
void outage_free(struct outage *outage);

enum outage_verdict {
        OUTAGE_DAMAGE, /* the sample is damaged */
        OUTAGE_WAIT,   /* read the sample again once outage_has_cleared() returns true for *ret_round */
};

/* Reading `sample` failed with `error`. Blocks only for a mutex. */
enum outage_verdict outage_judge(struct outage *outage, uint64_t sample, int error, uint64_t *ret_round);

/* Has a look that began after outage_judge() found the dataset readable? */
bool outage_has_cleared(struct outage *outage, uint64_t round);

/* Is the dataset known not to be readable? `ret_why` (may be NULL) names the folder and says why. Also true while a
 * look has been running for more than a second. */
bool outage_is_held(struct outage *outage, struct why *ret_why);

/* The number of looks that found the dataset readable after an outage: files that were opened before may be of an old
 * mount. */
uint64_t outage_n_ended(const struct outage *outage);

/* Begins the look that is due if its thread could not be started before (no memory). */
void outage_poke(struct outage *outage);
