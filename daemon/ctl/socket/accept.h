/* ctl/socket/accept.h: new connections. A client that is refused one is told why, and is not left waiting in the queue.
 *
 * Without free descriptors the listening socket stays readable. Then a spare descriptor is used: it is closed to accept
 * the waiting connection, which gets the reason and is closed. If even that fails (out of memory, the system's file
 * table is full), accepting pauses for a moment and continues by itself. */
#pragma once

#include "proto/base/why.h"

struct server;

int accept_start(struct server *server, struct why *why);

/* Call it when a descriptor or memory was freed: ends a pause, if there is one. */
void accept_again(struct server *server);

/* Closes the listening socket. A second call does nothing. */
void accept_stop(struct server *server);
