/* ctl/server.h: the socket and its sessions: who is connected, what they ask for, what they are served.
 *
 * Runs on the main thread's event loop and owns no thread. A request is one packet; each handler is a file
 * (handlers.h). A connection is a session; a session that attached owns a stream until it closes. When it closes, the
 * rank is gone. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "daemon/base/background.h"
#include "daemon/base/mailbox.h"
#include "daemon/base/queue.h"
#include "daemon/ctl/quota.h"
#include "daemon/pipeline/pipeline.h"

#define SESSIONS_MAX         1024u /* connections of users at a time: far above the ranks of a node */
#define SESSIONS_RESERVED    16u   /* more for root and the daemon's own user */
#define DESCRIPTORS_RESERVED 64u   /* for them, and for the daemon's own files */

struct event;
struct event_base;

/* A line of `dlctl status`: made by core, which knows settings and life cycle. Texts stay valid while the server runs.
 */
struct fact {
        const char *name, *value, *unit, *text;
};

struct server_options {
        struct event_base *base;
        int listen_fd; /* taken over */
        struct pipeline *pipeline;
        struct catalog *catalog;
        struct background *background;
        struct budget *budget;
        uint32_t default_slots;
        struct quotas quotas;
        const char *version;
        void (*settings)(void *userdata, const struct fact **ret_facts, size_t *ret_n); /* in force */
        void *userdata;
};

struct session;
struct user_names;

struct server {
        struct server_options options;
        struct event *listen_event; /* NULL once draining */
        struct event *pause_event;  /* accepting continues after a pause */
        bool is_paused;
        int spare_fd;               /* closed to answer a connection when no other descriptor is free */
        uint32_t n_sessions_max;    /* connections of users: SESSIONS_MAX, or fewer for want of descriptors */
        uint32_t n_descriptors_max; /* RLIMIT_NOFILE */
        struct event *broken_event;
        struct mailbox broken; /* streams whose clients wrote impossible values; from the planner */
        TAILQ_HEAD(session_list, session) sessions; /* open, or still attaching */
        TAILQ_HEAD(, session) closed;               /* only their memory is left */
        struct event *sweep_event;
        struct user_names *names;
        uint32_t n_sessions;
        struct jobs jobs;
        struct users users; /* who ever attached */
        uint32_t n_jobs;
        uint64_t started_ns;
        int64_t started_unix;
        bool draining;
};

/* Begins to accept. If it fails, everything is undone and the socket is closed. */
int server_start(struct server *server, const struct server_options *options, struct why *why);

/* For the pipeline's `broken` callback. Any thread. */
void server_on_broken(struct server *server, struct stream *stream);

/* No new connections, no new ranks; the batches that are begun are completed. */
void server_drain(struct server *server);

/* Lets the event loop free the memory of a closed session, when nobody can be using it any more. */
void server_sweep_later(struct server *server, struct session *session);

/* Is any begun batch not published yet? */
bool server_is_busy(const struct server *server);

/* Closes all sessions: their streams are removed. Sessions that are attaching end when their background work does. */
void server_stop(struct server *server);

/* Call it after background_stop(). */
void server_fini(struct server *server);
