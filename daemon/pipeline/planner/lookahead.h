/* pipeline/planner/lookahead.h: what ranks will need is fetched before it is planned, where their dataset lies elsewhere.
 *
 * The order is known, so what a rank gets in the next half minute is known as well, whatever its ring can hold. A
 * feed's look-ahead goes through its epoch plan as planning does, further on, and asks the cache for the bytes of each
 * sample with the time when it is due (store/cache/cache.h). Not where a sampler makes the order: it says what a batch
 * holds only when the batch is begun. */
#pragma once

#include "daemon/pipeline/planner/planner.h"

/* Looks a little further ahead for each feed. Planner only; quick. Returns whether there is more to look at now. */
bool lookahead_go_on(struct planner *planner);
