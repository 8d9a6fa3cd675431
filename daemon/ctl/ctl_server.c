#include "daemon/ctl/ctl_server.h"

#include <errno.h>
#include <event2/event.h>
#include <time.h>

#include "daemon/base/log.h"
#include "daemon/ctl/session.h"
#include "daemon/ctl/socket/accept.h"
#include "daemon/ctl/socket/requests.h"
#include "daemon/ctl/users/turns.h"
#include "daemon/ctl/users/user_quota.h"
#include "daemon/ctl/work/ctl_work.h"
#include "proto/base/clock.h"

/* The client wrote an impossible value, or samples wait for its worker processes. */
static void ctl_server_look_at(struct session *session, const struct feed *feed) {
        if (atomic_load_explicit(&feed->broken, memory_order_relaxed))
                session_close(session, "it wrote an impossible value to its shared page");
        else
                work_deal(session);
}

static void on_news(evutil_socket_t fd, short what, void *userdata) {
        struct server *server = userdata;
        struct session *session;
        struct feed *feed;

        /* The feed may have been freed in the meantime, so its address is only compared. A session that has this
         * address may have a new feed there, which is looked at in vain. */
        while ((feed = mailbox_pop(&server->news)))
                TAILQ_FOREACH(session, &server->sessions, entry)
                        if (session->feed == feed) {
                                ctl_server_look_at(session, feed);
                                break;
                        }
}

void server_on_news(struct server *server, struct feed *feed) {
        mailbox_push(&server->news, feed); /* each feed is told once, and once for its desk, so it is never full */
}

/* The only place where sessions are freed: no handler is running now. */
static void on_sweep(evutil_socket_t fd, short what, void *userdata) {
        struct server *server = userdata;
        struct session *session;

        while ((session = TAILQ_FIRST(&server->closed))) {
                TAILQ_REMOVE(&server->closed, session, entry);
                session_free(session);
        }
}

int server_start(struct server *server, const struct server_options *options, struct why *why) {
        int r;

        *server = (struct server){ .options = *options, .hooks = &REQUESTS_HOOKS, .spare_fd = -1 };
        TAILQ_INIT(&server->sessions);
        TAILQ_INIT(&server->closed);
        LIST_INIT(&server->jobs);
        server->started_ns = clock_now_ns();
        server->started_unix = time(NULL);

        r = mailbox_init(&server->news, 4 * (SESSIONS_MAX + SESSIONS_RESERVED));
        if (r == 0)
                r = user_names_new(&server->names);
        if (r < 0) {
                server_fini(server);
                return why_errno(why, r, "ctl");
        }
        server->news_event = event_new(options->base, mailbox_fd(&server->news), EV_READ | EV_PERSIST, on_news, server);
        server->sweep_event = event_new(options->base, -1, 0, on_sweep, server);
        if (!server->news_event || !server->sweep_event || turns_start(server) < 0 ||
            event_add(server->news_event, NULL) < 0) {
                server_fini(server);
                return why_errno(why, -ENOMEM, "ctl: events");
        }
        mailbox_pop(&server->news); /* arms it */
        r = accept_start(server, why);
        if (r < 0)
                server_fini(server);
        return r;
}

void server_drain(struct server *server) {
        struct session *session;

        server->draining = true;
        accept_stop(server);
        TAILQ_FOREACH(session, &server->sessions, entry)
                if (session->feed)
                        pipeline_drain(server->options.pipeline, session->feed);
}

bool server_is_busy(const struct server *server) {
        struct session *session;
        struct ring_counts counts;

        TAILQ_FOREACH(session, &server->sessions, entry)
                if (session->feed) {
                        ring_count(session->feed->ring, &counts);
                        if (counts.n_filling > 0)
                                return true;
                }
        return false;
}

/* The end of one session may be that of others, too. Those that are attaching stay in the list. */
static struct session *first_open(struct server *server) {
        struct session *session;

        TAILQ_FOREACH(session, &server->sessions, entry)
                if (!session->closed)
                        return session;
        return NULL;
}

void server_stop(struct server *server) {
        struct session *session;

        server->draining = true;
        accept_stop(server);
        while ((session = first_open(server)))
                session_close(session, NULL);
}

void server_fini(struct server *server) {
        accept_stop(server);
        on_sweep(-1, 0, server);
        turns_stop(server);
        if (server->sweep_event)
                event_free(server->sweep_event);
        if (server->news_event)
                event_free(server->news_event);
        mailbox_fini(&server->news);
        users_fini(&server->users);
        user_names_free(server->names);
}
