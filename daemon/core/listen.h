/* core/listen.h: the listening sockets: systemd's, or our own at paths that nobody else serves. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/why.h"

struct listener {
        int fd;
        int lock_fd;            /* of "PATH.lock": held for as long as we serve the path */
        char *path;             /* to be removed at the end; NULL if the socket is systemd's */
        uint64_t device, inode; /* of the socket file at the path */
};

/* What a socket of our own is for: messages begin with the name of its setting. */
struct listener_kind {
        const char *setting;     /* "socket" */
        int type;                /* SOCK_SEQPACKET */
        const char *when_served; /* what to do: another daemon serves the path, */
        const char *when_taken;  /* or something else is there */
};

extern const struct listener_kind LISTENER_MAIN, LISTENER_PRIVATE, LISTENER_METRICS;

/* Takes the lock of a path, which only one process may hold that serves it. -EADDRINUSE: another one has it. */
int listener_lock(const struct listener_kind *kind, const char *path, int *ret_fd, struct why *why);

/* Takes the socket that systemd passed, or makes one at `path` with `mode`. Errors as listener_bind(). */
int listener_open(struct listener *listener, const char *path, unsigned mode, struct why *why);

/* The second half of that: a socket of our own. `lock_fd` is that of listener_lock(), and is taken over if the call
 * succeeds; -1: the lock is taken here. A socket file that a dead daemon left is replaced; one that is served is not:
 * -EADDRINUSE. -ENAMETOOLONG, -EACCES, ... with a sentence. */
int listener_bind(struct listener *listener, const struct listener_kind *kind, const char *path, unsigned mode,
                  int lock_fd, struct why *why);

/* Is the socket file still there, so that clients can find it? True for systemd's. */
bool listener_is_there(const struct listener *listener);

/* Removes the socket file, if it is ours. The descriptor is closed by whoever took it over. */
void listener_close(struct listener *listener);
