/* A rank that gets no batch asks what it waits for. */
#include "daemon/ctl/ctl_progress.h"
#include "daemon/ctl/handlers.h"

void handle_wait(struct session *session, const Dlp__Request *request) {
        Dlp__Reply reply = DLP__REPLY__INIT;
        Dlp__WaitReply body = DLP__WAIT_REPLY__INIT;
        Dlp__Progress message;
        struct dlp_progress progress;

        if (session->job && job_order_progress(session->job, request->wait->epoch, &progress))
                body.progress = tell_progress(&message, &progress);
        reply.id = request->id;
        reply.body_case = DLP__REPLY__BODY_WAIT;
        reply.wait = &body;
        session_reply(session, &reply, NULL, 0);
}
