/* lib/daemon/daemon_program.h: where the program dataloaderd is, for starting a private daemon. */
#pragma once

#include <limits.h>

#include "client/lib/reason.h"

/* $DATALOADERD_PROGRAM; else beside the library or dlctl, as the wheel, the build and an installation have it; else in
 * PATH and where system programs are. Returns 0; -ECONNREFUSED, saying where it was looked for. */
int dli_program_find(char ret_path[PATH_MAX], struct why *reason);
