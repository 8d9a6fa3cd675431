/* ctl/accept.h: new connections. A client that is refused one is told why, and is not left waiting in the queue.
 *
 * Out of descriptors the listening socket stays readable. A spare descriptor answers then: it is given up for the
 * connection that waits, which is told and closed. Where even that fails (out of memory, the system's table of files is
 * full) the loop pauses for a moment, and goes on by itself, at the latest after that moment. */
#pragma once

#include "proto/base/why.h"

struct server;

int accept_start(struct server *server, struct why *why);

/* Something was freed: a pause, if there is one, is over. */
void accept_again(struct server *server);

/* Closes the listening socket. Again: does nothing. */
void accept_stop(struct server *server);
