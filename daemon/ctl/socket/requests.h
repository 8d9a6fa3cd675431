/* ctl/socket/requests.h: the requests of sessions: read, and given to their handlers, in turns. */
#pragma once

#include "daemon/ctl/session.h"

/* A session for the connection. Takes the descriptor over. A connection that quotas do not allow, or for which there is
 * no memory, is closed. */
void requests_open(struct server *server, int fd);

extern const struct session_hooks REQUESTS_HOOKS;
