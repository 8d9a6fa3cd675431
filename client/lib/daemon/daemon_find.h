/* lib/daemon/daemon_find.h: which daemon serves a loader.
 *
 *         the option socket, DATALOADERD_SOCKET    that one, and no other: none is started there
 *         names only                               the daemon of this node
 *         a path                                   the daemon of this node, if its configuration lets this user name
 *                                                  paths; else the user's private daemon, which is started if there
 *                                                  is none */
#pragma once

#include <stdbool.h>

#include "client/lib/connection.h"
#include "client/lib/daemon/start.h"

enum dli_daemon_kind {
        DLI_DAEMON_GIVEN,
        DLI_DAEMON_SYSTEM,
        DLI_DAEMON_PRIVATE,
};

struct dli_daemon {
        enum dli_daemon_kind kind; /* as it was found last */
        struct dli_start start;
};

#define DLI_DAEMON_NONE ((struct dli_daemon){ .start = { .lock_fd = -1 } })

/* Connects, for a loader that has a path or not. Waits while a daemon is being started, for a minute at most. Errors as
 * dli_connection_open(); `connection` may be closed in any case. */
int dli_daemon_connect(struct dli_daemon *daemon, struct dli_connection *connection, const char *socket, bool has_path,
                       const char *client, struct why *reason);

/* The private daemon that this loader was served by is gone: tries once to reach it, or makes a step towards starting
 * another one. Waits for nothing. Errors as dli_connection_try(); -ECONNREFUSED while it is on its way. */
int dli_daemon_try_private(struct dli_daemon *daemon, struct dli_connection *connection, const char *client,
                           struct why *reason);

/* As dli_daemon_connect() for a path, and always to the private daemon. */
int dli_daemon_connect_path(struct dli_daemon *daemon, struct dli_connection *connection, const char *client,
                            struct why *reason);

/* Connects to the private daemon, if there is one. -ECONNREFUSED if not. */
int dli_daemon_connect_private(struct dli_connection *connection, const char *client, struct why *reason);
