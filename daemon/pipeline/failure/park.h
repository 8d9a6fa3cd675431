/* pipeline/failure/park.h: samples that wait until their dataset can be read again.
 *
 * A read of a sample has failed, and it is not known yet whether the sample or its file system is at fault
 * (pipeline/failure/outage.h). Such a sample leaves its task, so that other samples can use the task, and is parked
 * with its feed (planner_park()). When a look has found the dataset readable, the sample is read again, before
 * anything new is planned for the feed: so a job goes on exactly where it was. While the dataset cannot be read,
 * nothing of the feed is planned, and its client is told why (pipeline/planner/waits.h). After outage_timeout the job
 * ends with the reason.
 *
 * All functions run on the planner's thread. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/pipeline/planner/planner.h"

#define PARK_TICK_MS 50 /* how often parked samples are checked */

/* Reads again the samples that may be read again, and ends those that are not wanted any more or have waited too
 * long. */
void park_go_on(struct planner *planner);

/* Since when the first of the feed's parked samples could not be read. There is one. */
uint64_t park_since_ns(const struct feed *feed);
