/* lib/daemon/start.h: a private daemon is started, if there is none.
 *
 * Of all processes that want one, the holder of a lock starts it (`dataloaderd --private`), and the others wait until
 * the socket answers. The process that is started ends as soon as it does; the daemon itself is not a child of this
 * process. Nothing here waits: a step is made, and the caller pauses and tries to connect between two steps. A holder
 * that dies gives up the lock, and the next one finds the daemon that it has begun, or starts one. While a daemon that
 * does not answer holds its own lock (PATH.sock.lock), none is started; after half a minute that is an error. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "client/lib/reason.h"
#include "proto/private.h"

struct dli_start {
        struct dlp_private place;
        int lock_fd;        /* of the file `start`, while this process starts one; -1 */
        pid_t pid;          /* of the process that starts the daemon; 0: none */
        off_t logged;       /* bytes that the log had before */
        int n_failed;       /* starts that ended well, and nobody answered */
        int n_busy;         /* starts that found another daemon, which did not answer either */
        uint64_t locked_ns; /* since when a daemon's lock is seen held while nobody answers; 0: it is free */
};

#define DLI_START_NONE ((struct dli_start){ .lock_fd = -1 })

/* Nobody answers at place.socket: makes the next step. Returns 0: connect at once; -EAGAIN: in a moment; or a final
 * error: -ECONNREFUSED with the last line of the log, or what else went wrong. */
int dli_start_step(struct dli_start *start, struct why *reason);

/* Gives up the lock, and what was begun: connected, or not wanted any more. */
void dli_start_end(struct dli_start *start);
