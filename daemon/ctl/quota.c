#include "daemon/ctl/quota.h"

#include <errno.h>

#include "daemon/ctl/access.h"

/* Connections of users that limits are for: all of them, and those of this session's user. */
static void count_sessions(const struct session *session, uint32_t *ret_all, uint32_t *ret_mine) {
        const struct session *other;

        *ret_all = *ret_mine = 0;
        TAILQ_FOREACH(other, &session->server->sessions, entry) {
                *ret_all += !access_is_admin(other);
                *ret_mine += other->peer.uid == session->peer.uid;
        }
}

static uint32_t share_of(uint32_t left, uint32_t percent) {
        uint32_t share = (uint32_t)((uint64_t)left * percent / 100);

        return share > 0 ? share : 1;
}

static int too_many(const struct session *session, struct why *why) {
        return why_set(why, -EMFILE,
                       "there are %u connections already, which is the limit; close some, or raise LimitNOFILE= of the "
                       "daemon if that is below %u",
                       session->server->n_sessions_max, 4 * SESSIONS_MAX);
}

int quota_connection(const struct session *session, struct why *why) {
        const struct server *server = session->server;
        uint32_t percent = server->options.quotas.connections, n_all, n_mine, n_others;

        if (access_is_admin(session))
                return server->n_sessions <= server->n_sessions_max + SESSIONS_RESERVED ? 0 : too_many(session, why);
        count_sessions(session, &n_all, &n_mine);
        n_others = n_all - n_mine;
        if (n_all > server->n_sessions_max)
                return too_many(session, why);
        if (n_mine > share_of(server->n_sessions_max - n_others, percent))
                return why_set(why, -EDQUOT,
                               "user_connections: user %u has %u connections already; %u %% of the %u that other users "
                               "leave are allowed: close loaders that are not needed, or have user_connections raised",
                               session->peer.uid, n_mine - 1, percent, server->n_sessions_max - n_others);
        return quota_descriptor(session, session->fd, why);
}

int quota_descriptor(const struct session *session, int fd, struct why *why) {
        uint32_t n_max = session->server->n_descriptors_max;

        if (access_is_admin(session) || (uint32_t)fd + DESCRIPTORS_RESERVED < n_max)
                return 0;
        return why_set(why, -EMFILE,
                       "the daemon has few descriptors left of %u; close loaders that are not needed, or raise "
                       "LimitNOFILE= of the daemon",
                       n_max);
}

int quota_user(const struct session *session, struct user **ret_user, struct budget **ret_budget) {
        struct server *server = session->server;
        uint32_t uid = session->peer.uid, percent = server->options.quotas.memory;
        struct user *user = user_get(&server->users, uid);

        if (!user)
                return -ENOMEM;
        if (!user->budget.whole)
                budget_share_init(&user->budget, server->options.budget, uid, percent);
        user->budget.percent = percent; /* a reload may have changed it */
        *ret_budget = access_is_admin(session) ? NULL : &user->budget;
        *ret_user = user;
        return 0;
}

int quota_job(const struct session *session, struct why *why) {
        const struct server *server = session->server;
        uint32_t n_mine = 0, n_max = server->options.quotas.jobs;
        const struct job *job;

        LIST_FOREACH(job, &server->jobs, entry)
                n_mine += job->uid == session->peer.uid;
        if (access_is_admin(session) || n_mine < n_max)
                return 0;
        return why_set(why, -EDQUOT,
                       "user_jobs: user %u has %u jobs already, which is the limit; end some, or have user_jobs raised",
                       session->peer.uid, n_mine);
}
