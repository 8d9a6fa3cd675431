/* proto/http/visitor.h: visitors of a page of ours: who is let in, what they get, who is sent away.
 *
 * HTTP is libmicrohttpd's: it reads requests of any kind, answers what is none, and never waits for a visitor. This
 * adds what it does not have: room for others. The number of connections is limited; if one more comes, another is sent
 * away: first of those that do not take their answer, then of those that have never asked, then of those between two
 * questions; each time the one that has been silent longest. So whoever opens connections without end takes nobody's
 * place. Without memory a connection is closed, because half an answer would be taken for a whole one.
 *
 * Visitors are served by a thread of libmicrohttpd's: whatever they do, the thread that opened the page goes on. Only
 * for what is its own the other one asks it, a question at a time (visitors_ask()). libmicrohttpd polls; its other way,
 * epoll, overlooks an end that comes together with the last bytes.
 *
 * It is for the daemon and dlctl, and not for the client's library. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <sys/queue.h>

#include "proto/late/mhd_late.h"

struct event;
struct event_base;
struct visitors;

/* A connection. */
struct visitor {
        TAILQ_ENTRY(visitor) entry;
        struct visitors *visitors;
        struct MHD_Connection *connection;
        int fd;
        bool is_stranger; /* he is in a line of his own, and has little time */
        bool has_asked, listens;
        bool has_left; /* was sent away, and is in no line */
};

struct visitor_header {
        const char *name, *value;
};

struct visitors_options {
        unsigned n_max[2];                    /* visitors at once: [is_stranger] */
        unsigned silent_s;                    /* a connection on which nothing happens */
        unsigned head_bytes;                  /* of a connection, for heads and parts of answers; 0: 16 KiB */
        const struct visitor_header *headers; /* of each answer that does not have them; ended by a name of NULL */
        void *arg;

        /* These are called by the visitors' thread. */

        /* Somebody has come. NULL: nobody is a stranger. */
        bool (*is_stranger)(void *arg, int fd);

        /* Answers GET or HEAD with visitor_answer(), and returns what that returns. MHD_NO closes the connection. An
         * answer whose bytes come later may suspend its connection; all are resumed before visitors_close(). */
        enum MHD_Result (*serve)(void *arg, struct visitor *visitor, const char *path);

        /* A connection's socket is about to be closed. NULL: nothing. */
        void (*leave)(int fd);

        /* And this by the thread that has opened the visitors: what visitors_ask() waits for. */
        void (*hear)(void *arg, void *question);
};

struct visitors {
        struct visitors_options options;
        struct MHD_Daemon *daemon;
        TAILQ_HEAD(, visitor) list; /* the visitors' thread's; the one that has been silent longest is the first */
        unsigned n[2];              /* [is_stranger] */

        int asked_fd; /* an eventfd */
        struct event *asked;
        pthread_mutex_t lock; /* a leaf; of these: */
        pthread_cond_t heard;
        bool is_asked, ends;
        void *question;
};

/* Serves on a listening socket, which stays the caller's; after mhd_load(). Returns 0 or a negative errno;
 * visitors_close() in any case. The struct stays where it is. */
int visitors_open(struct visitors *visitors, struct event_base *base, const struct visitors_options *options,
                  int listen_fd);
void visitors_close(struct visitors *visitors);

/* Has the thread that opened the visitors hear this question, and waits until it has. Returns false if the visitors are
 * being closed. Visitors' thread. */
bool visitors_ask(struct visitors *visitors, void *question);

/* Answers the request with this status; the response is given up. NULL: there was no memory for it. Visitors' thread.
 */
enum MHD_Result visitor_answer(struct visitor *visitor, unsigned status, struct MHD_Response *response);

/* A sentence as plain text. NULL: no memory. Any thread. */
struct MHD_Response *visitor_sentence(const char *format, ...) __attribute__((format(printf, 1, 2)));
