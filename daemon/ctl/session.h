/* ctl/session.h: one connection. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "daemon/base/process.h"
#include "daemon/base/queue.h"
#include "daemon/ctl/server.h"
#include "proto/frame.h"

enum session_state {
        SESSION_OPEN,      /* may ask for anything */
        SESSION_ATTACHING, /* its ring is being made in the background; other requests wait in the socket */
        SESSION_ATTACHED,
};

struct session {
        TAILQ_ENTRY(session) entry;
        struct server *server;
        int fd;
        struct event *event;
        struct ucred peer; /* as the kernel saw it at connect: pids mean nothing across pid namespaces */
        struct process process;
        struct event *process_event; /* it has ended; NULL without a pidfd */
        char user[64];
        char client[64]; /* what it calls itself */
        enum session_state state;
        bool closed; /* while attaching: the background still needs the memory */

        /* From attaching on. */
        struct job *job;
        struct job_member *member;
        struct stream *stream;
};

/* Takes the descriptor over; closes it itself on failure. */
int session_open(struct server *server, int fd);

/* Ends the connection and gives back what it held. `reason` is logged and, if the client still listens, sent to it;
 * NULL: the client went by itself. While attaching, only marks it. */
void session_close(struct session *session, const char *reason);

/* Lets the session hear requests, or not (while attaching). */
void session_listen(struct session *session, bool on);

/* Sends; a client that does not read its replies is closed. Returns false if the session is gone: do not touch it. */
bool session_reply(struct session *session, Dlp__Reply *reply, const int *fds, size_t n_fds);
bool session_refuse(struct session *session, uint64_t id, int error, const char *text);
bool session_refuse_for_now(struct session *session, uint64_t id, int error, const char *text);
