/* A trace: what threads, reads and rings do for some seconds, written to a socket that the tracer has the other end of.
 *
 * Threads write events into buffers of their own (base/base_trace.h); a timer of the event loop empties them. While the
 * tracer does not read, they stay there, then events are dropped: nobody waits. A trace has the jobs that its session
 * may see. It ends when its time is over, when the tracer shuts its side of the socket, with its session, or when
 * another one is asked for and it has had half a minute: nobody can keep others from tracing. */
#include "daemon/ctl/ctl_trace.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "daemon/base/base_trace.h"
#include "daemon/base/log.h"
#include "daemon/base/stages.h"
#include "daemon/ctl/handlers.h"
#include "daemon/ctl/users/access.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/base/nearest.h"

#define TICK_US       20000
#define CELLS         1024u          /* that are sent at once */
#define ROUNDS        64u            /* of these in one turn of the event loop */
#define DEAF_NS       10000000000ull /* a tracer that has read nothing for so long is given up, once the time is over */
#define DURATION_MAX  3600000u       /* ms */
#define KEPT_NS       30000000000ull /* for so long a trace is not ended for another one */
#define TEXT_CELLS(n) (((n) + sizeof(struct dlp_trace_event) - 1) / sizeof(struct dlp_trace_event))

struct tracing {
        struct server *server;
        struct session *session; /* who traces */
        char job[DLP_NAME_MAX];  /* "": all */
        uint32_t number;
        uint32_t n_jobs; /* that were named so far */
        uint64_t begin_ns, end_ns, moved_ns;
        bool is_stopped; /* only what was written is still to be sent, */
        bool has_end;    /* and after it the end, which is among `cells` */
        int fd;
        struct event *timer, *ended, *writable;
        struct trace_thread thread; /* the main thread takes part: it says what is under way at the end */
        size_t n_bytes, n_sent;     /* of `cells` */
        size_t n_cells;
        struct dlp_trace_event cells[CELLS];
};

/* ---- sending --------------------------------------------------------------------------------------------------- */

/* What is under way in the rings is told now: their slots may not be looked at again. */
static void let_ranks_go(struct tracing *tracing) {
        struct session *session;

        TAILQ_FOREACH(session, &tracing->server->sessions, entry)
                if (session->feed)
                        ring_trace_end(session->feed->ring);
}

static void tracing_free(struct tracing *tracing) {
        let_ranks_go(tracing);
        trace_end();
        trace_thread_end(&tracing->thread);
        if (tracing->timer)
                event_free(tracing->timer);
        if (tracing->ended)
                event_free(tracing->ended);
        if (tracing->writable)
                event_free(tracing->writable);
        closep(&tracing->fd);
        tracing->server->tracing = NULL;
        free(tracing);
}

/* Returns 0 when all is sent, -EAGAIN if the socket is full, other errors if nobody is there any more. */
static int ctl_trace_flush(struct tracing *tracing) {
        size_t n_bytes = tracing->n_cells * sizeof(tracing->cells[0]);
        ssize_t n;

        while (tracing->n_sent < n_bytes) {
                n = send(tracing->fd, (const uint8_t *)tracing->cells + tracing->n_sent, n_bytes - tracing->n_sent,
                         MSG_DONTWAIT | MSG_NOSIGNAL);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return -errno;
                tracing->n_sent += (size_t)n;
                tracing->moved_ns = clock_now_ns();
        }
        tracing->n_sent = tracing->n_cells = 0;
        return 0;
}

/* Adds a cell and its text. False: there is no room now. */
static bool ctl_trace_add_text(struct tracing *tracing, const struct dlp_trace_event *cell, const char *text) {
        size_t n = strnlen(text, DLP_TRACE_TEXT_MAX), n_cells = 1 + TEXT_CELLS(n);
        struct dlp_trace_event *at;

        if (tracing->n_cells + n_cells > CELLS && ctl_trace_flush(tracing) < 0)
                return false;
        at = &tracing->cells[tracing->n_cells];
        memset(at, 0, n_cells * sizeof(*at));
        *at = *cell;
        at->kind = DLP_TRACE_NAME;
        at->value = n;
        memcpy(at + 1, text, n);
        tracing->n_cells += n_cells;
        return true;
}

/* ---- whom it is about ------------------------------------------------------------------------------------------ */

static bool ctl_trace_is_wanted(const struct tracing *tracing, const struct job *job) {
        if (tracing->job[0] && strcmp(tracing->job, job->name) != 0)
                return false;
        return access_job(tracing->session, job);
}

static uint64_t word_of(const struct job *job) {
        return atomic_load_explicit(&job->traced, memory_order_relaxed);
}

static bool is_in(const struct tracing *tracing, const struct job *job) {
        return word_of(job) >> 32 == tracing->number;
}

/* Takes in jobs that are new, and names them. */
static void take_in_jobs(struct tracing *tracing) {
        struct job *job;

        LIST_FOREACH(job, &tracing->server->jobs, entry) {
                struct dlp_trace_event cell = { .detail = DLP_TRACE_NAMED_JOB, .job = tracing->n_jobs + 1 };

                if (is_in(tracing, job) || !ctl_trace_is_wanted(tracing, job))
                        continue;
                if (!ctl_trace_add_text(tracing, &cell, job->name))
                        return;
                tracing->n_jobs++;
                atomic_store_explicit(&job->traced, trace_word(tracing->number, cell.job), memory_order_relaxed);
        }
}

/* A rank's ring is traced from now on. */
static bool take_in_rank(struct tracing *tracing, struct session *session) {
        uint64_t word = word_of(session->job);
        struct dlp_trace_event cell = { .detail = DLP_TRACE_NAMED_RANK,
                                        .job = (uint32_t)word,
                                        .rank = session->feed->rank,
                                        .begin_ns = (uint64_t)(session->peer.pid > 0 ? session->peer.pid : 0) };

        if (!ctl_trace_add_text(tracing, &cell, session_user(session)))
                return false;
        ring_trace(session->feed->ring, word);
        return true;
}

static bool is_taken_in(const struct session *session) {
        return atomic_load_explicit(&session->feed->ring->traced, memory_order_relaxed) == word_of(session->job);
}

static void take_in_ranks(struct tracing *tracing) {
        struct session *session;

        TAILQ_FOREACH(session, &tracing->server->sessions, entry)
                if (session->feed && is_in(tracing, session->job) && !is_taken_in(session) &&
                    !take_in_rank(tracing, session))
                        return;
}

static void name_threads(struct tracing *tracing) {
        struct dlp_trace_event cell = { .detail = DLP_TRACE_NAMED_THREAD };
        char name[16];

        while (tracing->n_cells + 2 <= CELLS && trace_tell_thread(&cell.thread, name))
                ctl_trace_add_text(tracing, &cell, name);
}

static void name_stages(struct tracing *tracing) {
        for (uint16_t i = 0; i < N_STAGES; i++)
                ctl_trace_add_text(tracing, &(struct dlp_trace_event){ .detail = DLP_TRACE_NAMED_STAGE, .lane = i },
                                   stage_name(i));
}

/* ---- its course ------------------------------------------------------------------------------------------------ */

/* Sends what was written. Returns 0 once nothing is left, else as ctl_trace_flush(). */
static int pump(struct tracing *tracing) {
        int r;

        for (uint32_t i = 0; i < ROUNDS; i++) {
                r = ctl_trace_flush(tracing);
                if (r < 0)
                        return r;
                tracing->n_cells = trace_take(tracing->cells, CELLS);
                if (tracing->n_cells == 0)
                        return 0;
        }
        return -EAGAIN;
}

static void add_end(struct tracing *tracing) {
        tracing->cells[tracing->n_cells++] = (struct dlp_trace_event){ .kind = DLP_TRACE_END,
                                                                       .begin_ns = tracing->begin_ns,
                                                                       .end_ns = tracing->end_ns,
                                                                       .value = trace_n_dropped() };
}

static void ctl_trace_stop(struct tracing *tracing) {
        if (tracing->is_stopped)
                return;
        event_del(tracing->ended); /* it would be told of again and again */
        let_ranks_go(tracing);
        trace_stop();
        tracing->end_ns = clock_now_ns();
        tracing->is_stopped = true;
}

/* Sends what is left, and then the end. Returns as ctl_trace_flush(). */
static int send_rest(struct tracing *tracing) {
        int r;

        if (tracing->has_end)
                return ctl_trace_flush(tracing);
        name_threads(tracing);
        r = pump(tracing);
        if (r < 0)
                return r;
        add_end(tracing);
        tracing->has_end = true;
        return ctl_trace_flush(tracing);
}

/* After ctl_trace_stop(): sends the rest, in several ticks if the socket is full, and frees it. */
static void ctl_trace_finish(struct tracing *tracing) {
        int r = send_rest(tracing);

        if (r == -EAGAIN && clock_now_ns() - tracing->moved_ns < DEAF_NS)
                return;
        if (r < 0)
                log_info("trace", "not all of it was read: %s", strerror(-r));
        tracing_free(tracing);
}

static void ctl_trace_on_tick(evutil_socket_t fd, short what, void *userdata) {
        struct tracing *tracing = userdata;
        int r;

        if (!tracing->is_stopped && clock_now_ns() >= tracing->end_ns)
                ctl_trace_stop(tracing);
        if (tracing->is_stopped) {
                ctl_trace_finish(tracing);
                return;
        }
        name_threads(tracing);
        take_in_jobs(tracing);
        take_in_ranks(tracing);
        r = pump(tracing);
        if (r == -EAGAIN)
                event_add(tracing->writable, NULL);
        else if (r < 0)
                tracing_free(tracing);
}

/* The tracer has heard enough, or is gone. */
static void on_ended(evutil_socket_t fd, short what, void *userdata) {
        struct tracing *tracing = userdata;
        uint8_t byte;
        ssize_t n = recv(tracing->fd, &byte, 1, MSG_DONTWAIT);

        if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
                return;
        ctl_trace_stop(tracing);
        ctl_trace_finish(tracing);
}

void tracing_session_ends(struct session *session) {
        struct tracing *tracing = session->server->tracing;

        if (tracing && session->feed)
                ring_trace_end(session->feed->ring);
        if (tracing && tracing->session == session)
                tracing_free(tracing);
}

/* ---- the request ----------------------------------------------------------------------------------------------- */

/* May it be ended for this session? Admins need not wait for others. */
static bool gives_way(const struct tracing *tracing, const struct session *session, uint64_t now_ns) {
        return now_ns - tracing->begin_ns >= KEPT_NS ||
               (access_is_admin(session) && !access_is_admin(tracing->session));
}

/* Makes room for another trace. What was written of one that has to give way is sent first. */
static int ctl_trace_make_room(const struct session *session, struct why *why) {
        struct tracing *tracing = session->server->tracing;
        uint64_t now_ns = clock_now_ns(), until_ns;

        if (!tracing)
                return 0;
        if (!tracing->is_stopped && !gives_way(tracing, session, now_ns)) {
                until_ns = tracing->begin_ns + KEPT_NS < tracing->end_ns ? tracing->begin_ns + KEPT_NS
                                                                         : tracing->end_ns;
                return why_set(
                        why, -EBUSY,
                        "trace: there is one under way, and only one at a time is possible; it ends or gives way "
                        "in %.1f s",
                        until_ns > now_ns ? (double)(until_ns - now_ns) / 1e9 : 0.0);
        }
        ctl_trace_stop(tracing);
        ctl_trace_finish(tracing);
        return session->server->tracing
                       ? why_set(why, -EBUSY,
                                 "trace: one has just ended and is still being read; try again in a moment")
                       : 0;
}

/* A name that no job has is probably mistyped. */
static int check_job(const struct session *session, const char *name, struct why *why) {
        const struct job *job;
        struct nearest nearest;

        nearest_begin(&nearest, name, strlen(name));
        LIST_FOREACH(job, &session->server->jobs, entry) {
                if (!access_job(session, job))
                        continue;
                if (strcmp(job->name, name) == 0)
                        return 0;
                nearest_offer(&nearest, job->name);
        }
        return why_set(why, -ENOENT, "trace: there is no job \"%.128s\"%s; dlctl jobs lists those that run", name,
                       nearest_hint(&nearest));
}

static int ctl_trace_check(const struct session *session, const Dlp__TraceRequest *request, struct why *why) {
        int r;

        if (request->duration_ms == 0 || request->duration_ms > DURATION_MAX)
                return why_set(why, -EINVAL, "trace: %.3f s are not possible; up to %u s are",
                               (double)request->duration_ms / 1000, DURATION_MAX / 1000);
        r = request->job[0] ? check_job(session, request->job, why) : 0;
        return r < 0 ? r : ctl_trace_make_room(session, why);
}

static bool add_events(struct tracing *tracing, struct event_base *base) {
        const struct timeval tick = { .tv_usec = TICK_US };

        tracing->timer = event_new(base, -1, EV_PERSIST, ctl_trace_on_tick, tracing);
        tracing->ended = event_new(base, tracing->fd, EV_READ | EV_PERSIST, on_ended, tracing);
        tracing->writable = event_new(base, tracing->fd, EV_WRITE, ctl_trace_on_tick, tracing);
        return tracing->timer && tracing->ended && tracing->writable && event_add(tracing->timer, &tick) == 0 &&
               event_add(tracing->ended, NULL) == 0;
}

/* What is of no job, such as the planner's turns, tells of all: it is for those who may see all. */
static int ctl_trace_begin(struct session *session, const Dlp__TraceRequest *request, int fds[2], struct why *why) {
        struct server *server = session->server;
        struct tracing *tracing = calloc(1, sizeof(*tracing));
        int r;

        if (!tracing)
                return why_errno(why, -ENOMEM, "trace");
        tracing->server = server;
        tracing->session = session;
        tracing->fd = fds[0];
        fds[0] = -1;
        server->tracing = tracing;
        snprintf(tracing->job, sizeof(tracing->job), "%s", request->job);
        trace_thread_begin(&tracing->thread, "main");
        r = trace_start(access_is_admin(session) && !tracing->job[0], server->options.budget, &tracing->number, why);
        if (r == 0 && !add_events(tracing, server->options.base))
                r = why_errno(why, -ENOMEM, "trace");
        if (r < 0) {
                tracing_free(tracing);
                return r;
        }
        tracing->begin_ns = tracing->moved_ns = clock_now_ns();
        tracing->end_ns = tracing->begin_ns + (uint64_t)request->duration_ms * 1000000u;
        name_stages(tracing);
        take_in_jobs(tracing);
        take_in_ranks(tracing);
        return 0;
}

/* How far the clock of the day is ahead of the one that events are told in. The two are read one after the other: of
 * several tries the one counts that was interrupted least. */
static int64_t ahead_ns(void) {
        uint64_t best_ns = UINT64_MAX;
        int64_t ahead = 0;

        for (int i = 0; i < 5; i++) {
                uint64_t before_ns = clock_now_ns(), took_ns;
                struct timespec day;

                clock_gettime(CLOCK_REALTIME, &day);
                took_ns = clock_now_ns() - before_ns;
                if (took_ns >= best_ns)
                        continue;
                best_ns = took_ns;
                ahead = (int64_t)day.tv_sec * 1000000000 + day.tv_nsec - (int64_t)(before_ns + took_ns / 2);
        }
        return ahead;
}

static void ctl_trace_answer(struct session *session, uint64_t id, int fd) {
        Dlp__TraceReply body = DLP__TRACE_REPLY__INIT;
        Dlp__Reply reply = DLP__REPLY__INIT;

        body.pid = (uint32_t)getpid();
        body.ahead_ns = ahead_ns();
        body.n_jobs = session->server->tracing->n_jobs;
        reply.id = id;
        reply.body_case = DLP__REPLY__BODY_TRACE;
        reply.trace = &body;
        session_reply(session, &reply, &fd, 1);
}

void handle_trace(struct session *session, const Dlp__Request *request) {
        _cleanup_(closep) int ours = -1, theirs = -1;
        int fds[2];
        struct why why;
        int r = ctl_trace_check(session, request->trace, &why);

        if (r == 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) < 0)
                r = why_errno(&why, -errno, "trace: a socket");
        if (r == 0) {
                theirs = fds[1];
                r = ctl_trace_begin(session, request->trace, fds, &why);
                ours = fds[0];
        }
        if (r < 0) {
                session_refuse(session, request->id, r, why.text);
                return;
        }
        log_user_info(session->peer.uid, "trace", "begins job=%s seconds=%.3f client=%s pid=%d user=%s",
                      request->trace->job[0] ? request->trace->job : "(all)",
                      (double)request->trace->duration_ms / 1000, session->client, session->peer.pid,
                      session_user(session));
        ctl_trace_answer(session, request->id, theirs);
}
