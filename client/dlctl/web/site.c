#include "client/dlctl/web/site.h"

#include <stdlib.h>
#include <string.h>

#include "client/dlctl/command.h"

static void write_page(struct site *site, const struct request *request, struct evbuffer *body) {
        (void)request;
        piece_send(site->page.text, body);
}

static void write_status(struct site *site, const struct request *request, struct evbuffer *body) {
        struct view_known known = {
                .sequence = request_number(request, "since", 0),
                .datasets = request_number(request, "datasets", 0),
                .errors = request_number(request, "errors", 0),
        };

        view_write(site->view, &known, body);
}

static const struct {
        const char *path, *type;
        void (*write)(struct site *site, const struct request *request, struct evbuffer *body);
} PATHS[] = {
        { "/", "text/html; charset=utf-8", write_page },
        { "/status.json", "application/json", write_status },
};

static struct evbuffer *new_body(void) {
        struct evbuffer *body = evbuffer_new();

        if (!body)
                exit(fail(EXIT_REFUSED, "no memory"));
        return body;
}

/* The status is what tells a scraper that the daemon is away. */
static void site_serve_metrics(struct site *site, struct visitor *visitor) {
        struct evbuffer *body = new_body();
        struct why why;

        if (scrape_take(&site->scrape, body, &why) == 0)
                server_answer(visitor, 200, "text/plain; version=0.0.4; charset=utf-8", body);
        else
                visitor_say(visitor, 503, "%s", why.text);
        evbuffer_free(body);
}

void site_serve(void *arg, const struct request *request, struct visitor *visitor) {
        struct site *site = arg;
        struct evbuffer *body;

        if (strcmp(request->path, "/metrics") == 0) {
                site_serve_metrics(site, visitor);
                return;
        }
        for (size_t i = 0; i < sizeof(PATHS) / sizeof(PATHS[0]); i++) {
                if (strcmp(request->path, PATHS[i].path) != 0)
                        continue;
                watch_looked(site->watch);
                body = new_body();
                PATHS[i].write(site, request, body);
                server_answer(visitor, 200, PATHS[i].type, body);
                evbuffer_free(body);
                return;
        }
        visitor_say(visitor, 404,
                    "There is no such page here: / is the status page, /status.json what it shows, /metrics is for "
                    "Prometheus.");
}
