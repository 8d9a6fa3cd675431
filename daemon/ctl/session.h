/* ctl/session.h: one connection.
 *
 * A session that is closed gives back at once what it held (socket, stream, place in its job); its own memory stays
 * until the event loop comes by (server_sweep()). So whoever sends a reply may use the session afterwards, although the
 * reply may have closed it: `closed` says so, and every later send does nothing. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "daemon/base/machine/process.h"
#include "daemon/base/queue.h"
#include "daemon/ctl/server.h"
#include "daemon/ctl/user_names.h"
#include "proto/frame.h"

enum session_state {
        SESSION_OPEN,      /* may ask for anything */
        SESSION_ATTACHING, /* its ring is being made in the background; other requests wait in the socket */
        SESSION_ATTACHED,
};

struct session {
        TAILQ_ENTRY(session) entry;
        struct server *server;
        int fd; /* -1 once it is closed */
        struct event *event;
        gid_t *groups; /* the peer's supplementary ones */
        size_t n_groups;
        struct ucred peer; /* as the kernel saw it at connect: pids mean nothing across pid namespaces */
        struct process process;
        struct event *process_event; /* it has ended; NULL without a pidfd */
        char user[USER_NAME_SIZE];   /* session_user()'s */
        char client[64];             /* what it calls itself */
        enum session_state state;
        bool closed; /* while attaching, it holds its job until attach_done() */

        /* From attaching on. */
        struct job *job;
        struct job_member *member;
        struct stream *stream;
};

/* Takes the descriptor over. A connection that quotas do not allow, or for which there is no memory, is closed. */
void session_open(struct server *server, int fd);

/* Ends the connection and gives back what it held; again: does nothing. `reason` is logged and, if the client still
 * listens, sent to it; NULL: the client went by itself. While attaching, job and place are kept until attach_done(),
 * which calls session_give_back(). */
void session_close(struct session *session, const char *reason);
void session_give_back(struct session *session);

/* Shuts a connection down and closes it. What the client sent and nobody read is taken first: with that in its queue
 * the kernel would tell the client of a reset instead of handing it our last words. */
void session_end_socket(int fd);

/* Whose it is: the name, or the number until the name is known. Valid until the next call for this session. */
const char *session_user(struct session *session);

/* Frees a closed session that holds nothing any more. For server_sweep() alone. */
void session_free(struct session *session);

/* Lets the session hear requests, or not (while attaching). */
void session_listen(struct session *session, bool on);

/* Sends; a client that does not read its replies is closed. A closed session is left alone. */
void session_reply(struct session *session, Dlp__Reply *reply, const int *fds, size_t n_fds);
void session_refuse(struct session *session, uint64_t id, int error, const char *text);
void session_refuse_for_now(struct session *session, uint64_t id, int error, const char *text);
