/* dlctl/diagnose/job_name.h: a job that a person has named. */
#pragma once

#include "client/dlctl/diagnose/jobs_seen.h"

/* Is there a job with this name among `jobs`? If not, says so for the command, and which there are. Returns an exit
 * code. */
int job_name_check(const struct jobs_seen *jobs, const char *command, const char *name);
