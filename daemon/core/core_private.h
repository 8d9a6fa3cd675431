/* core/core_private.h: a daemon that its user's own processes start, for that user alone (proto/private.h says where it is).
 *
 * Whoever starts it runs `dataloaderd --private` and waits: the process that was started ends with 0 once the socket
 * answers, and the daemon goes on as a process of its own, in its own session, with nothing inherited but the
 * environment. It ends when nobody has been connected for a while, or when its socket is not at its place any more. */
#pragma once

#include <stdbool.h>
#include <sys/stat.h>

#include "daemon/base/settings.h"
#include "proto/private.h"

#define PRIVATE_VARIABLE "DATALOADERD_PRIVATE" /* of the environment: its settings */

#define EX_RUNNING 75 /* EX_TEMPFAIL: another one runs, or is just starting */

struct private_daemon {
        struct dlp_private place;
        int lock_fd;  /* held while it lives; -1: not taken, or taken over */
        int ready_fd; /* the starter waits at its other end; -1: nobody does */
};

/* Finds the place, takes the lock, and, unless it is to stay in the foreground, leaves the process that was started:
 * returns 0 in the daemon; in the other process, once the daemon serves or has ended, an exit code above 0, or
 * PRIVATE_SERVES. -EADDRINUSE: another one has the lock; other errnos. Before there is any thread. */
#define PRIVATE_SERVES 256
int private_begin(struct private_daemon *private, bool in_foreground, struct why *why);

/* What a private daemon has instead of a configuration: a quarter of the memory that may be used, all CPUs, an index
 * folder that can be written; and what DATALOADERD_PRIVATE and DATALOADERD_IDLE in the environment change. */
int private_settings(const struct private_daemon *private, struct settings *ret_settings, struct why *why);

/* The socket answers: tells the starter. */
void private_ready(struct private_daemon *private);

/* A long log is moved aside, so that both parts together stay within 2 MiB. Call it once a second. */
void private_trim_log(const struct private_daemon *private);

void private_end(struct private_daemon *private);
