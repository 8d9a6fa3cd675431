#include "client/lib/daemon/find.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/clock.h"

#define START_TIMEOUT_MS 60000
#define PAUSE_MS         5
#define WHO_TIMEOUT_MS   5000

static bool is_given(const char *socket) {
        const char *variable = getenv("DATALOADERD_SOCKET");

        return socket || (variable && *variable);
}

/* Does the daemon let this user name paths? One that does not know the question does not. */
static bool serves_paths(struct dli_connection *connection) {
        Dlp__WhoRequest body = DLP__WHO_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        Dlp__Reply *reply = NULL;
        struct why reason; /* not used: then the private daemon is asked */
        bool serves;

        request.body_case = DLP__REQUEST__BODY_WHO;
        request.who = &body;
        if (dli_connection_call(connection, &request, WHO_TIMEOUT_MS, &reason, &reply, NULL, 0) != 0)
                return false;
        serves = reply->body_case == DLP__REPLY__BODY_WHO && reply->who->serves_paths;
        dlp__reply__free_unpacked(reply, NULL);
        return serves;
}

static bool connect_system(struct dli_connection *connection, const char *client) {
        struct why reason; /* not used, as above */

        if (dli_connection_try(connection, dlp_socket_system(), client, &reason) == 0 && serves_paths(connection))
                return true;
        dli_connection_close(connection);
        return false;
}

int dli_daemon_connect_private(struct dli_connection *connection, const char *client, struct why *reason) {
        struct dlp_private place;
        int r;

        *connection = (struct dli_connection){ .socket = -1, .sent_fd = -1 };
        r = dlp_private_find(&place, reason);
        if (r < 0)
                return why_set(reason, -ECONNREFUSED, "%s", ((struct why) * reason).text);
        r = dli_connection_open(connection, place.socket, client, reason);
        if (r == -ECONNREFUSED)
                why_set(reason, r, "no private daemon runs for this user (%s); a loader with a path starts one",
                        place.socket);
        return r;
}

int dli_daemon_try_private(struct dli_daemon *daemon, struct dli_connection *connection, const char *client,
                           struct why *reason) {
        int r = dlp_private_find(&daemon->start.place,
                                 reason); /* again: the folder may have gone, and be another one now */

        if (r < 0)
                return r;
        r = dli_connection_try(connection, daemon->start.place.socket, client, reason);
        if (r != -ECONNREFUSED) {
                if (r == 0)
                        dli_start_end(&daemon->start);
                return r;
        }
        dli_connection_close(connection);
        r = dli_start_step(&daemon->start, reason);
        return r == 0 || r == -EAGAIN ? -ECONNREFUSED : r;
}

/* Waits for the daemon that this process, or another one, is starting. */
static int connect_or_start(struct dli_daemon *daemon, struct dli_connection *connection, const char *client,
                            struct why *reason) {
        uint64_t deadline_ns = dli_deadline(START_TIMEOUT_MS);
        int r;

        for (;;) {
                r = dli_connection_try(connection, daemon->start.place.socket, client, reason);
                if (r != -ECONNREFUSED)
                        return r;
                dli_connection_close(connection);
                r = dli_start_step(&daemon->start, reason);
                if (r < 0 && r != -EAGAIN)
                        return r;
                if (r == -EAGAIN && clock_now_ns() >= deadline_ns) {
                        struct why waited_for = *reason;

                        return why_set(reason, -ECONNREFUSED, "no private daemon after %d s: %s",
                                       START_TIMEOUT_MS / 1000, waited_for.text);
                }
                if (r == -EAGAIN && poll(NULL, 0, PAUSE_MS) < 0)
                        return why_set(reason, -EINTR, "interrupted while a private daemon was being started");
        }
}

int dli_daemon_connect_path(struct dli_daemon *daemon, struct dli_connection *connection, const char *client,
                            struct why *reason) {
        int r;

        *daemon = DLI_DAEMON_NONE;
        daemon->kind = DLI_DAEMON_PRIVATE;
        r = dlp_private_find(&daemon->start.place, reason);
        if (r == 0)
                r = connect_or_start(daemon, connection, client, reason);
        dli_start_end(&daemon->start);
        return r;
}

int dli_daemon_connect(struct dli_daemon *daemon, struct dli_connection *connection, const char *socket, bool has_path,
                       const char *client, struct why *reason) {
        *daemon = DLI_DAEMON_NONE;
        daemon->kind = is_given(socket) ? DLI_DAEMON_GIVEN : DLI_DAEMON_SYSTEM;
        if (daemon->kind == DLI_DAEMON_GIVEN || !has_path)
                return dli_connection_open(connection, socket, client, reason);
        if (connect_system(connection, client))
                return 0;
        return dli_daemon_connect_path(daemon, connection, client, reason);
}
