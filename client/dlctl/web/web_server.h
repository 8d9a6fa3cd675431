/* web/web_server.h: a small HTTP server for the processes of one user, on a loopback address.
 *
 * A visitor is a connection. Whose it is, is asked of the kernel when it comes (peer.h): others get a sentence, and
 * have places of their own, so that they cannot take those of the user. The rest of it is proto/http/visitor.h. */
#pragma once

#include <event2/buffer.h>
#include <event2/event.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/base/why.h"
#include "proto/http/visitor.h"

#define SERVER_USERS_MAX 64u

struct server;

struct server_options {
        const char *address;      /* 127.0.0.0/8 or ::1 */
        uint16_t port;            /* 0: one that is free */
        const char *const *hosts; /* names that a request may have as its host, ended by NULL */
        uid_t users[SERVER_USERS_MAX];
        size_t n_users; /* who may visit, beside root */
        void *arg;

        /* What a request gets, and its status; NULL: no memory. Called by the thread that has opened the server. */
        struct MHD_Response *(*answer)(void *arg, struct MHD_Connection *request, const char *path,
                                       unsigned *ret_status);
};

/* Listens. Returns 0, -EINVAL (address), -EADDRINUSE or another negative errno, with a sentence. */
int server_open(struct event_base *base, const struct server_options *options, struct why *why,
                struct server **ret_server);
void server_close(struct server *server); /* takes NULL */

uint16_t server_port(const struct server *server);

/* A body of a media type as an answer; it is given up. `policy` is its Content-Security-Policy; NULL: nothing may be
 * loaded. */
struct MHD_Response *server_body(const char *type, const char *policy, struct evbuffer *body);
