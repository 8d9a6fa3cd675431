/* pipeline/schedule.h: whose sample is planned next, and what becomes of a stream's cursor on the way.
 *
 * The planner's decisions without its thread: epochs and their orders, slots and their batches, and who is served
 * first. All of it runs on the planner's thread. */
#pragma once

#include "daemon/pipeline/planner.h"

/* Plans until nobody can take more or all tasks are under way. Streams that cannot go on have said why: is_full,
 * needs_order, is_ended. */
void schedule_plan(struct planner *planner);

/* May the stream's job have another task now, for a sample that is read again? It wants one: others leave it its part.
 */
bool schedule_may_take(struct planner *planner, struct stream *stream);
