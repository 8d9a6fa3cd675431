/* dlctl metrics */

#include "client/dlctl/dlctl_metrics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/dlctl/control.h"
#include "client/dlctl/dlctl_ending.h"
#include "client/dlctl/dlctl_options.h"
#include "proto/base/cleanup.h"

#define ANSWER_TIMEOUT_MS 5000
#define TRIES             20 /* others may ask as well, and the daemon keeps few texts */

struct fetched {
        char *text;
        size_t n;
};

static int dlctl_metrics_take_part(struct fetched *fetched, const Dlp__MetricsReply *part, struct why *reason) {
        char *more;

        if (part->part.len > METRICS_BYTES_MAX - fetched->n || (part->next != 0 && part->part.len == 0))
                return why_set(reason, -EPROTO, "the daemon's metrics do not end");
        more = realloc(fetched->text, fetched->n + part->part.len + 1);
        if (!more)
                return why_set(reason, -ENOMEM, "no memory");
        memcpy(more + fetched->n, part->part.data, part->part.len);
        fetched->text = more;
        fetched->n += part->part.len;
        more[fetched->n] = '\0';
        return 0;
}

/* Returns 0, DLI_ASK_AGAIN if the daemon has given the text up, or a negative errno. */
static int fetch_once(struct dli_connection *connection, int timeout_ms, struct why *reason, struct fetched *fetched) {
        Dlp__MetricsRequest body = DLP__METRICS_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        Dlp__Reply *reply;
        int r;

        request.body_case = DLP__REQUEST__BODY_METRICS;
        request.metrics = &body;
        do {
                r = dli_connection_call(connection, &request, timeout_ms, reason, &reply, NULL, 0);
                if (r != 0)
                        return r;
                if (reply->body_case != DLP__REPLY__BODY_METRICS) {
                        r = why_set(reason, -EPROTO, "the daemon at %s answered another question", connection->path);
                } else {
                        r = dlctl_metrics_take_part(fetched, reply->metrics, reason);
                        body.text = reply->metrics->text;
                        body.first = reply->metrics->next;
                }
                dlp__reply__free_unpacked(reply, NULL);
        } while (r == 0 && body.first != 0);
        return r;
}

int metrics_fetch(struct dli_connection *connection, int timeout_ms, struct why *reason, char **ret_text,
                  size_t *ret_n) {
        struct fetched fetched = { .text = NULL };
        int r = DLI_ASK_AGAIN;

        for (int i = 0; i < TRIES && r == DLI_ASK_AGAIN; i++) {
                fetched.n = 0;
                r = fetch_once(connection, timeout_ms, reason, &fetched);
        }
        if (r != 0) {
                free(fetched.text);
                return r == DLI_ASK_AGAIN ? -EBUSY : r;
        }
        *ret_text = fetched.text;
        *ret_n = fetched.n;
        return 0;
}

int metrics_run(struct context *context, const struct command *command, int argc, char **argv) {
        _cleanup_(freep) char *text = NULL;
        struct control *control;
        struct why reason;
        size_t n;
        int r;

        r = options_parse(context, command, NULL, 0, 0, argc, argv);
        if (r >= 0)
                return r;
        r = control_open(context, &control);
        if (r != EXIT_DONE)
                return r;
        r = metrics_fetch(control_connection(control), ANSWER_TIMEOUT_MS, &reason, &text, &n);
        control_close(control);
        if (r < 0)
                return fail(exit_code_of(r), "metrics: %s", reason.text);
        if (fwrite(text, 1, n, stdout) < n)
                output_failed(errno);
        return EXIT_DONE;
}
