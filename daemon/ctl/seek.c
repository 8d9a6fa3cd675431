/* A rank wants to go on elsewhere: another epoch, another step. */
#include <errno.h>

#include "daemon/ctl/handlers.h"

void handle_seek(struct session *session, const Dlp__Request *request) {
        const Dlp__Seek *seek = request->seek;
        Dlp__Reply reply = DLP__REPLY__INIT;
        Dlp__Sought sought = DLP__SOUGHT__INIT;
        struct why why;

        if (session->state != SESSION_ATTACHED) {
                session_refuse(session, request->id, -ENOTCONN, "seek: attach first");
                return;
        }
        if (seek->epoch > DLP_EPOCH_MAX) {
                session_refuse(session, request->id, -EINVAL, "epoch: is out of range; 0 to 4294967295 are allowed");
                return;
        }
        if (seek->step > session->stream->rank_batches) {
                why_set(&why, 0, "step: %llu is out of range; this rank has %llu batches an epoch",
                        (unsigned long long)seek->step, (unsigned long long)session->stream->rank_batches);
                session_refuse(session, request->id, -EINVAL, why.text);
                return;
        }
        sought.stream = pipeline_seek(session->server->options.pipeline, session->stream, seek->epoch, seek->step);
        reply.id = request->id;
        reply.body_case = DLP__REPLY__BODY_SOUGHT;
        reply.sought = &sought;
        session_reply(session, &reply, NULL, 0);
}
