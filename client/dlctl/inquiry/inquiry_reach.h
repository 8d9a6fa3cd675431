/* dlctl/inquiry/inquiry_reach.h: connects to the daemon that the other commands would ask, without waiting for it. */
#pragma once

#include "client/dlctl/command.h"
#include "client/lib/connection.h"

enum reach {
        REACH_GIVEN,   /* an option or DATALOADERD_SOCKET names its socket */
        REACH_NODE,    /* the daemon of this node */
        REACH_PRIVATE, /* this user's private daemon; none is started */
};

/* Tries once; `client` is the caller's name, for the daemon's log, and static. Returns 0 or a negative errno; the
 * sentence is for people. `connection` may be closed in any case; *ret_reach is where it was looked last. */
int reach_try(const struct context *context, const char *client, struct dli_connection *connection, struct why *reason,
              enum reach *ret_reach);

/* "given", "node", "private" */
const char *reach_name(enum reach reach);
