/* dlctl/diagnose/job_name.h: a job that a person has named. */
#pragma once

#include "client/dlctl/glance.h"

/* Is there a job with this name in this look? If not, says so for the command, and which there are. Returns an exit
 * code. */
int job_name_check(const struct glance *glance, const char *command, const char *name);
