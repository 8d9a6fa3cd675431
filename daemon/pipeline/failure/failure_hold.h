/* pipeline/failure/failure_hold.h: samples that wait until their dataset can be read again.
 *
 * A read of a sample has failed, and it is not known yet whether the sample or its file system is at fault
 * (pipeline/failure/outage.h). Such a sample leaves its task, so that other samples can use the task, and is parked
 * with its stream. When a look has found the dataset readable, the sample is read again, before anything new is planned
 * for the stream: so a job goes on exactly where it was. While the dataset cannot be read, nothing of the stream is
 * planned, and its client is told why. After outage_timeout the job ends with the reason.
 *
 * All functions run on the planner's thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/pipeline/planner.h"

#define HOLD_TELL_MS 1000          /* between two looks at a stream that waits for samples, to say what it waits for */
#define HOLD_TICK_MS 50            /* how often parked samples are checked */
#define HOLD_SLOW_NS 5000000000ull /* a read that takes longer is slow */

struct parked;

/* Takes the sample out of its task, which is then free. Returns false if there is no memory: the task keeps the sample
 * and pauses. */
bool hold_park(struct planner *planner, struct task *task);

/* A read that has not come back for HOLD_SLOW_NS is reported to the client like an outage, for each stream its slowest
 * read: a disk that hangs reports nothing itself. The notes are renewed from time to time: hold_forget_slow() removes
 * all of them, then hold_note_slow() is called for each task that is reading. */
void hold_forget_slow(struct planner *planner);
void hold_note_slow(struct planner *planner, const struct task *task, uint64_t now_ns);

/* The same for streams whose functions have no process of the trainer to run in. */
void hold_note_alone(struct planner *planner, uint64_t now_ns);

/* Reads again the samples that may be read again, and ends those that are not wanted any more or have waited too
 * long. */
void hold_go_on(struct planner *planner);
