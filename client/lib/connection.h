/* lib/connection.h: a socket to the daemon, and calls on it.
 *
 * A call sends one Request and waits for the Reply with its id. In between, wake-ups and the daemon's reason for
 * closing may arrive; they are recognised and kept apart. dlctl uses the same functions. One thread at a time. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/lib/reason.h"
#include "proto/base/shown/progress.h"
#include "proto/frame.h"

#define DLI_ANSWER_TIMEOUT_MS 60000 /* the longest that the daemon works on one request: making a large ring */
#define DLI_SEND_TIMEOUT_S    5     /* waiting for a place in the daemon's queue */

#define DLI_ASK_AGAIN 1 /* the daemon is not ready yet: ask again in a moment */

struct dli_connection {
        int socket;         /* -1: none */
        bool interruptible; /* a signal ends a call with -EINTR; otherwise the call continues */
        uint64_t n_calls;
        const char *client; /* name of the caller, for the daemon's log; static */
        int sent_fd;        /* goes with each request to attach, and stays the caller's; -1: none */
        uint8_t *packet;    /* DLP_PACKET_MAX bytes */
        char path[DLP_SOCKET_PATH_MAX + 1];
        int farewell_code;   /* errno that the daemon sent before it closed the connection; 0: none */
        struct why farewell; /* its text */

        struct dlp_progress progress;   /* that came with DLI_ASK_AGAIN; without a phase: none did */
        uint64_t asked;                 /* id of the question what is waited for; 0: none is open */
        struct dlp_progress waited_for; /* the answer to the last one; without a phase: nothing that could be told */
};

/* Connects; `path` NULL means the default. Returns 0, -ECONNREFUSED (no daemon listens there), -EINVAL (path), -ENOMEM.
 * `connection` may be closed in any case; at the beginning it is interruptible. */
int dli_connection_open(struct dli_connection *connection, const char *path, const char *client, struct why *reason);
void dli_connection_close(struct dli_connection *connection);

/* The same, without waiting for a place in the daemon's queue: for callers that try again later. */
int dli_connection_try(struct dli_connection *connection, const char *path, const char *client, struct why *reason);

/* Sends `request` (its envelope is filled in here) and waits for the answer, at most timeout_ms.
 * Returns 0 with a reply (free it with dlp__reply__free_unpacked()) and the descriptors that came with it, now the
 * caller's; DLI_ASK_AGAIN, with what is being waited for in `reason`; or a negative errno: what the daemon
 * refused with, -ETIMEDOUT, -EINTR (if interruptible), -ECONNRESET, -EPROTONOSUPPORT, -EPROTO. */
int dli_connection_call(struct dli_connection *connection, Dlp__Request *request, int timeout_ms, struct why *reason,
                        Dlp__Reply **ret_reply, int *ret_fds, size_t n_fds);

/* The two halves of a call. If the answer is not there yet (-ETIMEDOUT, -EINTR), the caller may wait for it again;
 * sending blocks for DLI_SEND_TIMEOUT_S at most. */
int dli_connection_send(struct dli_connection *connection, Dlp__Request *request, struct why *reason);
int dli_connection_answer(struct dli_connection *connection, uint64_t deadline_ns, struct why *reason,
                          Dlp__Reply **ret_reply, int *ret_fds, size_t n_fds);

/* Asks what the rank waits for that is attached here, and does not wait for the answer: it is in `waited_for` after a
 * later drain, when `asked` is 0 again. Never blocks; if it cannot be sent now, it is not. */
void dli_connection_ask(struct dli_connection *connection, uint64_t epoch);

/* Has the daemon ended, as opposed to a daemon that closed the connection because of something that we did? */
bool dli_connection_is_restart(const struct dli_connection *connection);

/* Waits until there is something to receive. Returns 1, 0 when the deadline has passed, or negative errno (-EINTR). */
int dli_connection_wait(const struct dli_connection *connection, uint64_t deadline_ns);

/* Takes in all packets that no call waits for. Returns 0, or -ECONNRESET once the daemon is gone. Never blocks. */
int dli_connection_drain(struct dli_connection *connection, struct why *reason);
