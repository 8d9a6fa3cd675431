/* ctl/jobs/ctl_replay.h: how far a job is that is served some batches again (pipeline/replay/replay.h). */
#pragma once

#include "daemon/ctl/server.h"
#include "daemon/pipeline/jobs/job.h"

/* Fills in the message, whose texts are static. Returns whether it is under way: until its trainer has taken the last
 * of these batches. Main thread. */
bool replay_tell(struct server *server, const struct job *job, Dlp__ReplayReply *reply);
