/* Which daemon this is, for clients that choose between several; and the end of a private one. */
#include <errno.h>
#include <unistd.h>

#include "daemon/base/log.h"
#include "daemon/ctl/handlers.h"
#include "daemon/ctl/users/access.h"

void handle_who(struct session *session, const Dlp__Request *request) {
        Dlp__WhoReply who = DLP__WHO_REPLY__INIT;
        Dlp__Reply reply = DLP__REPLY__INIT;

        who.is_private = session->server->options.is_private;
        who.serves_paths = access_paths(session);
        who.uid = geteuid();
        reply.id = request->id;
        reply.body_case = DLP__REPLY__BODY_WHO;
        reply.who = &who;
        session_reply(session, &reply, NULL, 0);
}

static uint32_t count_ranks(const struct server *server) {
        const struct session *session;
        uint32_t n = 0;

        TAILQ_FOREACH(session, &server->sessions, entry)
                n += session->job != NULL;
        return n;
}

static int check_may_stop(struct session *session, bool now, struct why *why) {
        uint32_t n_ranks = count_ranks(session->server);

        if (!session->server->options.is_private)
                return why_set(
                        why, -EPERM,
                        "stop: this daemon was not started by its users; whoever runs it ends it (systemctl stop "
                        "dataloaderd, or SIGTERM)");
        if (!access_is_admin(session))
                return access_refuse(session, "stop", "end it", why);
        if (n_ranks > 0 && !now)
                return why_set(why, -EBUSY,
                               "stop: %u ranks are attached (dlctl jobs lists them), and their loaders would start "
                               "another daemon; end them first, or use --now",
                               n_ranks);
        return 0;
}

void handle_stop(struct session *session, const Dlp__Request *request) {
        struct server *server = session->server;
        Dlp__StopReply stop = DLP__STOP_REPLY__INIT;
        Dlp__Reply reply = DLP__REPLY__INIT;
        struct why why;
        int r = check_may_stop(session, request->stop->now, &why);

        if (r < 0) {
                session_refuse(session, request->id, r, why.text);
                return;
        }
        stop.n_ranks = count_ranks(server);
        reply.id = request->id;
        reply.body_case = DLP__REPLY__BODY_STOP;
        reply.stop = &stop;
        session_reply(session, &reply, NULL, 0);
        log_info("ctl", "asked to stop by pid=%d user=%s", session->peer.pid, session_user(session));
        server->options.stop(server->options.userdata);
}
