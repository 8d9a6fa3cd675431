/* A dataset that lies elsewhere is brought here as a whole, as long as somebody asks for it. */
#include "daemon/ctl/ctl_origin.h"
#include "daemon/ctl/handlers.h"
#include "daemon/ctl/opened/ctl_opened.h"
#include "daemon/pipeline/catalog/catalog_remote.h"

void handle_fill(struct session *session, const Dlp__Request *request) {
        Dlp__Reply reply = DLP__REPLY__INIT;
        Dlp__FillReply fill = DLP__FILL_REPLY__INIT;
        Dlp__Origin message;
        struct dlp_origin origin;
        struct catalog_entry *entry;
        struct catalog_dataset *open;
        bool is_full = false;
        struct why why;
        int r = opened_find(session, request->fill->dataset, &entry, &why);

        if (r < 0) {
                session_refuse(session, request->id, r, why.text);
                return;
        }
        open = entry->open;
        if (open->remote) {
                fill.next = cached_fill(open->remote->cached, request->fill->first, &fill.n_chunks, &is_full);
                fill.is_full = is_full;
                cached_report(open->remote->cached, &origin);
                fill.origin = tell_origin(&message, &origin);
        }
        reply.id = request->id;
        reply.body_case = DLP__REPLY__BODY_FILL;
        reply.fill = &fill;
        session_reply(session, &reply, NULL, 0);
}
