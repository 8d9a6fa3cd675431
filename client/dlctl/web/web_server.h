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
        size_t n_users;     /* who may visit, beside root */
        const char *policy; /* Content-Security-Policy of pages */
        void *arg;          /* for: */
        void (*serve)(void *arg, const struct request *request, struct visitor *visitor); /* answers it */
};

/* Listens. Returns 0, -EINVAL (address), -EADDRINUSE or another negative errno, with a sentence. */
int server_open(struct event_base *base, const struct server_options *options, struct why *why,
                struct server **ret_server);
void server_close(struct server *server); /* takes NULL */

uint16_t server_port(const struct server *server);

/* visitor_answer() with the lines that keep pages of others out; `body` is empty afterwards. `type` is its media type.
 */
void server_answer(struct visitor *visitor, int status, const char *type, struct evbuffer *body);
