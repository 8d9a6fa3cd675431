#include "client/lib/connection.h"

/* Nothing that the other side does can block us: DLP_PACKET_MAX bounds a packet, a deadline bounds each wait, and
 * PACKETS_MAX bounds the number of packets that one call takes in before its reply. */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "client/lib/client_clock.h"
#include "client/lib/daemon/silent.h"
#include "client/lib/progress/progress_message.h"
#include "proto/base/cleanup.h"
#include "proto/private.h"

#define PACKETS_MAX 1024
#define HOW_PRIVATE "It was a private daemon's: a loader with a path starts another one"

/* ---- connecting ---------------------------------------------------------------------------------------------- */

/* Says which permission is missing: that of the socket's group, with its name if it has one. */
static int no_permission(const char *path, struct why *reason) {
        struct group group, *found = NULL;
        char names[4096];
        struct stat status;

        if (stat(path, &status) < 0)
                return why_set(reason, -ECONNREFUSED,
                               "no permission to reach the daemon's socket %s: its folder is closed to this user",
                               path);
        if (getgrgid_r(status.st_gid, &group, names, sizeof(names), &found) == 0 && found)
                return why_set(reason, -ECONNREFUSED, "no permission for the daemon's socket %s: join its group %s",
                               path, found->gr_name);
        return why_set(reason, -ECONNREFUSED, "no permission for the daemon's socket %s: join its group (number %u)",
                       path, status.st_gid);
}

static int not_reached(const char *path, int error, struct why *reason) {
        char log[DLP_PRIVATE_PATH_MAX];

        switch (error) {
        case -ENOENT:
        case -ENOTDIR:
                return why_set(reason, -ECONNREFUSED, "no daemon at %s: there is no such socket. %s", path,
                               dlp_private_log(path, log) ? HOW_PRIVATE
                                                          : "Start one (systemctl start dataloaderd), or say where it "
                                                            "is with DATALOADERD_SOCKET or the socket option");
        case -ECONNREFUSED:
                return why_set(reason, -ECONNREFUSED, "no daemon at %s: nobody listens on this socket. %s", path,
                               dlp_private_log(path, log) ? HOW_PRIVATE : "Start one (systemctl start dataloaderd)");
        case -EACCES:
        case -EPERM:
                return no_permission(path, reason);
        case -EAGAIN:
                return why_set(reason, -ECONNREFUSED,
                               "the daemon at %s does not take connections: it is overloaded or stopped", path);
        case -EPROTOTYPE:
                return why_set(reason, -ECONNREFUSED, "%s is another program's socket, not dataloaderd's", path);
        default:
                return why_errno(reason, -ECONNREFUSED, "cannot connect to the daemon at %s (errno %d)", path, -error);
        }
}

static int open_socket(struct dli_connection *connection, const char *path, const char *client, int flags,
                       struct why *reason) {
        struct timeval send_timeout = { .tv_sec = DLI_SEND_TIMEOUT_S };
        struct sockaddr_un address;
        int r;

        *connection = (struct dli_connection){ .socket = -1, .sent_fd = -1, .client = client, .interruptible = true };
        if (!path)
                path = dlp_socket_default();
        r = dlp_socket_address(path, &address);
        if (r < 0)
                return why_set(reason, -EINVAL, "socket: the path must have 1 to %u bytes: %s", DLP_SOCKET_PATH_MAX,
                               path);
        strcpy(connection->path, path); /* fits: a longer path would have no address */

        connection->packet = malloc(DLP_PACKET_MAX);
        if (!connection->packet)
                return why_set(reason, -ENOMEM, "no memory for the connection");
        connection->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
        if (connection->socket < 0)
                return why_errno(reason, -errno, "cannot make a socket");
        /* Also bounds connect(): if the daemon is stopped, its queue of connections fills up. */
        if (setsockopt(connection->socket, SOL_SOCKET, SO_SNDTIMEO, &send_timeout, sizeof(send_timeout)) < 0)
                return why_errno(reason, -errno, "cannot set up a socket");
        if (connect(connection->socket, (const struct sockaddr *)&address, sizeof(address)) < 0)
                return errno == EINTR ? why_set(reason, -EINTR, "interrupted while connecting to %s", path)
                                      : not_reached(path, -errno, reason);
        return 0;
}

int dli_connection_open(struct dli_connection *connection, const char *path, const char *client, struct why *reason) {
        return open_socket(connection, path, client, 0, reason);
}

int dli_connection_try(struct dli_connection *connection, const char *path, const char *client, struct why *reason) {
        int r = open_socket(connection, path, client, SOCK_NONBLOCK, reason);

        if (r < 0)
                return r;
        /* From now on sending may block: a seek must not fail because a queue is full. */
        if (fcntl(connection->socket, F_SETFL, 0) < 0)
                return why_errno(reason, -errno, "cannot set up a socket");
        return 0;
}

void dli_connection_close(struct dli_connection *connection) {
        closep(&connection->socket);
        connection->socket = -1;
        free(connection->packet);
        connection->packet = NULL;
}

/* ---- receiving ----------------------------------------------------------------------------------------------- */

/* A refusal because of a limit is reported as such; any other reason means that the daemon is gone. */
static int farewell_error(const struct dli_connection *connection) {
        int code = connection->farewell_code;

        return code == EDQUOT || code == EMFILE ? -code : -ECONNRESET;
}

static int connection_gone(struct dli_connection *connection, struct why *reason) {
        char log[DLP_PRIVATE_PATH_MAX];

        if (connection->farewell.text[0])
                return why_set(reason, farewell_error(connection), "%s (socket %s)", connection->farewell.text,
                               connection->path);
        if (dlp_private_log(connection->path, log))
                return why_set(
                        reason, -ECONNRESET,
                        "the private daemon at %s is gone: its log says why (%s). A new loader with a path starts "
                        "another one",
                        connection->path, log);
        return why_set(
                reason, -ECONNRESET,
                "the daemon at %s is gone: its log says why (journalctl -u dataloaderd). Start it and open a new loader",
                connection->path);
}

int dli_connection_wait(const struct dli_connection *connection, uint64_t deadline_ns) {
        struct pollfd item = { .fd = connection->socket, .events = POLLIN };
        uint64_t now = clock_now_ns(), left = deadline_ns > now ? deadline_ns - now : 0;
        struct timespec timeout = { .tv_sec = (time_t)(left / 1000000000u), .tv_nsec = (long)(left % 1000000000u) };
        int r = ppoll(&item, 1, deadline_ns == DLI_NEVER ? NULL : &timeout, NULL);

        return r < 0 ? -errno : r;
}

static bool is_wake_up(const uint8_t *packet, ssize_t n) {
        return n == 1 && packet[0] == DLP_WAKE_BYTE;
}

/* An error that answers no request is the daemon's reason for closing the connection. */
static void note_farewell(struct dli_connection *connection, const Dlp__Reply *reply) {
        if (!reply->error || reply->id != 0)
                return;
        connection->farewell_code = reply->error->code > 0 && reply->error->code < 4096 ? (int)reply->error->code
                                                                                        : EPROTO;
        why_set(&connection->farewell, 0, "%s", reply->error->text);
}

static void connection_note(struct dli_connection *connection, const Dlp__Reply *reply) {
        if (connection->asked != 0 && reply->id == connection->asked) {
                connection->asked = 0;
                dli_progress_take(reply->body_case == DLP__REPLY__BODY_WAIT ? reply->wait->progress : NULL,
                                  &connection->waited_for);
                return;
        }
        note_farewell(connection, reply);
}

void dli_connection_ask(struct dli_connection *connection, uint64_t epoch) {
        Dlp__Request request = DLP__REQUEST__INIT;
        Dlp__WaitRequest wait = DLP__WAIT_REQUEST__INIT;

        wait.epoch = epoch;
        request.protocol = DLP_PROTOCOL_VERSION;
        request.id = ++connection->n_calls;
        request.client = (char *)(uintptr_t)connection->client;
        request.body_case = DLP__REQUEST__BODY_WAIT;
        request.wait = &wait;
        if (dlp_request_send(connection->socket, &request, NULL, 0, MSG_DONTWAIT) == 0)
                connection->asked = request.id;
}

bool dli_connection_is_restart(const struct dli_connection *connection) {
        return connection->farewell_code == 0 || connection->farewell_code == ESHUTDOWN;
}

int dli_connection_drain(struct dli_connection *connection, struct why *reason) {
        for (int i = 0; i < PACKETS_MAX; i++) {
                ssize_t n = dlp_frame_receive(connection->socket, connection->packet, DLP_PACKET_MAX, NULL, 0, NULL,
                                              MSG_DONTWAIT);
                Dlp__Reply *reply;

                if (n == -EAGAIN)
                        return 0;
                if (n == -EINTR || (n > 0 && is_wake_up(connection->packet, n)))
                        continue;
                if (n <= 0)
                        return connection_gone(connection, reason);
                reply = dlp__reply__unpack(NULL, (size_t)n, connection->packet);
                if (reply) {
                        connection_note(connection, reply);
                        dlp__reply__free_unpacked(reply, NULL);
                }
        }
        return 0;
}

/* ---- calling ------------------------------------------------------------------------------------------------- */

static int other_version(const struct dli_connection *connection, uint32_t protocol, struct why *reason) {
        return why_set(reason, -EPROTONOSUPPORT,
                       "%s speaks protocol %u, the daemon at %s speaks protocol %u: install the same version of both",
                       connection->client, DLP_PROTOCOL_VERSION, connection->path, protocol);
}

/* Maps the daemon's refusal to an errno that is never confused with one of our own about the connection. */
static int refusal(const Dlp__Error *error, struct why *reason) {
        int code = error->code > 0 && error->code < 4096 ? -(int)error->code : -EREMOTEIO;

        if (code == -ECONNREFUSED || code == -ECONNRESET || code == -EINTR || code == -ETIMEDOUT || code == -EAGAIN)
                code = -EREMOTEIO;
        why_set(reason, 0, "%s", *error->text ? error->text : "the daemon refused without a reason");
        return error->retry ? DLI_ASK_AGAIN : code;
}

/* Receives packets until the reply with the call's id is there. Descriptors that came with any other packet are
 * closed. */
static int receive_reply(struct dli_connection *connection, uint64_t deadline_ns, struct why *reason,
                         Dlp__Reply **ret_reply, int *fds, size_t n_fds, size_t *ret_n_fds) {
        for (int i = 0; i < PACKETS_MAX; i++) {
                size_t n_taken = 0;
                Dlp__Reply *reply;
                ssize_t n;
                int r;

                r = dli_connection_wait(connection, deadline_ns);
                if (r == -EINTR && !connection->interruptible)
                        continue;
                if (r < 0)
                        return why_set(reason, r, "interrupted while waiting for the daemon's answer");
                if (r == 0)
                        return dli_daemon_silent(connection->socket, connection->path, reason);

                n = dlp_frame_receive(connection->socket, connection->packet, DLP_PACKET_MAX, fds, n_fds, &n_taken,
                                      MSG_DONTWAIT);
                if (n == -EAGAIN || n == -EINTR || (n > 0 && is_wake_up(connection->packet, n)))
                        continue;
                if (n == -EPROTO)
                        return why_set(reason, -EPROTO,
                                       "the daemon's memory could not be handed over: too many open files here, "
                                       "or a security module forbids it");
                if (n <= 0)
                        return connection_gone(connection, reason);

                reply = dlp__reply__unpack(NULL, (size_t)n, connection->packet);
                if (reply && reply->protocol == DLP_PROTOCOL_VERSION && reply->id == connection->n_calls) {
                        *ret_reply = reply;
                        *ret_n_fds = n_taken;
                        return 0;
                }
                while (n_taken > 0)
                        close(fds[--n_taken]);
                if (!reply)
                        return why_set(reason, -EPROTO, "the daemon at %s sent something that is not a message",
                                       connection->path);
                if (reply->protocol != DLP_PROTOCOL_VERSION)
                        r = other_version(connection, reply->protocol, reason);
                else
                        connection_note(connection, reply);
                dlp__reply__free_unpacked(reply, NULL);
                if (r < 0)
                        return r;
        }
        return why_set(reason, -EPROTO, "the daemon at %s sends too much", connection->path);
}

int dli_connection_send(struct dli_connection *connection, Dlp__Request *request, struct why *reason) {
        bool has_fd;
        int r;

        request->protocol = DLP_PROTOCOL_VERSION;
        request->id = ++connection->n_calls;
        request->client = (char *)(uintptr_t)connection->client;

        has_fd = connection->sent_fd >= 0 && request->body_case == DLP__REQUEST__BODY_ATTACH;
        r = dlp_request_send(connection->socket, request, &connection->sent_fd, has_fd ? 1 : 0, 0);
        if (r == -EPIPE || r == -ECONNRESET) {
                /* The daemon may have sent the reason before it closed. */
                r = dli_connection_drain(connection, reason);
                return r < 0 ? r : connection_gone(connection, reason);
        }
        if (r == -EAGAIN)
                return dli_daemon_silent(connection->socket, connection->path, reason);
        if (r < 0)
                return why_errno(reason, r, "cannot send to the daemon at %s", connection->path);
        return 0;
}

int dli_connection_answer(struct dli_connection *connection, uint64_t deadline_ns, struct why *reason,
                          Dlp__Reply **ret_reply, int *ret_fds, size_t n_fds) {
        size_t n_taken = 0;
        int fds[DLP_FDS_MAX], r;
        Dlp__Reply *reply = NULL;

        r = receive_reply(connection, deadline_ns, reason, &reply, fds, n_fds, &n_taken);
        if (r < 0)
                return r;
        if (reply->error) {
                dli_progress_take(reply->error->progress, &connection->progress);
                r = refusal(reply->error, reason);
        } else if (n_taken != n_fds) {
                r = why_set(reason, -EPROTO, "the daemon at %s sent %zu descriptors, not %zu", connection->path,
                            n_taken, n_fds);
        }
        if (r != 0) {
                while (n_taken > 0)
                        close(fds[--n_taken]);
                dlp__reply__free_unpacked(reply, NULL);
                return r;
        }
        for (size_t i = 0; i < n_fds; i++)
                ret_fds[i] = fds[i];
        *ret_reply = reply;
        return 0;
}

int dli_connection_call(struct dli_connection *connection, Dlp__Request *request, int timeout_ms, struct why *reason,
                        Dlp__Reply **ret_reply, int *ret_fds, size_t n_fds) {
        uint64_t deadline_ns = dli_deadline(timeout_ms);
        int r = dli_connection_send(connection, request, reason);

        return r < 0 ? r : dli_connection_answer(connection, deadline_ns, reason, ret_reply, ret_fds, n_fds);
}
