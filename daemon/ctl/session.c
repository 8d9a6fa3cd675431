#include "daemon/ctl/session.h"

#include <errno.h>
#include <event2/event.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/base/work/closer.h"
#include "daemon/ctl/ctl_progress.h"
#include "daemon/ctl/ctl_trace.h"
#include "daemon/ctl/handlers.h"
#include "daemon/ctl/metrics/told.h"
#include "daemon/ctl/packet.h"
#include "daemon/ctl/users/access.h"
#include "daemon/ctl/users/turns.h"
#include "daemon/ctl/work/ctl_work.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text.h"

#define PACKETS_AT_ONCE 16 /* packets of one session before other sessions get a turn */

static const struct {
        Dlp__Request__BodyCase body;
        void (*handle)(struct session *session, const Dlp__Request *request);
} HANDLERS[] = {
        { DLP__REQUEST__BODY_ATTACH, handle_attach },
        { DLP__REQUEST__BODY_SEEK, handle_seek },
        { DLP__REQUEST__BODY_STATUS, handle_status },
        { DLP__REQUEST__BODY_DATASETS, handle_datasets },
        { DLP__REQUEST__BODY_JOBS, handle_jobs },
        { DLP__REQUEST__BODY_ERRORS, handle_errors },
        { DLP__REQUEST__BODY_CLASSES, handle_classes },
        { DLP__REQUEST__BODY_WORKERS, handle_workers },
        { DLP__REQUEST__BODY_RANKS, handle_ranks },
        { DLP__REQUEST__BODY_SAMPLES, handle_samples },
        { DLP__REQUEST__BODY_WHO, handle_who },
        { DLP__REQUEST__BODY_STOP, handle_stop },
        { DLP__REQUEST__BODY_WAIT, handle_wait },
        { DLP__REQUEST__BODY_METRICS, handle_metrics },
        { DLP__REQUEST__BODY_TRACE, handle_trace },
        { DLP__REQUEST__BODY_REPLAY, handle_replay },
        { DLP__REQUEST__BODY_WORK, handle_work },
        { DLP__REQUEST__BODY_WORKED, handle_worked },
        { DLP__REQUEST__BODY_WORK_ENDED, handle_work_ended },
};

static bool send_reply(struct session *session, Dlp__Reply *reply, const int *fds, size_t n_fds) {
        int r;

        reply->protocol = DLP_PROTOCOL_VERSION;
        r = dlp_reply_send(session->fd, reply, fds, n_fds, MSG_DONTWAIT);
        if (r < 0 && r != -EPIPE && r != -ECONNRESET)
                log_debug("ctl", "reply not sent: %s client=%s pid=%d", strerror(-r), session->client,
                          session->peer.pid);
        return r == 0;
}

/* Has the other side closed its socket? One that only reads no more has not. */
static bool has_hung_up(const struct session *session) {
        struct pollfd poll_fd = { .fd = session->fd };

        return poll(&poll_fd, 1, 0) == 1 && (poll_fd.revents & POLLHUP);
}

/* The last answers of a worker process that has ended have not been read yet: its session ends when they are. */
void session_reply(struct session *session, Dlp__Reply *reply, const int *fds, size_t n_fds) {
        if (session->closed || send_reply(session, reply, fds, n_fds) || (session->seat && has_hung_up(session)))
                return;
        session_close(session, "it does not read its replies");
}

static void refuse(struct session *session, uint64_t id, int error, const char *text, bool retry,
                   const struct dlp_progress *progress) {
        Dlp__Progress message;
        Dlp__Reply reply = DLP__REPLY__INIT;
        Dlp__Error body = DLP__ERROR__INIT;

        body.code = (uint32_t)-error;
        body.text = (char *)(uintptr_t)text;
        body.retry = retry;
        if (progress)
                body.progress = tell_progress(&message, progress);
        reply.id = id;
        reply.error = &body;
        session_reply(session, &reply, NULL, 0);
}

void session_refuse(struct session *session, uint64_t id, int error, const char *text) {
        log_user_info(session->peer.uid, "ctl", "refused: %s client=%s pid=%d user=%s", text, session->client,
                      session->peer.pid, session_user(session));
        refuse(session, id, error, text, false, NULL);
}

void session_refuse_for_now(struct session *session, uint64_t id, int error, const char *text,
                            const struct dlp_progress *progress) {
        refuse(session, id, error, text, true, progress);
}

static void on_leaving(evutil_socket_t fd, short what, void *userdata) {
        struct session *session = userdata;
        uint64_t begun_ns = clock_thread_ns();

        if (has_hung_up(session))
                session_close(session, NULL);
        turn_end(session, begun_ns);
}

/* If a reply lies unread in a socket when it is closed, that is an error, and libevent reports errors as readable. So
 * the event is for that as well; and edge-triggered, since packets that nobody reads now would be reported for ever.
 * libevent refuses both kinds for one descriptor at the same time. */
void session_listen(struct session *session, bool on) {
        if (session->closed)
                return;
        if (!on && !session->leaving) /* without memory for it, the end is noticed a little later */
                session->leaving = event_new(session->server->options.base, session->fd,
                                             EV_READ | EV_CLOSED | EV_ET | EV_PERSIST, on_leaving, session);
        if (on) {
                if (session->leaving)
                        event_del(session->leaving);
                event_add(session->event, NULL);
        } else {
                event_del(session->event);
                if (session->leaving)
                        event_add(session->leaving, NULL);
        }
}

/* The client will close the connection; if it does not, another refusal costs nothing. */
static void refuse_version(struct session *session, const Dlp__Request *request) {
        char text[DLP_TEXT_MAX];

        snprintf(text, sizeof(text),
                 "protocol: this daemon (%s) speaks version %u, the client speaks version %u; install "
                 "the same version of dataloaderd and libdlclient",
                 session->server->options.version, DLP_PROTOCOL_VERSION, request->protocol);
        refuse(session, request->id, -EPROTONOSUPPORT, text, false, NULL);
}

void session_asks(struct session *session) {
        struct user *user = user_get(&session->server->users, session->peer.uid);

        session->server->options.catalog->asker = user ? &user->errands : NULL;
}

void session_asked(struct server *server) {
        server->options.catalog->asker = NULL;
}

static void handle(struct session *session, const Dlp__Request *request) {
        struct server *server = session->server;

        if (request->protocol != DLP_PROTOCOL_VERSION) {
                refuse_version(session, request);
                return;
        }
        snprintf(session->client, sizeof(session->client), "%.60s", request->client);
        text_make_printable(session->client); /* it is written to the log */

        for (size_t i = 0; i < sizeof(HANDLERS) / sizeof(HANDLERS[0]); i++)
                if (HANDLERS[i].body == request->body_case) {
                        session_asks(session);
                        HANDLERS[i].handle(session, request);
                        session_asked(server);
                        return;
                }
        session_close(session, "its request is of an unknown kind");
}

static void dispatch(struct session *session, const uint8_t *bytes, size_t n_bytes) {
        Dlp__Request *request = dlp__request__unpack(NULL, n_bytes, bytes);

        if (!request)
                session_close(session, "its packet is not a request");
        else if (session->sent_fd >= 0 && request->body_case != DLP__REQUEST__BODY_ATTACH)
                session_close(session, "it sent descriptors, which no such request has");
        else
                handle(session, request);
        if (!request)
                return;
        dlp__request__free_unpacked(request, NULL);
}

static void read_packets(struct session *session) {
        static uint8_t buffer[DLP_PACKET_MAX]; /* main thread only */

        for (int i = 0; i < PACKETS_AT_ONCE && !session->closed && session->state != SESSION_ATTACHING; i++) {
                size_t n = 0;
                int r = packet_receive(session->fd, session->peer.uid, buffer, DLP_PACKET_MAX, &n, &session->sent_fd);

                if (r == -EAGAIN || r == -EINTR)
                        return;
                if (r == -EMSGSIZE)
                        session_close(session, "its packet is longer than 65,536 bytes");
                else if (r == -EPROTO)
                        session_close(session, "it sent descriptors that did not arrive, or more than a request has");
                else if (r < 0)
                        session_close(session, NULL);
                else
                        dispatch(session, buffer, n);
                if (session->sent_fd >= 0)
                        closer_close(session->sent_fd, session->peer.uid);
                session->sent_fd = -1;
        }
}

static void session_on_readable(evutil_socket_t fd, short what, void *userdata) {
        struct session *session = userdata;
        uint64_t begun_ns = clock_thread_ns();

        if (turn_is_over(session))
                return;
        read_packets(session);
        turn_end(session, begun_ns);
}

/* The client process has ended. A child that it forked may still hold the socket, but the rank belonged to the
 * process. */
void session_process_ended(struct session *session) {
        if (session->seat) /* what it answered before its end counts */
                read_packets(session);
        session_close(session, NULL);
}

static void on_process_end(evutil_socket_t fd, short what, void *userdata) {
        session_process_ended(userdata);
}

/* Without a process event the session lives as long as any process has the socket. */
static void watch_process(struct session *session) {
        if (session->process.fd < 0)
                return;
        session->process_event = event_new(session->server->options.base, session->process.fd, EV_READ, on_process_end,
                                           session);
        if (session->process_event)
                event_add(session->process_event, NULL);
}

static void session_say_why(struct session *session, int error, const char *reason) {
        Dlp__Reply reply = DLP__REPLY__INIT;
        Dlp__Error body = DLP__ERROR__INIT;
        char text[DLP_TEXT_MAX];

        log_user_warning(session->peer.uid, "ctl", "connection closed: %s client=%s pid=%d user=%s", reason,
                         session->client, session->peer.pid, session_user(session));
        snprintf(text, sizeof(text), "the daemon closed the connection: %s", reason);
        body.code = (uint32_t)-error;
        body.text = text;
        reply.error = &body;
        send_reply(session, &reply, NULL, 0);
}

/* Stops listening to socket and process, and shuts the connection down so that the client learns of the end now:
 * duplicates of the socket (the stream has one) may live a moment longer. */
static void session_hang_up(struct session *session) {
        event_free(session->event);
        session->event = NULL;
        if (session->leaving)
                event_free(session->leaving);
        session->leaving = NULL;
        if (session->process_event)
                event_free(session->process_event);
        session->process_event = NULL;
        closer_end_connection(session->fd, session->peer.uid);
        session->fd = -1;
}

void session_give_back(struct session *session) {
        struct server *server = session->server;

        tracing_session_ends(session);
        if (session->stream) {
                log_user_info(session->peer.uid, "ctl", "rank left job=%s rank=%u pid=%d", session->job->name,
                              session->stream->rank, session->peer.pid);
                pipeline_remove(server->options.pipeline, session->stream);
                work_rank_has_left(server);
        }
        if (session->member)
                job_leave(session->job, session->member);
        session->stream = NULL;
        session->member = NULL;
        session->job = NULL;
        told_drop(server, session);
        process_close(&session->process);
        TAILQ_REMOVE(&server->sessions, session, entry);
        server->n_sessions--;
        server_sweep_later(server, session);
}

/* `error` is sent with the reason. */
static void close_because(struct session *session, int error, const char *reason) {
        if (session->closed)
                return;
        if (reason)
                session_say_why(session, error, reason);
        session->closed = true;
        atomic_store_explicit(&session->is_unwanted, true, memory_order_relaxed);
        session_hang_up(session);
        work_session_ends(session, reason);
        if (session->state != SESSION_ATTACHING) /* otherwise its place in the job is kept until attach_done() */
                session_give_back(session);
}

void session_close(struct session *session, const char *reason) {
        /* -ESHUTDOWN: the daemon may come back; -EPROTO: the client itself is at fault */
        close_because(session, session->server->draining ? -ESHUTDOWN : -EPROTO, reason);
}

static void session_begin(struct session *session) {
        struct server *server = session->server;
        struct why why;
        int r;

        TAILQ_INSERT_TAIL(&server->sessions, session, entry);
        server->n_sessions++;
        r = quota_connection(session, &why);
        if (r < 0)
                close_because(session, r, why.text);
        else
                watch_process(session);
}

void session_open(struct server *server, int fd) {
        uint64_t begun_ns = clock_thread_ns();
        struct session *session = calloc(1, sizeof(*session));

        if (!session) {
                close(fd);
                return;
        }
        session->server = server;
        session->fd = fd;
        session->sent_fd = -1;
        access_identify(session);
        session_user(session); /* starts the lookup now, so that the name is known when it is needed */
        snprintf(session->client, sizeof(session->client), "?");

        session->event = event_new(server->options.base, fd, EV_READ | EV_PERSIST, session_on_readable, session);
        if (!session->event || event_add(session->event, NULL) < 0) {
                if (session->event)
                        event_free(session->event);
                process_close(&session->process);
                session_free(session);
                close(fd);
                return;
        }
        session_begin(session);
        turn_end(session, begun_ns);
}

const char *session_user(struct session *session) {
        return user_name(session->server->names, session->peer.uid, session->user);
}

void session_free(struct session *session) {
        free(session->groups);
        free(session);
}
