/* lib/daemon/daemon_who.h: what a daemon says about itself. */
#pragma once

#include <stdbool.h>

#include "client/lib/connection.h"

struct dli_who {
        bool is_private;
        bool serves_paths; /* that this user names */
};

/* Asks; waits a few seconds at most. Errors as dli_connection_call(); one of a version that does not know the question
 * refuses it. */
int dli_who_ask(struct dli_connection *connection, struct dli_who *ret_who, struct why *reason);
