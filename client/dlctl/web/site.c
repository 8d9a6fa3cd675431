#include "client/dlctl/web/site.h"

#include <stdlib.h>
#include <string.h>

#include "client/dlctl/command.h"

static struct evbuffer *new_body(void) {
        struct evbuffer *body = evbuffer_new();

        if (!body)
                exit(fail(EXIT_REFUSED, "no memory"));
        return body;
}

/* A number of the query, such as 17 of "since=17&errors=2"; 0 if it is absent or no number. */
static uint64_t site_number(struct MHD_Connection *request, const char *name) {
        const char *text = MHD_lookup_connection_value(request, MHD_GET_ARGUMENT_KIND, name);

        return text && strspn(text, "0123456789") == strlen(text) ? strtoull(text, NULL, 10) : 0;
}

static struct MHD_Response *answer_page(struct site *site) {
        struct evbuffer *body = new_body();

        watch_looked(site->watch);
        piece_send(site->page.text, body);
        return server_body("text/html; charset=utf-8", site->page.policy, body);
}

static struct MHD_Response *answer_status(struct site *site, struct MHD_Connection *request) {
        const struct view_known known = {
                .sequence = site_number(request, "since"),
                .datasets = site_number(request, "datasets"),
                .errors = site_number(request, "errors"),
        };
        struct evbuffer *body = new_body();

        watch_looked(site->watch);
        view_write(site->view, &known, body);
        return server_body("application/json", NULL, body);
}

/* The status is what tells a scraper that the daemon is away. */
static struct MHD_Response *answer_metrics(struct site *site, unsigned *ret_status) {
        struct evbuffer *body = new_body();
        struct why why;

        if (scrape_take(&site->scrape, body, &why) == 0)
                return server_body("text/plain; version=0.0.4; charset=utf-8", NULL, body);
        evbuffer_free(body);
        *ret_status = MHD_HTTP_SERVICE_UNAVAILABLE;
        return visitor_sentence("%s", why.text);
}

struct MHD_Response *site_answer(void *arg, struct MHD_Connection *request, const char *path, unsigned *ret_status) {
        *ret_status = MHD_HTTP_OK;
        if (strcmp(path, "/") == 0)
                return answer_page(arg);
        if (strcmp(path, "/status.json") == 0)
                return answer_status(arg, request);
        if (strcmp(path, "/metrics") == 0)
                return answer_metrics(arg, ret_status);
        *ret_status = MHD_HTTP_NOT_FOUND;
        return visitor_sentence("There is no such page here: / is the status page, /status.json what it shows, "
                                "/metrics is for Prometheus.");
}
