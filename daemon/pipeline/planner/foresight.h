/* pipeline/planner/foresight.h: what a rank needs in this epoch and the next, where several jobs share an origin and not all of
 * it can stay in the cache: the cache keeps what is needed next by any of them (store/cache/uses.h). */
#pragma once

#include "daemon/pipeline/planner/planner.h"

struct foresight;

/* Looks a little further for each feed, and tells the cache how far they are. Planner only; quick. Returns whether
 * there is more to look at now. */
bool foresight_go_on(struct planner *planner);

/* Of a feed that is freed; NULL is fine. */
void foresight_free(struct planner *planner, struct foresight *foresight);
