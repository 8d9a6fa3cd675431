#include "daemon/ctl/metrics/metrics_http.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/base/work/closer.h"
#include "daemon/ctl/metrics/metrics.h"
#include "proto/base/clock.h"
#include "proto/http/visitor.h"

#define FRESH_NS    100000000u
#define FRESH_TIMES 50u /* a text is kept that often as long as it took to make it, and at least FRESH_NS */

struct metrics_http {
        struct server *server;
        int listen_fd;
        struct visitors visitors;

        /* The visitors' thread's, but the main thread's while it is asked. */
        struct MHD_Response *text; /* what was made last; NULL: nothing, or there was no memory */
        uint64_t fresh_until_ns;
};

/* ---- the main thread: the text ------------------------------------------------------------------------------- */

static struct MHD_Response *text_make(struct server *server) {
        struct MHD_Response *response = NULL;
        struct metrics metrics;
        char *text;
        size_t n;
        int r;

        r = metrics_collect(server, NULL, &metrics);
        if (r == 0)
                r = metrics_write(&metrics, &text, &n);
        metrics_free(&metrics);
        if (r < 0)
                return NULL;
        response = MHD_create_response_from_buffer(n, text, MHD_RESPMEM_MUST_FREE);
        if (!response)
                free(text);
        else
                MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                                        "text/plain; version=0.0.4; charset=utf-8");
        return response;
}

static void text_give_up(struct metrics_http *http) {
        if (http->text)
                MHD_destroy_response(http->text); /* visitors who take it keep it */
        http->text = NULL;
}

static void make_text(void *arg, void *question) {
        struct metrics_http *http = arg;
        uint64_t begin_ns = clock_now_ns(), took_ns;

        (void)question;
        text_give_up(http);
        http->text = text_make(http->server);
        took_ns = clock_now_ns() - begin_ns;
        http->fresh_until_ns = begin_ns + (took_ns * FRESH_TIMES > FRESH_NS ? took_ns * FRESH_TIMES : FRESH_NS);
}

/* ---- the visitors' thread ------------------------------------------------------------------------------------ */

static enum MHD_Result serve(void *arg, struct visitor *visitor, const char *path) {
        struct metrics_http *http = arg;

        if (strcmp(path, "/metrics") != 0)
                return visitor_answer(visitor, MHD_HTTP_NOT_FOUND,
                                      visitor_sentence("There is one page here: /metrics."));
        if ((!http->text || clock_now_ns() >= http->fresh_until_ns) && !visitors_ask(&http->visitors, NULL))
                return MHD_NO;
        if (!http->text)
                return visitor_answer(visitor, MHD_HTTP_SERVICE_UNAVAILABLE,
                                      visitor_sentence("The daemon has no memory for the text: try again."));
        return MHD_queue_response(visitor->connection, MHD_HTTP_OK, http->text);
}

/* A copy keeps it open, so that it is not libmicrohttpd's close() that waits for what a stranger has sent. */
static void metrics_http_leave(int fd) {
        int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

        if (copy >= 0)
                closer_end_connection(copy, (uid_t)-1);
}

/* ---------------------------------------------------------------------------------------------------------------- */

int metrics_http_open(struct event_base *base, int listen_fd, struct server *server, struct metrics_http **ret_http) {
        static const struct visitor_header NO_HEADERS[] = { { NULL, NULL } };
        struct metrics_http *http = calloc(1, sizeof(*http));
        const struct visitors_options options = {
                .n_max = { 32 },
                .silent_s = 150, /* scrapers keep their connection from one minute to the next */
                .headers = NO_HEADERS,
                .arg = http,
                .serve = serve,
                .leave = metrics_http_leave,
                .hear = make_text,
        };
        int r;

        if (!http) {
                close(listen_fd);
                return -ENOMEM;
        }
        http->server = server;
        http->listen_fd = listen_fd;
        closer_refuse_descriptors(listen_fd);
        r = visitors_open(&http->visitors, base, &options, listen_fd);
        if (r < 0)
                metrics_http_close(http);
        else
                *ret_http = http;
        return r;
}

void metrics_http_close(struct metrics_http *http) {
        if (!http)
                return;
        visitors_close(&http->visitors);
        closer_close(http->listen_fd, (uid_t)-1); /* with what those sent who were not let in */
        text_give_up(http);
        free(http);
}
