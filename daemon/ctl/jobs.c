/* The jobs that are served, and their ranks. A page is one job: its ranks fit into a packet (DLP_LOCAL_RANKS_MAX). */
#include <stdio.h>
#include <string.h>

#include "daemon/ctl/access.h"
#include "daemon/ctl/handlers.h"
#include "proto/ring.h"

/* Counts only the jobs that this client may see. Takes NULL. */
static struct job *next_job(const struct session *session, struct job *job) {
        while (job && !access_job(session, job))
                job = LIST_NEXT(job, entry);
        return job;
}

static struct job *job_at(const struct session *session, uint32_t idx) {
        struct job *job = next_job(session, LIST_FIRST(&session->server->jobs));

        while (job && idx-- > 0)
                job = next_job(session, LIST_NEXT(job, entry));
        return job;
}

static void fill_rank(Dlp__Rank *rank, struct session *session) {
        const struct stream *stream = session->stream;
        struct ring_counts counts;

        dlp__rank__init(rank);
        ring_count(stream->ring, &counts);
        rank->rank = stream->rank;
        rank->pid = (uint32_t)session->peer.pid;
        rank->user = (char *)(uintptr_t)session_user(session);
        rank->n_ready = counts.n_ready;
        rank->n_filling = counts.n_filling;
        rank->n_leased = counts.n_leased;
        rank->n_slots = stream->ring->n_slots;
        rank->ring_bytes = ring_bytes(stream->ring);
        rank->memory = (char *)(uintptr_t)stream->ring->payload_segment.obtained;
        rank->n_batches = counts.n_released;
        rank->n_substituted = counter_get(&stream->n_substituted);
        rank->n_skipped = counter_get(&stream->n_skipped);
        rank->epoch = counts.epoch;
        rank->step = counts.step;
}

/* A job is on hold if the dataset cannot be read and a sample of its ranks waits for it, or if a read does not return:
 * the ring has that state. */
static bool is_on_hold(const struct session *session, struct why *ret_why) {
        static const char PREFIX[] = "on hold: ";
        const struct stream *stream = session->stream;
        char text[DLP_TEXT_MAX];

        if (atomic_load_explicit(&stream->n_parked, memory_order_relaxed) > 0 &&
            catalog_dataset_is_held(stream->dataset, ret_why))
                return true;
        if (!dlp_ring_held(stream->ring->control, text))
                return false;
        why_set(ret_why, 0, "%s", text + (strncmp(text, PREFIX, strlen(PREFIX)) == 0 ? strlen(PREFIX) : 0));
        return true;
}

static void fill_job(Dlp__Job *message, struct job *job) {
        const struct job_terms *terms = &job->terms;

        message->name = job->name;
        message->dataset = job->terms.dataset;
        message->world = terms->world;
        message->batch_size = terms->batch_size;
        message->pipeline = job->terms.pipeline;
        message->seed = terms->seed;
        message->draws = terms->draws;
        message->sampler = job->terms.sampler;
        message->shuffle_buffer = terms->shuffle_buffer;
        message->shuffle = terms->shuffle;
        message->order = (char *)(uintptr_t)dlp_order_kind_name(terms->order);
        message->dealing = (char *)(uintptr_t)dlp_dealing_name(terms->dealing);
        message->partition = (char *)(uintptr_t)dlp_partition_name(terms->partition);
        message->drop_last = terms->drop_last;
        message->on_error = (char *)(uintptr_t)on_error_name(terms->on_error);
        message->n_errors = counter_get(&job->damage.n_met);
        message->errors_allowed = job->damage.n_allowed;
        message->worker_ns = counter_get(&job->share.taken_ns);
}

void handle_jobs(struct session *session, const Dlp__Request *request) {
        static Dlp__Rank ranks[DLP_LOCAL_RANKS_MAX]; /* main thread only */
        Dlp__Rank *rank_pointers[DLP_LOCAL_RANKS_MAX];
        Dlp__Reply reply = DLP__REPLY__INIT;
        Dlp__JobsReply jobs = DLP__JOBS_REPLY__INIT;
        Dlp__Job message = DLP__JOB__INIT;
        Dlp__Job *job_pointers[] = { &message };
        struct server *server = session->server;
        struct job *job = job_at(session, request->jobs->first);
        struct session *other;
        struct why failure, hold = { 0 };

        if (job) {
                fill_job(&message, job);
                job_failure(job, &failure);
                message.failure = failure.text;
                TAILQ_FOREACH(other, &server->sessions, entry)
                        if (other->job == job && other->stream && message.n_ranks < DLP_LOCAL_RANKS_MAX) {
                                fill_rank(&ranks[message.n_ranks], other);
                                if (!hold.text[0])
                                        is_on_hold(other, &hold);
                                rank_pointers[message.n_ranks] = &ranks[message.n_ranks];
                                message.n_ranks++;
                        }
                message.hold = hold.text;
                message.ranks = rank_pointers;
                jobs.jobs = job_pointers;
                jobs.n_jobs = 1;
                jobs.next = next_job(session, LIST_NEXT(job, entry)) ? request->jobs->first + 1 : 0;
        }
        reply.id = request->id;
        reply.body_case = DLP__REPLY__BODY_JOBS;
        reply.jobs = &jobs;
        session_reply(session, &reply, NULL, 0);
}
