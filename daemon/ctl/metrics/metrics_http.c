#include "daemon/ctl/metrics/metrics_http.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/base/queue.h"
#include "daemon/base/work/closer.h"
#include "daemon/ctl/metrics/metrics.h"
#include "proto/base/clock.h"
#include "proto/http/http_intake.h"
#include "proto/http/request.h"

#define VISITORS_MAX 8u
#define PAUSE_US     5000 /* after a few visitors, for the daemon's other work */
#define SILENT_S     150  /* a connection without a request: scrapers keep theirs from one minute to the next */
#define SLOW_S       10   /* an answer of which nothing is taken */
#define FAREWELL_S   2    /* for the other end to close, so that what it still sends does not tear the answer away */
#define FRESH_NS     100000000u
#define FRESH_TIMES  50u /* a text is kept that often as long as it took to make it, and at least FRESH_NS */

#define TYPE_METRICS "text/plain; version=0.0.4; charset=utf-8"
#define TYPE_TEXT    "text/plain; charset=utf-8"

/* A text that several answers send without copies. */
struct piece {
        unsigned n_references;
        char *text;
        size_t n;
};

struct visitor {
        TAILQ_ENTRY(visitor) entry;
        struct http *http;
        struct bufferevent *stream;
        bool is_answered; /* takes its answer, or has its last one */
        bool keep, head_only, has_failed;
};

struct http {
        struct server *server;
        int listen_fd;
        struct intake intake;
        TAILQ_HEAD(, visitor) visitors; /* the one that has been silent longest is the first */
        unsigned n_visitors;
        struct piece *piece; /* what was made last; NULL: nothing */
        uint64_t fresh_until_ns;
};

/* ---- the text ------------------------------------------------------------------------------------------------ */

static void metrics_http_piece_unref(struct piece *piece) {
        if (!piece || --piece->n_references > 0)
                return;
        free(piece->text);
        free(piece);
}

static void on_sent(const void *text, size_t n, void *piece) {
        (void)text;
        (void)n;
        metrics_http_piece_unref(piece);
}

static struct piece *piece_make(struct server *server) {
        struct piece *piece = calloc(1, sizeof(*piece));
        struct metrics metrics;
        int r;

        if (!piece)
                return NULL;
        piece->n_references = 1;
        r = metrics_collect(server, NULL, &metrics);
        if (r == 0)
                r = metrics_write(&metrics, &piece->text, &piece->n);
        metrics_free(&metrics);
        if (r == 0)
                return piece;
        metrics_http_piece_unref(piece);
        return NULL;
}

/* NULL: no memory. */
static struct piece *current_piece(struct http *http) {
        uint64_t begin_ns = clock_now_ns(), took_ns;

        if (http->piece && begin_ns < http->fresh_until_ns)
                return http->piece;
        metrics_http_piece_unref(http->piece);
        http->piece = piece_make(http->server);
        took_ns = clock_now_ns() - begin_ns;
        http->fresh_until_ns = begin_ns + (took_ns * FRESH_TIMES > FRESH_NS ? took_ns * FRESH_TIMES : FRESH_NS);
        return http->piece;
}

/* ---- visitors ------------------------------------------------------------------------------------------------ */

static void metrics_http_visitor_free(struct visitor *visitor) {
        evutil_socket_t fd;

        TAILQ_REMOVE(&visitor->http->visitors, visitor, entry);
        visitor->http->n_visitors--;
        fd = bufferevent_getfd(visitor->stream);
        bufferevent_free(visitor->stream);
        closer_end_connection(fd, (uid_t)-1);
        free(visitor);
}

static void metrics_http_visitor_limit(struct visitor *visitor, int read_s, int write_s) {
        struct timeval read = { .tv_sec = read_s }, write = { .tv_sec = write_s };

        bufferevent_set_timeouts(visitor->stream, &read, &write);
}

/* Without memory the connection is closed: half an answer would be taken for a whole one. */
static void metrics_http_answer(struct visitor *visitor, const char *status, const char *type, struct evbuffer *body) {
        struct evbuffer *output = bufferevent_get_output(visitor->stream);
        size_t n = evbuffer_get_length(body);

        if (evbuffer_add_printf(output, "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n%s%s\r\n", status,
                                type, n, strncmp(status, "405", 3) == 0 ? "Allow: GET, HEAD\r\n" : "",
                                visitor->keep ? "" : "Connection: close\r\n") < 0 ||
            (!visitor->head_only && evbuffer_add_buffer(output, body) < 0)) {
                visitor->has_failed = true;
                return;
        }
        visitor->is_answered = true;
        bufferevent_disable(visitor->stream, EV_READ); /* no further request before this answer is taken */
        metrics_http_visitor_limit(visitor, SILENT_S, SLOW_S);
}

static void metrics_http_say(struct visitor *visitor, const char *status, const char *sentence, struct evbuffer *body) {
        if (evbuffer_add_printf(body, "%s\n", sentence) < 0)
                visitor->has_failed = true;
        else
                metrics_http_answer(visitor, status, TYPE_TEXT, body);
}

static const char *status_of(int status) {
        switch (status) {
        case 413:
                return "413 Content Too Large";
        case 431:
                return "431 Request Header Fields Too Large";
        case 505:
                return "505 HTTP Version Not Supported";
        default:
                return "400 Bad Request";
        }
}

static void metrics_http_serve_metrics(struct visitor *visitor, struct evbuffer *body) {
        struct piece *piece = current_piece(visitor->http);

        if (!piece || evbuffer_add_reference(body, piece->text, piece->n, on_sent, piece) < 0) {
                metrics_http_say(visitor, "503 Service Unavailable",
                                 "The daemon has no memory for the text: try again.", body);
                return;
        }
        piece->n_references++;
        metrics_http_answer(visitor, "200 OK", TYPE_METRICS, body);
}

static void metrics_http_serve(struct visitor *visitor, char *head, size_t n, struct evbuffer *body) {
        struct request request = { .host = NULL };
        const char *why = "";
        int status = request_parse(head, n, &request, &why);

        visitor->keep = status == 0 && request.keep;
        visitor->head_only = status == 0 && request.method == REQUEST_HEAD;
        if (status != 0) {
                metrics_http_say(visitor, status_of(status), why, body);
        } else if (request.method == REQUEST_OTHER) {
                visitor->keep = false;
                metrics_http_say(visitor, "405 Method Not Allowed",
                                 "Nothing can be changed here: GET and HEAD are allowed.", body);
        } else if (strcmp(request.path, "/metrics") == 0) {
                metrics_http_serve_metrics(visitor, body);
        } else {
                metrics_http_say(visitor, "404 Not Found", "There is one page here: /metrics.", body);
        }
}

/* What has come is a head and a read of 16 KiB at most: nothing is read while there is an answer to take. (A watermark
 * would say so, too; libevent 2.1 crashes in setting it if there is no memory.) */
static void take_request(struct visitor *visitor) {
        struct evbuffer *input = bufferevent_get_input(visitor->stream), *body;
        char head[REQUEST_HEAD_MAX + 1];
        size_t n = (size_t)evbuffer_copyout(input, head, REQUEST_HEAD_MAX), n_head;

        head[n] = '\0';
        n_head = request_head_length(head, n);
        if (n_head == 0 && n < REQUEST_HEAD_MAX)
                return;
        body = evbuffer_new();
        if (!body) {
                metrics_http_visitor_free(visitor);
                return;
        }
        TAILQ_REMOVE(&visitor->http->visitors, visitor, entry);
        TAILQ_INSERT_TAIL(&visitor->http->visitors, visitor, entry);
        if (n_head > 0) {
                evbuffer_drain(input, n_head);
                head[n_head] = '\0';
                metrics_http_serve(visitor, head, n_head, body);
        } else {
                visitor->keep = visitor->head_only = false;
                metrics_http_say(visitor, status_of(431), "The head of the request is longer than 8192 bytes.", body);
        }
        evbuffer_free(body);
        if (visitor->has_failed)
                metrics_http_visitor_free(visitor);
}

static void metrics_http_on_readable(struct bufferevent *stream, void *arg) {
        struct visitor *visitor = arg;

        if (visitor->is_answered)
                evbuffer_drain(bufferevent_get_input(stream), SIZE_MAX);
        else
                take_request(visitor);
}

/* All of an answer has been handed to the kernel. */
static void metrics_http_on_written(struct bufferevent *stream, void *arg) {
        struct visitor *visitor = arg;

        if (!visitor->is_answered)
                return;
        if (visitor->keep) {
                visitor->is_answered = false;
                bufferevent_enable(stream, EV_READ);
                take_request(visitor); /* the next one may have come with this one */
                return;
        }
        shutdown(bufferevent_getfd(stream), SHUT_WR);
        metrics_http_visitor_limit(visitor, FAREWELL_S, FAREWELL_S);
        bufferevent_enable(stream, EV_READ);
        evbuffer_drain(bufferevent_get_input(stream), SIZE_MAX);
}

static void metrics_http_on_end(struct bufferevent *stream, short what, void *arg) {
        (void)stream;
        (void)what;
        metrics_http_visitor_free(arg);
}

/* One that does not take his answer goes first, then the one that has been silent longest. */
static void metrics_http_make_room(struct http *http) {
        struct visitor *visitor, *first = TAILQ_FIRST(&http->visitors);

        if (http->n_visitors < VISITORS_MAX)
                return;
        TAILQ_FOREACH(visitor, &http->visitors, entry)
                if (visitor->is_answered) {
                        first = visitor;
                        break;
                }
        metrics_http_visitor_free(first);
}

static void metrics_http_on_visitor(struct evconnlistener *listener, evutil_socket_t fd, struct sockaddr *address,
                                    int n_address, void *arg) {
        struct http *http = arg;
        struct visitor *visitor = calloc(1, sizeof(*visitor));
        struct bufferevent *stream = visitor ? bufferevent_socket_new(evconnlistener_get_base(listener), fd, 0) : NULL;

        (void)address;
        (void)n_address;
        if (!stream) {
                closer_end_connection(fd, (uid_t)-1);
                free(visitor);
                return;
        }
        metrics_http_make_room(http);
        visitor->http = http;
        visitor->stream = stream;
        TAILQ_INSERT_TAIL(&http->visitors, visitor, entry);
        http->n_visitors++;
        bufferevent_setcb(stream, metrics_http_on_readable, metrics_http_on_written, metrics_http_on_end, visitor);
        metrics_http_visitor_limit(visitor, SILENT_S, SLOW_S);
        bufferevent_enable(stream, EV_READ | EV_WRITE);
        intake_count(&http->intake);
}

static void metrics_http_on_listen_error(struct evconnlistener *listener, void *arg) {
        struct http *http = arg;

        (void)listener;
        intake_lacks(&http->intake);
}

/* ---------------------------------------------------------------------------------------------------------------- */

int http_open(struct event_base *base, int listen_fd, struct server *server, struct http **ret_http) {
        struct http *http = calloc(1, sizeof(*http));
        struct evconnlistener *listener;

        if (!http) {
                close(listen_fd);
                return -ENOMEM;
        }
        http->server = server;
        http->listen_fd = listen_fd;
        TAILQ_INIT(&http->visitors);
        closer_refuse_descriptors(listen_fd);
        listener = evconnlistener_new(base, metrics_http_on_visitor, http, LEV_OPT_CLOSE_ON_EXEC, 0, listen_fd);
        if (intake_begin(&http->intake, base, listener, PAUSE_US) < 0) {
                http_close(http);
                return -ENOMEM;
        }
        evconnlistener_set_error_cb(listener, metrics_http_on_listen_error);
        *ret_http = http;
        return 0;
}

void http_close(struct http *http) {
        struct visitor *visitor;

        if (!http)
                return;
        while ((visitor = TAILQ_FIRST(&http->visitors)))
                metrics_http_visitor_free(visitor);
        intake_end(&http->intake);
        closer_close(http->listen_fd, (uid_t)-1); /* with what those sent who were not let in */
        metrics_http_piece_unref(http->piece);
        free(http);
}
