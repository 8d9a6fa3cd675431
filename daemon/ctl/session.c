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
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/text.h"

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

void session_refuse_with(struct session *session, uint64_t id, int error, const char *text, bool retry,
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
        session_refuse_with(session, id, error, text, false, NULL);
}

void session_refuse_for_now(struct session *session, uint64_t id, int error, const char *text,
                            const struct dlp_progress *progress) {
        session_refuse_with(session, id, error, text, true, progress);
}

static void session_on_leaving(evutil_socket_t fd, short what, void *userdata) {
        struct session *session = userdata;

        if (has_hung_up(session))
                session->server->hooks->hung_up(session);
}

/* If a reply lies unread in a socket when it is closed, that is an error, and libevent reports errors as readable. So
 * the event is for that as well; and edge-triggered, since packets that nobody reads now would be reported for ever.
 * libevent refuses both kinds for one descriptor at the same time. */
void session_listen(struct session *session, bool on) {
        if (session->closed)
                return;
        if (!on && !session->leaving) /* without memory for it, the end is noticed a little later */
                session->leaving = event_new(session->server->options.base, session->fd,
                                             EV_READ | EV_CLOSED | EV_ET | EV_PERSIST, session_on_leaving, session);
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

void session_asks(struct session *session) {
        struct user *user = user_get(&session->server->users, session->peer.uid);

        session->server->options.catalog->asker = user ? &user->errands : NULL;
}

void session_asked(struct server *server) {
        server->options.catalog->asker = NULL;
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
 * duplicates of the socket (the feed has one) may live a moment longer. */
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

        server->hooks->leaves(session);
        if (session->feed) {
                log_user_info(session->peer.uid, "ctl", "rank left job=%s rank=%u pid=%d", session->job->name,
                              session->feed->rank, session->peer.pid);
                pipeline_remove(server->options.pipeline, session->feed);
                server->hooks->rank_left(server);
        }
        if (session->member)
                job_leave(session->job, session->member);
        session->feed = NULL;
        session->member = NULL;
        session->job = NULL;
        process_close(&session->process);
        TAILQ_REMOVE(&server->sessions, session, entry);
        server->n_sessions--;
        TAILQ_INSERT_TAIL(&server->closed, session, entry);
        server->hooks->left(server);
}

/* `error` is sent with the reason. */
void session_close_because(struct session *session, int error, const char *reason) {
        if (session->closed)
                return;
        if (reason)
                session_say_why(session, error, reason);
        session->closed = true;
        atomic_store_explicit(&session->is_unwanted, true, memory_order_relaxed);
        session_hang_up(session);
        session->server->hooks->closed(session, reason);
        if (session->state != SESSION_ATTACHING) /* otherwise its place in the job is kept until attach_done() */
                session_give_back(session);
}

void session_close(struct session *session, const char *reason) {
        /* -ESHUTDOWN: the daemon may come back; -EPROTO: the client itself is at fault */
        session_close_because(session, session->server->draining ? -ESHUTDOWN : -EPROTO, reason);
}

void session_process_ended(struct session *session) {
        session->server->hooks->process_ended(session);
}

const char *session_user(struct session *session) {
        return user_name(session->server->names, session->peer.uid, session->user);
}

void session_free(struct session *session) {
        free(session->groups);
        free(session);
}
