#include "daemon/ctl/metrics/metrics_http.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/work/closer.h"
#include "daemon/ctl/metrics/metrics.h"
#include "proto/base/clock.h"
#include "proto/http/visitor.h"

#define FRESH_NS    100000000u
#define FRESH_TIMES 50u /* a text is kept that often as long as it took to make it, and at least FRESH_NS */

/* A text that several answers send without copies. */
struct piece {
        unsigned n_references;
        char *text;
        size_t n;
};

struct metrics_http {
        struct server *server;
        int listen_fd;
        struct visitors visitors;
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
static struct piece *current_piece(struct metrics_http *http) {
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

static void metrics_http_serve(struct metrics_http *http, struct visitor *visitor) {
        struct piece *piece = current_piece(http);
        struct evbuffer *body = evbuffer_new();

        if (!body || !piece || evbuffer_add_reference(body, piece->text, piece->n, on_sent, piece) < 0) {
                visitor_say(visitor, 503, "The daemon has no memory for the text: try again.");
        } else {
                piece->n_references++;
                visitor_answer(visitor, 200, "text/plain; version=0.0.4; charset=utf-8", "", body);
        }
        if (body)
                evbuffer_free(body);
}

static void serve(void *arg, const struct request *request, struct visitor *visitor) {
        if (strcmp(request->path, "/metrics") == 0)
                metrics_http_serve(arg, visitor);
        else
                visitor_say(visitor, 404, "There is one page here: /metrics.");
}

static void metrics_http_end(evutil_socket_t fd) {
        closer_end_connection(fd, (uid_t)-1);
}

/* ---------------------------------------------------------------------------------------------------------------- */

int metrics_http_open(struct event_base *base, int listen_fd, struct server *server, struct metrics_http **ret_http) {
        struct metrics_http *http = calloc(1, sizeof(*http));
        const struct visitors_options options = {
                .n_max = { 8 },
                .pause_us = 5000,
                .silent_s = 150, /* scrapers keep their connection from one minute to the next */
                .slow_s = 10,
                .lines = "",
                .arg = http,
                .serve = serve,
                .close = metrics_http_end,
        };

        if (!http) {
                close(listen_fd);
                return -ENOMEM;
        }
        http->server = server;
        http->listen_fd = listen_fd;
        closer_refuse_descriptors(listen_fd);
        if (visitors_open(&http->visitors, base, &options, listen_fd, NULL, 0) < 0) {
                metrics_http_close(http);
                return -ENOMEM;
        }
        *ret_http = http;
        return 0;
}

void metrics_http_close(struct metrics_http *http) {
        if (!http)
                return;
        visitors_close(&http->visitors);
        closer_close(http->listen_fd, (uid_t)-1); /* with what those sent who were not let in */
        metrics_http_piece_unref(http->piece);
        free(http);
}
