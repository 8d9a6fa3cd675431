/* pipeline/planner/planner_thread.h: which sample is read next, for whom.
 *
 * One thread. It takes free slots, turns them into batches of sample indices (order + rank + world + cursor), and keeps
 * the reader busy. When there is a choice it serves the job that has the fewest samples under way, and of that job the
 * rank that will run dry first: the one whose prepared batches last the shortest time at the speed at which it takes
 * them. When all rings are full it sleeps, and a release wakes it: a full ring is the only backpressure. */
#pragma once

#include "daemon/pipeline/planner/planner.h"

int planner_start(struct planner *planner, const struct planner_options *options);

/* All feeds must have been removed; tasks may still be under way. Joins the thread. */
void planner_stop(struct planner *planner);
