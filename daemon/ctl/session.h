/* ctl/session.h: one connection.
 *
 * A session that is closed releases at once what it held (socket, feed, place in its job); its own memory stays until
 * the event loop frees it (server_sweep()). So a function that sends a reply may use the session afterwards, although
 * the reply may have closed it: then `closed` is true, and every later send does nothing. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "daemon/base/machine/machine_process.h"
#include "daemon/base/threads/queue.h"
#include "daemon/ctl/server.h"
#include "daemon/ctl/users/authority.h"
#include "daemon/ctl/users/user_names.h"
#include "proto/frame.h"

enum session_state {
        SESSION_OPEN,      /* may send any request */
        SESSION_ATTACHING, /* its ring is being made in the background; other requests wait in the socket */
        SESSION_ATTACHED,
        SESSION_WORKING, /* a worker process, or who supervises them (work/ctl_work.h) */
};

struct session {
        TAILQ_ENTRY(session) entry;
        struct server *server;
        int fd; /* -1 once it is closed */
        struct event *event;
        struct event
                *leaving; /* notices that the client hangs up while the session does not listen; NULL: not made yet */
        gid_t *groups;    /* the peer's supplementary groups */
        size_t n_groups;
        struct ucred peer; /* as the kernel saw it at connect: a pid has no meaning in another pid namespace */
        struct process process;
        struct authority authority;  /* of the process, when it connected */
        struct event *process_event; /* signals that the process has ended; NULL without a pidfd */
        char user[USER_NAME_SIZE];   /* buffer of session_user() */
        char client[64];             /* the name that the client gives itself */
        enum session_state state;
        int sent_fd; /* that came with the request which is being handled; -1: none. A handler may take it over */
        bool waits_for_turn;      /* it does not listen until then (users/turns.h) */
        bool closed;              /* true once closed; a session that was attaching keeps its job until attach_done() */
        _Atomic bool is_unwanted; /* the same, for background work for it; the session is not freed before that ends */

        /* Set when it attaches. */
        struct job *job;
        struct job_member *member;
        struct feed *feed;
        struct seat *seat;  /* if the client is a worker process; else NULL */
        bool takes_replays; /* its client knows batches that are served again */
};

/* Ends the connection and releases what it held; a second call does nothing. `reason` is logged and, if the client
 * still listens, sent to it; NULL: the client left by itself. While attaching, job and place are kept until
 * attach_done(), which calls session_give_back(). */
void session_close(struct session *session, const char *reason);
void session_close_because(struct session *session, int error, const char *reason); /* `error` is sent with it */
void session_give_back(struct session *session);

/* The client's process has ended: its connection is closed even if another process has the socket. */
void session_process_ended(struct session *session);

/* The user's name, or the number until the name is known. Valid until the next call for this session. */
const char *session_user(struct session *session);

/* Frees a session that holds nothing any more: server->closed. No handler may be running. */
void session_free(struct session *session);

/* Between these two calls, whatever is opened in the background is an errand of the session's user, who pays for it.
 * They enclose the handling of each request. */
void session_asks(struct session *session);
void session_asked(struct server *server);

/* Makes the session read requests, or not (while attaching). That the client hangs up is noticed nevertheless. */
void session_listen(struct session *session, bool on);

/* Sends; a client that does not read its replies is closed. A closed session is left alone. */
void session_reply(struct session *session, Dlp__Reply *reply, const int *fds, size_t n_fds);
void session_refuse_with(struct session *session, uint64_t id, int error, const char *text, bool retry,
                         const struct dlp_progress *progress);
void session_refuse(struct session *session, uint64_t id, int error, const char *text);
void session_refuse_for_now(struct session *session, uint64_t id, int error, const char *text,
                            const struct dlp_progress *progress);
