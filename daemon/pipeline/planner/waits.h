/* pipeline/planner/waits.h: why a rank waits, and that it is told.
 *
 * One reason at a time (proto/wait_reason.h), since when, and a detail. What stops the planner is noted where that
 * happens, in feed->stopped_by. Reads and functions that do not come back are noticed by a look at all tasks, four
 * times a second. waits_tell() finds the gravest of them in each turn and writes it into the rank's shared page, where
 * its client and the main thread read it.
 *
 * All functions run on the planner's thread. */
#pragma once

#include "daemon/pipeline/planner/planner.h"

/* Begins a look: forgets what the last one noticed, and notices what functions wait for. Then call waits_notice_read()
 * for each task whose read has not come back. */
void waits_look(struct planner *planner, uint64_t now_ns);
void waits_notice_read(const struct task *task, uint64_t now_ns);

/* Each turn, before anything is planned. */
void waits_tell(struct planner *planner);
