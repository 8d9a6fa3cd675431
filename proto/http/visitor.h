/* proto/http/visitor.h: visitors of a page of ours: who is let in, what they ask, that they take their answers, who is sent away.
 *
 * One request of a connection is under way at a time. The number of connections is limited. If one more comes, another
 * is closed: first of those that do not take their answer, then of those that have never asked, then of those between
 * two questions; each time the one that has been silent longest. Without memory a connection is closed, because half an
 * answer would be taken for a whole one.
 *
 * It uses libevent's buffers, so it is for the daemon and dlctl, and not for the client's library. One thread. */
#pragma once

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/util.h>
#include <sys/queue.h>

#include "proto/http/request.h"

struct evconnlistener;
struct event;
struct event_base;
struct sockaddr;

struct visitors;

enum visitor_state {
        VISITOR_ASKS,
        VISITOR_LISTENS, /* takes an answer */
        VISITOR_LEAVES,  /* has its last one: what it still sends is thrown away */
};

struct visitor {
        TAILQ_ENTRY(visitor) entry;
        struct visitors *visitors;
        struct bufferevent *stream;
        enum visitor_state state;
        bool is_stranger; /* set by options.meet(): he is in a line of his own, and has little time */
        bool has_asked, keep, head_only, has_failed;
};

struct visitors_options {
        unsigned n_max[2]; /* visitors at once: [is_stranger] */
        int pause_us;      /* after a few visitors, for other work */
        int silent_s;      /* a connection without a request */
        int slow_s;        /* an answer of which nothing is taken */
        const char *lines; /* of the head of each sentence: "Name: value\r\n" */
        void *arg;

        /* Somebody has come. NULL: all are welcome. */
        void (*meet)(void *arg, struct visitor *visitor, evutil_socket_t fd);

        /* Is this request to be answered? Else this has answered it. `request` is NULL if it could not be read. NULL:
         * all are. */
        bool (*admit)(void *arg, struct visitor *visitor, const struct request *request);

        /* Answers GET or HEAD. */
        void (*serve)(void *arg, const struct request *request, struct visitor *visitor);

        /* Closes a connection's socket. */
        void (*close)(evutil_socket_t fd);
};

struct visitors {
        struct visitors_options options;
        struct evconnlistener *listener;
        struct event *again; /* listens again after a pause */
        unsigned n_at_once;
        TAILQ_HEAD(, visitor) list; /* the one that has been silent longest is the first */
        unsigned n[2];              /* [is_stranger] */
};

/* Listens where `address` says; NULL: on `fd`, which listens already. Returns 0 or a negative errno; visitors_close()
 * in any case. The struct stays where it is. */
int visitors_open(struct visitors *visitors, struct event_base *base, const struct visitors_options *options, int fd,
                  const struct sockaddr *address, int n_address);
void visitors_close(struct visitors *visitors);

/* Answers the request. `lines` are more lines of the head. The body is emptied. */
void visitor_answer(struct visitor *visitor, int status, const char *type, const char *lines, struct evbuffer *body);

/* The same with a sentence, as plain text. */
void visitor_say(struct visitor *visitor, int status, const char *format, ...) __attribute__((format(printf, 3, 4)));
