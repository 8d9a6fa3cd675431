/* The number of workers: asked for, or changed. */
#include <errno.h>

#include "daemon/base/log.h"
#include "daemon/ctl/handlers.h"
#include "daemon/ctl/users/access.h"

/* A rank's user shares the node with others: only an admin decides how much of it the daemon takes. */
static int check_may_change(struct session *session, struct why *why) {
        if (access_is_admin(session))
                return 0;
        return access_refuse(session, "workers", "change the number", why);
}

static int ctl_workers_change(struct session *session, uint32_t n_workers, struct why *why) {
        struct pool *pool = pipeline_pool(session->server->options.pipeline);
        uint32_t n_before = pool_n_workers(pool);
        char text[POOL_TEXT_MAX];
        int r;

        r = check_may_change(session, why);
        if (r < 0)
                return r;
        r = pool_set_workers(pool, n_workers, why);
        if (r < 0)
                return r;
        log_info("workers", "%u -> %u: %s pid=%d user=%s", n_before, pool_n_workers(pool), pool_text(pool, text),
                 session->peer.pid, session_user(session));
        return 0;
}

void handle_workers(struct session *session, const Dlp__Request *request) {
        struct pool *pool = pipeline_pool(session->server->options.pipeline);
        Dlp__WorkersReply workers = DLP__WORKERS_REPLY__INIT;
        Dlp__Reply reply = DLP__REPLY__INIT;
        char text[POOL_TEXT_MAX];
        struct why why;
        int r;

        if (request->workers->change) {
                r = ctl_workers_change(session, request->workers->n_workers, &why);
                if (r < 0) {
                        session_refuse(session, request->id, r, why.text);
                        return;
                }
        }
        workers.n_workers = pool_n_workers(pool);
        workers.n_asked = pool_n_asked(pool);
        workers.text = (char *)(uintptr_t)pool_text(pool, text);
        reply.id = request->id;
        reply.body_case = DLP__REPLY__BODY_WORKERS;
        reply.workers = &workers;
        session_reply(session, &reply, NULL, 0);
}
