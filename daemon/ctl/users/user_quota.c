#include "daemon/ctl/users/user_quota.h"

#include <errno.h>
#include <stdatomic.h>

#include "daemon/ctl/users/access.h"

struct counts {
        uint32_t n_all, n_mine, n_mine_kept;
};

/* A ring consists of two mapped files, each of which costs a descriptor as long as the client keeps the ring. */
static uint32_t n_rings_kept(const struct user *user) {
        return (atomic_load_explicit(&user->budget.n_held, memory_order_relaxed) + 1) / 2;
}

/* Counts the connections of users with limits, and the rings that clients have kept after leaving, because those take
 * descriptors like connections: the number of all users, and that of this session's user. */
static struct counts count_connections(const struct session *session) {
        struct counts counts = { 0 };
        const struct session *other;
        const struct user *user;

        TAILQ_FOREACH(other, &session->server->sessions, entry) {
                if (access_is_admin(other))
                        continue; /* also of the same number: root, beside root of a container */
                counts.n_all++;
                counts.n_mine += other->peer.uid == session->peer.uid;
        }
        LIST_FOREACH(user, &session->server->users, entry) {
                counts.n_all += n_rings_kept(user);
                if (user->uid == session->peer.uid)
                        counts.n_mine_kept = n_rings_kept(user);
        }
        counts.n_mine += counts.n_mine_kept;
        return counts;
}

static uint32_t user_quota_share_of(uint32_t left, uint32_t percent) {
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
        uint32_t percent = (uint32_t)server->options.settings->user_connections, n_left;
        struct counts counts;

        if (access_is_admin(session))
                return server->n_sessions <= server->n_sessions_max + SESSIONS_RESERVED ? 0 : too_many(session, why);
        counts = count_connections(session);
        n_left = counts.n_all - counts.n_mine; /* used by others */
        n_left = server->n_sessions_max > n_left ? server->n_sessions_max - n_left : 0;
        if (counts.n_mine > user_quota_share_of(n_left, percent))
                return why_set(
                        why, -EDQUOT,
                        "user_connections: user %u has %u connections already and %u rings that were kept after "
                        "leaving; %u %% of the %u that other users leave are allowed: close loaders that are not "
                        "needed and release their arrays, or have user_connections raised",
                        session->peer.uid, counts.n_mine - counts.n_mine_kept - 1, counts.n_mine_kept, percent, n_left);
        if (counts.n_all > server->n_sessions_max)
                return too_many(session, why);
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
        uint32_t uid = session->peer.uid, percent = (uint32_t)server->options.settings->user_memory;
        struct user *user = user_get(&server->users, uid);

        if (!user)
                return -ENOMEM;
        if (!user->budget.whole)
                budget_share_init(&user->budget, server->options.budget, uid, percent);
        user->budget.percent = percent; /* a reload may have changed the percentage */
        *ret_budget = access_is_admin(session) ? NULL : &user->budget;
        *ret_user = user;
        return 0;
}

int quota_job(const struct session *session, struct why *why) {
        const struct server *server = session->server;
        uint32_t n_mine = 0, n_max = (uint32_t)server->options.settings->user_jobs;
        const struct job *job;

        LIST_FOREACH(job, &server->jobs, entry)
                n_mine += job->uid == session->peer.uid;
        if (access_is_admin(session) || n_mine < n_max)
                return 0;
        return why_set(why, -EDQUOT,
                       "user_jobs: user %u has %u jobs already, which is the limit; end some, or have user_jobs raised",
                       session->peer.uid, n_mine);
}
