/* The ranks of the connection's own job that have come to this node. */
#include <errno.h>

#include "daemon/ctl/handlers.h"

void handle_ranks(struct session *session, const Dlp__Request *request) {
        Dlp__Reply reply = DLP__REPLY__INIT;
        Dlp__RanksReply ranks = DLP__RANKS_REPLY__INIT;
        struct attendance *attendance;

        if (session->state != SESSION_ATTACHED) {
                session_refuse(session, request->id, -ENOTCONN, "ranks: attach first");
                return;
        }
        attendance = &session->job->attendance;
        ranks.ranks = attendance->ranks;
        ranks.n_ranks = attendance->n_ranks;
        reply.id = request->id;
        reply.body_case = DLP__REPLY__BODY_RANKS;
        reply.ranks = &ranks;
        session_reply(session, &reply, NULL, 0);
}
