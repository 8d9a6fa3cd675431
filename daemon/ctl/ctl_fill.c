/* A dataset that lies elsewhere is brought here as a whole, as long as somebody asks for it. */
#include <errno.h>

#include "daemon/ctl/ctl_origin.h"
#include "daemon/ctl/handlers.h"
#include "daemon/ctl/users/access.h"
#include "daemon/pipeline/catalog/catalog_remote.h"
#include "proto/base/clock.h"

static int find_open(struct session *session, const char *name, struct catalog_dataset **ret_open, struct why *why) {
        struct catalog_entry *entry;
        int r = access_find_dataset(session, name, &entry, why);

        if (r < 0)
                return r;
        if (entry->state != CATALOG_READY) {
                catalog_try_again(entry);
                return why_set(why, -EBUSY, "%s: %s%s%s", entry->name, catalog_state_name(entry->state),
                               entry->text.text[0] ? ": " : "", entry->text.text);
        }
        entry->used_ns = clock_now_ns();
        *ret_open = entry->open;
        return 0;
}

void handle_fill(struct session *session, const Dlp__Request *request) {
        Dlp__Reply reply = DLP__REPLY__INIT;
        Dlp__FillReply fill = DLP__FILL_REPLY__INIT;
        Dlp__Origin message;
        struct dlp_origin origin;
        struct catalog_dataset *open;
        bool is_full = false;
        struct why why;
        int r = find_open(session, request->fill->dataset, &open, &why);

        if (r < 0) {
                session_refuse(session, request->id, r, why.text);
                return;
        }
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
