/* ctl/server.h: the socket and its sessions: who is connected, what they ask, what they are served.
 *
 * Runs on the main thread's event loop and owns no thread. A request is a packet; a handler a file (handlers.h). A
 * connection is a session; a session that attached owns a stream until it closes, and its closing is how a rank is
 * known to be gone. */
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
        struct event *pause_event;  /* accepting goes on after a pause */
        bool is_paused;
        int spare_fd;               /* given up to answer a connection when there is no other */
        uint32_t n_sessions_max;    /* connections of users: SESSIONS_MAX, or fewer for want of descriptors */
        uint32_t n_descriptors_max; /* RLIMIT_NOFILE */
        struct event *broken_event;
        struct mailbox broken;                      /* streams whose clients scribble; from the planner */
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

/* Begins to accept. If it fails there is nothing left to end, and the socket is closed. */
int server_start(struct server *server, const struct server_options *options, struct why *why);

/* For the pipeline's `broken` callback. Any thread. */
void server_on_broken(struct server *server, struct stream *stream);

/* No new connections, no new ranks; the batches that are begun are completed. */
void server_drain(struct server *server);

/* Has the memory of a closed session freed once nobody can be using it any more: from the event loop. */
void server_sweep_later(struct server *server, struct session *session);

/* Is any begun batch not published yet? */
bool server_is_busy(const struct server *server);

/* Closes all sessions: their streams are removed. Attaching ones end when their background work does. */
void server_stop(struct server *server);

/* After background_stop(). */
void server_fini(struct server *server);
