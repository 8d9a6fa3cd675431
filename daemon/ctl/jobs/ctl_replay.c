/* A job is served some batches again (pipeline/replay/replay.h): begun, ended early, or how far that is. */
#include <errno.h>
#include <string.h>

#include "daemon/base/log.h"
#include "daemon/ctl/handlers.h"
#include "daemon/ctl/jobs/ctl_replay.h"
#include "daemon/ctl/users/access.h"
#include "proto/ring.h"

static const char *const STATES[] = {
        [REPLAY_NOTHING] = "nothing", [REPLAY_KEEPING] = "keeping", [REPLAY_WAITING] = "waiting",
        [REPLAY_SERVING] = "serving", [REPLAY_DONE] = "done",
};

static const char *const ENDS[] = {
        [REPLAY_WHOLE] = "",
        [REPLAY_ASKED] = "its end was asked for",
        [REPLAY_NO_MEMORY] = "memory_limit has no room for the copy of one batch of each rank",
        [REPLAY_LEFT] = "a rank left, or moved to another place in its epochs",
        [REPLAY_AT_END] = "a rank has no batch left: the run is at its end",
};

static uint32_t ctl_replay_get(const _Atomic uint32_t *word) {
        return atomic_load_explicit(word, memory_order_relaxed);
}

/* Other training is done with the job's batches than it asked for, so this is for its own user. An admin may do it for
 * everybody, if the name is one job's. */
static int find_job(struct session *session, const char *name, struct job **ret_job, struct why *why) {
        struct job *job, *found = NULL;

        LIST_FOREACH(job, &session->server->jobs, entry) {
                if (strcmp(job->name, name) != 0 || !access_job(session, job))
                        continue;
                if (job->uid != session->peer.uid && !access_is_admin(session))
                        return why_set(why, -EPERM,
                                       "job: \"%s\" is another user's; only that user and root may do this", name);
                if (found)
                        return why_set(why, -EINVAL, "job: several users have a job \"%s\"; ask as one of them", name);
                found = job;
        }
        if (!found)
                return why_set(why, -ENOENT, "job: there is no job \"%s\": nobody is attached", name);
        *ret_job = found;
        return 0;
}

static bool ctl_replay_is_of(const struct session *session, const struct job *job) {
        return session->job == job && session->feed;
}

/* The planner may not have seen the request yet. */
static uint32_t ctl_replay_state_of(const struct replay *replay) {
        return ctl_replay_get(&replay->n_asked) > 0 ? REPLAY_KEEPING : ctl_replay_get(&replay->state);
}

static bool ctl_replay_is_under_way(const struct replay *replay) {
        uint32_t state = ctl_replay_state_of(replay);

        return state != REPLAY_NOTHING && state != REPLAY_DONE;
}

/* Lists the feeds of its ranks, if all of them can be served again. */
static int list_ranks(struct server *server, struct job *job, struct feed *feeds[DLP_LOCAL_RANKS_MAX], uint32_t *ret_n,
                      struct why *why) {
        struct why failure;
        struct session *session;
        uint32_t n = 0;

        job_failure(job, &failure);
        if (failure.text[0])
                return why_set(why, -EBADMSG, "job: \"%s\" has ended: %s", job->name, failure.text);
        TAILQ_FOREACH(session, &server->sessions, entry) {
                if (!ctl_replay_is_of(session, job) || n == DLP_LOCAL_RANKS_MAX)
                        continue;
                feeds[n++] = session->feed;
                if (!session->takes_replays)
                        return why_set(
                                why, -EPROTONOSUPPORT,
                                "rank %u of job \"%s\" has an older client (%s), which does not know batches that "
                                "are served again",
                                session->feed->rank, job->name, session->client);
                if (ctl_replay_is_under_way(&session->feed->replay))
                        return why_set(why, -EBUSY, "job \"%s\" is being served batches again already", job->name);
        }
        if (n != job->terms.world)
                return why_set(
                        why, -EINVAL,
                        "job \"%s\" has %u rank%s on this node, and %u in all: a rank that gets more batches than "
                        "the others would wait for them at the end",
                        job->name, n, n == 1 ? "" : "s", job->terms.world);
        *ret_n = n;
        return 0;
}

static int ctl_replay_begin(struct session *session, struct job *job, uint32_t n_batches, struct why *why) {
        struct feed *feeds[DLP_LOCAL_RANKS_MAX];
        uint32_t n_feeds = 0;
        int r;

        if (n_batches > REPLAY_TOTAL_MAX)
                return why_set(why, -EINVAL, "batches: %u is too many; 1 to %u are allowed", n_batches,
                               REPLAY_TOTAL_MAX);
        r = list_ranks(session->server, job, feeds, &n_feeds, why);
        if (r < 0)
                return r;
        pipeline_replay(session->server->options.pipeline, feeds, n_feeds, n_batches);
        log_user_info(session->peer.uid, "ctl",
                      "replay: %u batches are served again to each rank, to see how fast they are job=%s pid=%d "
                      "user=%s",
                      n_batches, job->name, session->peer.pid, session_user(session));
        return 0;
}

static void ctl_replay_end(struct session *session, struct job *job) {
        struct session *other;

        TAILQ_FOREACH(other, &session->server->sessions, entry)
                if (ctl_replay_is_of(other, job) && ctl_replay_is_under_way(&other->feed->replay)) {
                        pipeline_end_replay(session->server->options.pipeline, other->feed); /* for all of them */
                        return;
                }
}

/* ---- how far it is ----------------------------------------------------------------------------------------------- */

static uint32_t n_taken(const struct feed *feed) {
        const struct replay *replay = &feed->replay;
        uint32_t state = ctl_replay_state_of(replay), n_planned = ctl_replay_get(&replay->n_planned);
        uint64_t first = atomic_load_explicit(&replay->first_sequence, memory_order_relaxed);
        uint64_t n = dlp_ring_taken(feed->ring->control, feed->ring->page);

        if ((state != REPLAY_SERVING && state != REPLAY_DONE) || n_planned == 0 || n <= first)
                return 0;
        return n - first < n_planned ? (uint32_t)(n - first) : n_planned;
}

static uint32_t ctl_replay_smaller(uint32_t a, uint32_t b) {
        return a < b ? a : b;
}

/* The state of the rank that is furthest behind counts. */
bool replay_tell(struct server *server, const struct job *job, Dlp__ReplayReply *reply) {
        uint32_t state = REPLAY_DONE, end = REPLAY_WHOLE;
        struct session *other;
        bool is_first = true;

        TAILQ_FOREACH(other, &server->sessions, entry) {
                const struct replay *replay;
                uint32_t n;

                if (!ctl_replay_is_of(other, job))
                        continue;
                replay = &other->feed->replay;
                n = n_taken(other->feed);
                state = ctl_replay_smaller(state, ctl_replay_state_of(replay));
                if (ctl_replay_get(&replay->n_asked) == 0 && ctl_replay_get(&replay->end) != REPLAY_WHOLE)
                        end = ctl_replay_get(&replay->end);
                reply->n_kept = is_first ? ctl_replay_get(&replay->n_kept)
                                         : ctl_replay_smaller(reply->n_kept, ctl_replay_get(&replay->n_kept));
                reply->n_total = is_first ? ctl_replay_get(&replay->n_total)
                                          : ctl_replay_smaller(reply->n_total, ctl_replay_get(&replay->n_total));
                reply->n_least = is_first ? n : ctl_replay_smaller(reply->n_least, n);
                reply->n_most = n > reply->n_most ? n : reply->n_most;
                is_first = false;
        }
        reply->n_to_keep = REPLAY_KEPT_MAX;
        reply->state = (char *)(uintptr_t)STATES[state];
        reply->end = (char *)(uintptr_t)ENDS[end];
        if (state == REPLAY_DONE)
                return reply->n_least < reply->n_total;
        return state != REPLAY_NOTHING;
}

void handle_replay(struct session *session, const Dlp__Request *request) {
        const Dlp__ReplayRequest *wish = request->replay;
        Dlp__ReplayReply replay = DLP__REPLAY_REPLY__INIT;
        Dlp__Reply reply = DLP__REPLY__INIT;
        struct job *job = NULL;
        struct why why;
        int r;

        r = find_job(session, wish->job, &job, &why);
        if (r == 0 && wish->n_batches > 0)
                r = ctl_replay_begin(session, job, wish->n_batches, &why);
        if (r < 0) {
                session_refuse(session, request->id, r, why.text);
                return;
        }
        if (wish->end)
                ctl_replay_end(session, job);
        replay_tell(session->server, job, &replay);
        reply.id = request->id;
        reply.body_case = DLP__REPLY__BODY_REPLAY;
        reply.replay = &replay;
        session_reply(session, &reply, NULL, 0);
}
