#include "client/lib/daemon/daemon_find.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/client_clock.h"
#include "client/lib/daemon/daemon_who.h"
#include "client/lib/daemon/holder.h"

#define START_TIMEOUT_MS 60000
#define PAUSE_MIN_MS     5
#define PAUSE_MAX_MS     250

static bool daemon_find_is_given(const char *socket) {
        const char *variable = getenv("DATALOADERD_SOCKET");

        return socket || (variable && *variable);
}

/* Does the daemon let this user name paths? One that does not know the question does not. */
static bool serves_paths(struct dli_connection *connection) {
        struct dli_who who;
        struct why reason; /* not used: then the private daemon is asked */

        return dli_who_ask(connection, &who, &reason) == 0 && who.serves_paths;
}

static bool connect_system(struct dli_connection *connection, const char *client) {
        struct why reason; /* not used, as above */

        if (dli_connection_try(connection, dlp_socket_system(), client, &reason) == 0 && serves_paths(connection))
                return true;
        dli_connection_close(connection);
        return false;
}

/* Nobody answers. No daemon runs then, unless somebody holds a daemon's lock. */
static int not_there(const struct dlp_private *place, struct why *reason) {
        char lock[DLP_PRIVATE_PATH_MAX + 8];
        struct why holder;

        snprintf(lock, sizeof(lock), "%s.lock", place->socket);
        if (dli_is_locked(lock, &holder))
                return why_set(reason, -ECONNREFUSED,
                               "no private daemon answers at %s, but %s: it is beginning or ending, or it hangs; then "
                               "end that process, which keeps others from starting a daemon",
                               place->socket, holder.text);
        return why_set(reason, -ECONNREFUSED,
                       "no private daemon runs for this user (%s); a loader with a path starts one", place->socket);
}

int dli_daemon_connect_private(struct dli_connection *connection, const char *client, struct why *reason) {
        struct dlp_private place;
        int r;

        *connection = (struct dli_connection){ .socket = -1, .sent_fd = -1 };
        r = dlp_private_find(&place, reason);
        if (r < 0)
                return why_set(reason, -ECONNREFUSED, "%s", ((struct why) * reason).text);
        r = dli_connection_open(connection, place.socket, client, reason);
        return r == -ECONNREFUSED ? not_there(&place, reason) : r;
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

/* Short at first, as a daemon starts in some hundredths of a second; then an eighth of what was waited. */
static int pause_ms(uint64_t began_ns) {
        uint64_t waited_ms = (clock_now_ns() - began_ns) / 1000000u, ms = waited_ms / 8;

        return ms < PAUSE_MIN_MS ? PAUSE_MIN_MS : ms > PAUSE_MAX_MS ? PAUSE_MAX_MS : (int)ms;
}

/* For too long a daemon was on its way that another process starts. */
static int too_late(const struct dli_daemon *daemon, struct why *reason) {
        struct why waited_for = *reason, holder;

        return why_set(reason, -ECONNREFUSED, "no private daemon after %d s: %s", START_TIMEOUT_MS / 1000,
                       dli_is_locked(daemon->start.place.start, &holder) ? holder.text : waited_for.text);
}

/* Waits for the daemon that this process, or another one, is starting. */
static int connect_or_start(struct dli_daemon *daemon, struct dli_connection *connection, const char *client,
                            struct why *reason) {
        uint64_t deadline_ns = dli_deadline(START_TIMEOUT_MS), began_ns = clock_now_ns();
        int r;

        for (;;) {
                r = dli_connection_try(connection, daemon->start.place.socket, client, reason);
                if (r != -ECONNREFUSED)
                        return r;
                dli_connection_close(connection);
                r = dli_start_step(&daemon->start, reason);
                if (r < 0 && r != -EAGAIN)
                        return r;
                if (r == -EAGAIN && clock_now_ns() >= deadline_ns)
                        return too_late(daemon, reason);
                if (r == -EAGAIN && poll(NULL, 0, pause_ms(began_ns)) < 0)
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
        daemon->kind = daemon_find_is_given(socket) ? DLI_DAEMON_GIVEN : DLI_DAEMON_SYSTEM;
        if (daemon->kind == DLI_DAEMON_GIVEN || !has_path)
                return dli_connection_open(connection, socket, client, reason);
        if (connect_system(connection, client))
                return 0;
        return dli_daemon_connect_path(daemon, connection, client, reason);
}
