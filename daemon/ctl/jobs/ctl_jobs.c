/* The jobs that are served, and their ranks. A page is one job: its ranks fit into a packet (DLP_LOCAL_RANKS_MAX). */
#include <stdio.h>
#include <string.h>

#include "daemon/ctl/ctl_origin.h"
#include "daemon/ctl/ctl_progress.h"
#include "daemon/ctl/handlers.h"
#include "daemon/ctl/jobs/ctl_replay.h"
#include "daemon/ctl/number_values.h"
#include "daemon/ctl/users/access.h"
#include "daemon/pipeline/catalog/catalog_remote.h"
#include "proto/ring.h"

#define HISTOGRAMS_MAX 64u /* of a job's ranks, so that the reply fits into a packet */

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

/* A rank's messages, and the numbers that they point to. */
struct rank_message {
        Dlp__Rank rank;
        Dlp__Waiting waiting;
        struct dlp_meter meter;
        struct number_list numbers;
};

static void fill_waiting(Dlp__Waiting *message, const struct rank_numbers *numbers, struct dlp_meter *meter,
                         bool has_histogram) {
        dlp__waiting__init(message);
        WAITING_NUMBERS(NUMBER_TELL)
        message->histogram = meter->waits;
        message->n_histogram = has_histogram ? DLP_WAIT_BUCKETS : 0;
        while (message->n_histogram > 0 && meter->waits[message->n_histogram - 1] == 0)
                message->n_histogram--;
}

static void fill_rank(struct rank_message *rank, struct session *session, uint32_t place, uint64_t now_ns) {
        const struct feed *feed = session->feed;
        Dlp__Rank *message = &rank->rank;
        struct number_list *list = &rank->numbers;
        struct rank_numbers values;
        const struct rank_numbers *numbers = &values;

        number_values_of_rank(feed, now_ns, &values, &rank->meter);
        dlp__rank__init(message);
        list->n = 0;
        list->is_brief = place > 0;
        RANK_STATE(NUMBER_TELL)
        RANK_COUNTERS(NUMBER_TELL)
        fill_waiting(&rank->waiting, numbers, &rank->meter, place < HISTOGRAMS_MAX);
        message->waiting = &rank->waiting;
        message->numbers = list->pointers;
        message->n_numbers = list->n;
        message->n_batches = values.n_released;
        message->rank = feed->rank;
        message->pid = (uint32_t)session->peer.pid;
        message->user = (char *)(uintptr_t)session_user(session);
        message->memory = (char *)(uintptr_t)feed->ring->payload_segment.obtained;
}

/* A job's message, and what it points to. */
struct job_message {
        Dlp__Job job;
        Dlp__Stage stages[N_STAGES];
        Dlp__Stage *stage_pointers[N_STAGES];
        struct rank_message ranks[DLP_LOCAL_RANKS_MAX];
        Dlp__Rank *rank_pointers[DLP_LOCAL_RANKS_MAX];
        struct number_list numbers;
        struct why failure;
        char order[DLP_ORDER_CHOICE_MAX];
        struct dlp_wait wait;
        Dlp__WaitReason wait_reason;
        struct dlp_origin origin;
        Dlp__Origin from;
};

static void jobs_add_stage(struct job_message *message, enum stage_id id, const struct stage_total *total) {
        Dlp__Stage *stage = &message->stages[message->job.n_stages];

        dlp__stage__init(stage);
        stage->name = (char *)(uintptr_t)stage_name(id);
        stage->taken_ns = total->ns;
        stage->n = total->n;
        message->stage_pointers[message->job.n_stages++] = stage;
}

static void job_fill_numbers(struct job_message *to, struct job *job, uint64_t now_ns) {
        struct stage_total stages[N_STAGES];
        struct number_list *list = &to->numbers;
        Dlp__Job *message = &to->job;
        struct job_numbers values;
        const struct job_numbers *numbers = &values;

        number_values_of_job(job, &values, stages);
        list->n = 0;
        JOB_NUMBERS(NUMBER_TELL)
        message->now_ns = now_ns;
        message->numbers = list->pointers;
        message->n_numbers = list->n;
        message->stages = to->stage_pointers;
        for (uint32_t i = 0; i < N_STAGES; i++)
                if (stages[i].n > 0)
                        jobs_add_stage(to, (enum stage_id)i, &stages[i]);
}

static void fill_terms(struct job_message *to, struct job *job) {
        const struct job_terms *terms = &job->terms;
        Dlp__Job *message = &to->job;

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
        job_order_print(terms, to->order);
        message->order = to->order;
        message->dealing = (char *)(uintptr_t)dlp_dealing_name(terms->dealing);
        message->partition = (char *)(uintptr_t)dlp_partition_name(terms->partition);
        message->drop_last = terms->drop_last;
        message->on_error = (char *)(uintptr_t)on_error_name(terms->on_error);
        message->errors_allowed = job->damage.n_allowed;
}

static void fill_wait_reason(struct job_message *message) {
        Dlp__WaitReason *reason = &message->wait_reason;

        dlp__wait_reason__init(reason);
        reason->reason = message->wait.reason;
        reason->process = message->wait.process;
        reason->since_ns = message->wait.since_ns;
        reason->until_ns = message->wait.until_ns;
        reason->sample = message->wait.sample;
        reason->n_samples = message->wait.n_samples;
        reason->detail = message->wait.detail;
        message->job.wait_reason = reason;
}

/* Also finds the name of the job's user, which its sessions know, why it waits, and from where its bytes come. */
static void fill_ranks(struct job_message *message, const struct job *job, struct server *server, uint64_t now_ns) {
        struct session *session;

        message->job.ranks = message->rank_pointers;
        TAILQ_FOREACH(session, &server->sessions, entry) {
                struct rank_message *rank = &message->ranks[message->job.n_ranks];

                if (session->job != job || !session->feed || message->job.n_ranks == DLP_LOCAL_RANKS_MAX)
                        continue;
                fill_rank(rank, session, (uint32_t)message->job.n_ranks, now_ns);
                if (!message->job.wait_reason && dlp_ring_waits(session->feed->ring->control, &message->wait))
                        fill_wait_reason(message);
                if (message->job.n_ranks == 0 && remote_report(session->feed->dataset, &message->origin))
                        message->job.from = tell_origin(&message->from, &message->origin);
                message->job.user = rank->rank.user;
                message->rank_pointers[message->job.n_ranks++] = &rank->rank;
        }
}

void handle_jobs(struct session *session, const Dlp__Request *request) {
        static struct job_message message; /* main thread only */
        Dlp__Reply reply = DLP__REPLY__INIT;
        Dlp__JobsReply jobs = DLP__JOBS_REPLY__INIT;
        Dlp__Node node = DLP__NODE__INIT;
        Dlp__Job *job_pointers[] = { &message.job };
        struct job *job = request->jobs->own ? session->job : job_at(session, request->jobs->first);
        Dlp__ReplayReply replay = DLP__REPLAY_REPLY__INIT;
        struct dlp_progress order;
        Dlp__Progress progress;

        number_values_tell_node(session->server, &node);
        jobs.node = &node;
        if (job) {
                dlp__job__init(&message.job);
                fill_terms(&message, job);
                job_fill_numbers(&message, job, node.now_ns);
                job_failure(job, &message.failure);
                message.job.failure = message.failure.text;
                fill_ranks(&message, job, session->server, node.now_ns);
                if (job_order_progress(job, UINT64_MAX, &order))
                        message.job.progress = tell_progress(&progress, &order);
                if (replay_tell(session->server, job, &replay))
                        message.job.replay = &replay;
                jobs.jobs = job_pointers;
                jobs.n_jobs = 1;
                if (!request->jobs->own && next_job(session, LIST_NEXT(job, entry)))
                        jobs.next = request->jobs->first + 1;
        }
        reply.id = request->id;
        reply.body_case = DLP__REPLY__BODY_JOBS;
        reply.jobs = &jobs;
        session_reply(session, &reply, NULL, 0);
}
