#include "daemon/ctl/users/turns.h"

#include <errno.h>
#include <event2/event.h>

#include "daemon/ctl/session.h"
#include "daemon/ctl/users/access.h"
#include "proto/base/clock.h"

#define LOOK_US 20000 /* between two looks at those who wait */

void turn_end(const struct session *session, uint64_t begun_ns) {
        struct user *user = user_get(&session->server->users, session->peer.uid);
        uint64_t taken_ns = clock_thread_ns() - begun_ns, now_ns = clock_now_ns();

        if (!user)
                return;
        if (user->turns_paid_ns < now_ns)
                user->turns_paid_ns = now_ns;
        user->turns_paid_ns += taken_ns * 100 / TURN_PERCENT;
        if (user->turns_paid_ns > now_ns + TURN_WAIT_NS)
                user->turns_paid_ns = now_ns + TURN_WAIT_NS;
        fair_group_charge(&user->time, taken_ns);
}

static bool are_others_served(const struct session *session) {
        const struct session *other;

        TAILQ_FOREACH(other, &session->server->sessions, entry)
                if (other->feed && other->peer.uid != session->peer.uid)
                        return true;
        return false;
}

static bool must_wait(const struct session *session) {
        const struct user *user = user_get(&session->server->users, session->peer.uid);
        uint64_t credit_ns = (uint64_t)TURN_CREDIT_NS * 100 / TURN_PERCENT;

        return user && user->turns_paid_ns > clock_now_ns() + credit_ns && session->state != SESSION_WORKING &&
               !access_is_admin(session) && are_others_served(session);
}

static void look_again(struct server *server) {
        event_add(server->turns_event, &(struct timeval){ .tv_usec = LOOK_US });
}

static void turns_on_look(evutil_socket_t fd, short what, void *userdata) {
        struct server *server = userdata;
        struct session *session;
        bool some_wait = false;

        TAILQ_FOREACH(session, &server->sessions, entry) {
                if (!session->waits_for_turn)
                        continue;
                session->waits_for_turn = must_wait(session);
                if (session->waits_for_turn)
                        some_wait = true;
                else
                        session_listen(session, true);
        }
        if (some_wait)
                look_again(server);
}

bool turn_is_over(struct session *session) {
        if (!must_wait(session))
                return false;
        session_listen(session, false);
        session->waits_for_turn = true;
        look_again(session->server);
        return true;
}

int turns_start(struct server *server) {
        server->turns_event = event_new(server->options.base, -1, 0, turns_on_look, server);
        return server->turns_event ? 0 : -ENOMEM;
}

void turns_stop(struct server *server) {
        if (server->turns_event)
                event_free(server->turns_event);
        server->turns_event = NULL;
}
