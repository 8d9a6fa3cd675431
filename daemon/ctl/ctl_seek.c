/* A rank seeks: to another epoch, or to a position within one. */
#include <errno.h>

#include "daemon/ctl/handlers.h"

void handle_seek(struct session *session, const Dlp__Request *request) {
        const Dlp__Seek *seek = request->seek;
        Dlp__Reply reply = DLP__REPLY__INIT;
        Dlp__Sought sought = DLP__SOUGHT__INIT;
        struct feed *feed;
        struct cursor cursor;
        struct why why;
        int r;

        if (session->state != SESSION_ATTACHED) {
                session_refuse(session, request->id, -ENOTCONN, "seek: attach first");
                return;
        }
        if (seek->epoch > DLP_EPOCH_MAX) {
                session_refuse(session, request->id, -EINVAL, "epoch: is out of range; 0 to 4294967295 are allowed");
                return;
        }
        cursor = (struct cursor){ .epoch = seek->epoch, .position = seek->position, .step = seek->step };
        feed = session->feed;
        r = cursor_check(&cursor, &session->job->terms, feed->rank, feed->n_samples, &why);
        if (r < 0) {
                session_refuse(session, request->id, r, why.text);
                return;
        }
        job_move(session->job, session->member, &cursor);
        sought.stream = pipeline_seek(session->server->options.pipeline, feed, &cursor);
        reply.id = request->id;
        reply.body_case = DLP__REPLY__BODY_SOUGHT;
        reply.sought = &sought;
        session_reply(session, &reply, NULL, 0);
}
