/* core/listen.h: the listening socket: systemd's, or one of our own at a path that nobody else serves. */
#pragma once

#include "proto/base/why.h"

struct listener {
        int fd;
        int lock_fd; /* of "PATH.lock": held for as long as we serve the path */
        char *path;  /* to be removed at the end; NULL if the socket is systemd's */
};

/* Takes the socket that systemd passed, or makes one at `path` with `mode`. A socket file that a dead daemon left is
 * replaced; one that is served is not: -EADDRINUSE. -ENAMETOOLONG, -EACCES, ... with a sentence. */
int listener_open(struct listener *listener, const char *path, unsigned mode, struct why *why);

/* Removes the socket file, if it is ours. The descriptor is closed by whoever took it over. */
void listener_close(struct listener *listener);
