/* pipeline/planner/schedule.h: whose sample is planned next, and how a feed's cursor moves.
 *
 * The planner's decisions without its thread: epochs and their orders, slots and their batches, and who is served
 * first. All of it runs on the planner's thread. */
#pragma once

#include "daemon/pipeline/planner/planner.h"

/* Plans until no feed can take more or all tasks are under way. A feed that cannot continue says so in
 * stopped_by, or has ended. */
void schedule_plan(struct planner *planner);

/* May the feed's job have another task now, for a sample that is read again? It also registers that the job wants
 * one.
 */
bool schedule_may_take(struct planner *planner, struct feed *feed);
