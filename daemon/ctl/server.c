#include "daemon/ctl/server.h"

#include <errno.h>
#include <event2/event.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/clock.h"
#include "daemon/base/log.h"
#include "daemon/ctl/session.h"

static const struct timeval ACCEPT_PAUSE = { .tv_usec = 200000 };

static void on_accept_again(evutil_socket_t fd, short what, void *userdata) {
        struct server *server = userdata;

        if (server->listen_event && event_add(server->listen_event, NULL) < 0)
                event_add(server->again_event, &ACCEPT_PAUSE); /* its place in the timers' heap is there */
}

/* Out of descriptors the listening socket stays readable: without a pause the loop would spin. */
static void pause_accepting(struct server *server, int error) {
        log_warning("ctl", "accept: %s; trying again in 0.2 s", strerror(error));
        if (event_add(server->again_event, &ACCEPT_PAUSE) == 0) /* else spinning is better than never accepting again */
                event_del(server->listen_event);
}

static void on_connection(evutil_socket_t fd, short what, void *userdata) {
        struct server *server = userdata;
        int client = accept4(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (client < 0) {
                if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
                        pause_accepting(server, errno);
                return;
        }
        if (session_open(server, client) < 0)
                return;
        if (server->n_sessions > SESSIONS_MAX)
                session_close(TAILQ_LAST(&server->sessions, session_list),
                              "there are 1,024 connections already, which is the limit");
}

static void on_broken(evutil_socket_t fd, short what, void *userdata) {
        struct server *server = userdata;
        struct session *session, *next;
        struct stream *stream;

        while ((stream = mailbox_pop(&server->broken)))
                TAILQ_FOREACH_SAFE(session, &server->sessions, entry, next)
                        if (session->stream == stream && atomic_load_explicit(&stream->broken, memory_order_relaxed))
                                session_close(session, "it wrote to its shared page what no client writes");
}

void server_on_broken(struct server *server, struct stream *stream) {
        mailbox_push(&server->broken, stream); /* if it is full the stream stands still until its session ends anyway */
}

/* The one place where sessions are freed: no handler is at work now. */
static void on_sweep(evutil_socket_t fd, short what, void *userdata) {
        struct server *server = userdata;
        struct session *session;

        while ((session = TAILQ_FIRST(&server->closed))) {
                TAILQ_REMOVE(&server->closed, session, entry);
                session_free(session);
        }
}

void server_sweep_later(struct server *server, struct session *session) {
        TAILQ_INSERT_TAIL(&server->closed, session, entry);
        event_active(server->sweep_event, EV_TIMEOUT, 0);
}

int server_start(struct server *server, const struct server_options *options, struct why *why) {
        int r;

        *server = (struct server){ .options = *options };
        TAILQ_INIT(&server->sessions);
        TAILQ_INIT(&server->closed);
        LIST_INIT(&server->jobs);
        server->started_ns = clock_now_ns();
        server->started_unix = time(NULL);

        r = mailbox_init(&server->broken, SESSIONS_MAX);
        if (r == 0)
                r = user_names_new(&server->names);
        if (r < 0) {
                server_fini(server);
                return why_errno(why, r, "ctl");
        }
        server->broken_event = event_new(options->base, mailbox_fd(&server->broken), EV_READ | EV_PERSIST, on_broken,
                                         server);
        server->listen_event = event_new(options->base, options->listen_fd, EV_READ | EV_PERSIST, on_connection,
                                         server);
        server->again_event = event_new(options->base, -1, 0, on_accept_again, server);
        server->sweep_event = event_new(options->base, -1, 0, on_sweep, server);
        if (!server->broken_event || !server->listen_event || !server->again_event || !server->sweep_event ||
            event_add(server->broken_event, NULL) < 0 || event_add(server->listen_event, NULL) < 0) {
                server_fini(server);
                return why_errno(why, -ENOMEM, "ctl: events");
        }
        mailbox_pop(&server->broken); /* arms it */
        return 0;
}

static void stop_listening(struct server *server) {
        if (server->options.listen_fd < 0)
                return;
        if (server->listen_event)
                event_free(server->listen_event);
        server->listen_event = NULL;
        close(server->options.listen_fd);
        server->options.listen_fd = -1;
}

void server_drain(struct server *server) {
        struct session *session;

        server->draining = true;
        stop_listening(server);
        TAILQ_FOREACH(session, &server->sessions, entry)
                if (session->stream)
                        pipeline_drain(server->options.pipeline, session->stream);
}

bool server_is_busy(const struct server *server) {
        struct session *session;
        struct ring_counts counts;

        TAILQ_FOREACH(session, &server->sessions, entry)
                if (session->stream) {
                        ring_count(session->stream->ring, &counts);
                        if (counts.n_filling > 0)
                                return true;
                }
        return false;
}

void server_stop(struct server *server) {
        struct session *session, *next;

        server->draining = true;
        stop_listening(server);
        TAILQ_FOREACH_SAFE(session, &server->sessions, entry, next)
                session_close(session, NULL);
}

void server_fini(struct server *server) {
        stop_listening(server);
        on_sweep(-1, 0, server);
        if (server->again_event)
                event_free(server->again_event);
        if (server->sweep_event)
                event_free(server->sweep_event);
        if (server->broken_event)
                event_free(server->broken_event);
        mailbox_fini(&server->broken);
        user_names_free(server->names);
}
