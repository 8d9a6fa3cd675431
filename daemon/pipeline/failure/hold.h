/* pipeline/failure/hold.h: samples that wait until their dataset can be read again.
 *
 * A sample whose read failed, and of which it is not known yet whether it or its file system is to blame
 * (pipeline/failure/outage.h), leaves its task, so that others have that, and is parked with its stream. When a look
 * has found the dataset readable it is read again, before anything new is planned for the stream; so a job goes on
 * exactly where it was. As long as the dataset cannot be read nothing of the stream is planned, and its client is told
 * why. After outage_timeout the job ends with the reason.
 *
 * All of it on the planner's thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/pipeline/planner.h"

#define HOLD_TICK_MS 50            /* how often parked samples are looked after */
#define HOLD_SLOW_NS 5000000000ull /* a read that takes longer */

struct parked;

/* Takes the sample out of its task, which is free then. False without memory: the task keeps it, and rests. */
bool hold_park(struct planner *planner, struct task *task);

/* Reads that have not come back for HOLD_SLOW_NS are told like an outage, each stream's slowest: a disk that hangs says
 * nothing by itself. Noted anew now and then: first all are forgotten, then each task that is reading is shown. */
void hold_forget_slow(struct planner *planner);
void hold_note_slow(struct planner *planner, const struct task *task, uint64_t now_ns);

/* Reads again what may be read again, ends what nobody waits for any more or has waited too long. */
void hold_go_on(struct planner *planner);
