/* The metrics, for those who have no HTTP. Everybody may ask: the text has what the other lists would show. */
#include <errno.h>

#include "daemon/ctl/handlers.h"
#include "daemon/ctl/metrics/metrics_pages.h"

#define PART_BYTES 49152u /* of text in a reply: fits into a packet with its envelope */

void handle_metrics(struct session *session, const Dlp__Request *request) {
        Dlp__Reply reply = DLP__REPLY__INIT;
        Dlp__MetricsReply metrics = DLP__METRICS_REPLY__INIT;
        const char *part = NULL;
        size_t n = 0;
        int r = 0;

        metrics.text = request->metrics->text;
        if (metrics.text == 0)
                r = metrics_pages_make(session, &metrics.text);
        if (r < 0) {
                session_refuse(session, request->id, r, "metrics: out of memory");
                return;
        }
        r = metrics_pages_part(session, metrics.text, request->metrics->first, PART_BYTES, &part, &n, &metrics.next);
        if (r == -EAGAIN) {
                session_refuse_for_now(session, request->id, r, "metrics: too many ask at once; begin again", NULL);
                return;
        }
        if (r < 0) {
                session_refuse(session, request->id, r, "metrics: the text has no such byte");
                return;
        }
        metrics.part.data = (uint8_t *)(uintptr_t)part;
        metrics.part.len = n;
        reply.id = request->id;
        reply.body_case = DLP__REPLY__BODY_METRICS;
        reply.metrics = &metrics;
        session_reply(session, &reply, NULL, 0);
        if (metrics.next == 0)
                metrics_pages_drop(session->server, session);
}
