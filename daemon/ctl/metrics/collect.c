#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/machine/own_process.h"
#include "daemon/ctl/jobs/job_hold.h"
#include "daemon/ctl/metrics/metrics.h"
#include "daemon/ctl/node.h"
#include "daemon/ctl/users/access.h"
#include "proto/base/cleanup.h"
#include "proto/base/clock.h"
#include "proto/ring.h"

#define MICRO    1000000.0
#define MILLI    1000.0
#define RANK_MAX 16u /* bytes of a number as text */

/* ---- the daemon ------------------------------------------------------------------------------------------------ */

static void collect_process(const struct server *server, struct process_numbers *numbers) {
        struct own_process process;

        own_process(&process);
        *numbers = (struct process_numbers){
                .cpu_ns = process.cpu_ns,
                .resident_bytes = process.resident_bytes ? process.resident_bytes : METRIC_ABSENT,
                .virtual_bytes = process.virtual_bytes ? process.virtual_bytes : METRIC_ABSENT,
                .n_fds = process.n_fds ? process.n_fds : METRIC_ABSENT,
                .n_fds_max = process.n_fds_max,
                .started_unix = (uint64_t)server->started_unix,
        };
}

static void collect_memory(const struct server *server, struct node_numbers *numbers) {
        struct pipeline *pipeline = server->options.pipeline;
        struct pipeline_memory memory;

        pipeline_memory(pipeline, &memory);
        numbers->memory_limit = server->options.budget->limit_bytes;
        numbers->memory_used = budget_used(server->options.budget);
        numbers->memory_buffers = memory.read_buffers;
        numbers->memory_scratch = memory.worker_scratch + memory.large_picture_scratch;
        numbers->memory_held = atomic_load_explicit(&pipeline_held(pipeline)->n_bytes, memory_order_relaxed);
}

static void collect_counters(struct counters *counters, struct node_numbers *numbers) {
        numbers->n_batches = counter_get(&counters->n_batches);
        numbers->n_sample_errors = counter_get(&counters->n_sample_errors);
        numbers->n_substituted = counter_get(&counters->n_substituted);
        numbers->n_skipped = counter_get(&counters->n_skipped);
        numbers->n_dropped = counter_get(&counters->n_dropped);
        numbers->n_failed_jobs = counter_get(&counters->n_failed_jobs);
        numbers->n_reads_uncached = counter_get(&counters->n_reads_past_cache);
        numbers->n_reads_slow = counter_get(&counters->n_reads_slow);
        numbers->n_scratch_waits = counter_get(&counters->n_scratch_waits);
}

static void collect_node(struct server *server, struct node_numbers *numbers) {
        Dlp__Node node = DLP__NODE__INIT;

        node_fill(server, &node);
        collect_memory(server, numbers);
        collect_counters(pipeline_counters(server->options.pipeline), numbers);
        numbers->is_draining = server->draining;
        numbers->n_connections = server->n_sessions;
        numbers->n_workers = node.n_workers;
        numbers->cpus_milli = node.cpus_milli;
        numbers->read_depth = node.read_depth;
        numbers->n_reading = node.n_reading;
        numbers->n_samples = node.n_samples;
        numbers->n_reads = node.n_reads;
        numbers->n_bytes_read = node.n_bytes_read;
        numbers->storage_bytes = node.has_storage_bytes ? node.storage_bytes : METRIC_ABSENT;
        numbers->read_ns = node.read_ns;
        numbers->queued_ns = node.queued_ns;
        numbers->worker_ns = node.worker_ns;
        numbers->worker_cpu_ns = node.worker_cpu_ns;
}

/* ---- datasets -------------------------------------------------------------------------------------------------- */

static uint64_t ratio_micro(const struct dlp_progress *progress) {
        if (progress->total == 0)
                return METRIC_ABSENT;
        return progress->done >= progress->total ? (uint64_t)MICRO
                                                 : (uint64_t)((double)progress->done * MICRO / (double)progress->total);
}

static void collect_open(struct catalog_dataset *open, struct dataset_numbers *numbers) {
        const struct source *source = dataset_source(open->dataset);
        struct why why;

        numbers->n_samples = source_n_known(source);
        numbers->n_bytes = source->total_bytes;
        numbers->n_damaged = ledger_n_samples(open->ledger);
        numbers->is_unreadable = catalog_dataset_is_held(open, &why);
}

static void collect_staging(const struct catalog_entry *entry, struct dataset_numbers *numbers) {
        const struct progress *progress = &entry->staged->progress;

        if (!entry->staged->progress_mark)
                return;
        numbers->staging_at_work = catalog_is_being_staged(entry);
        numbers->staging_failed = progress->result[0] != '\0';
        numbers->staging_bytes = progress->n_bytes_total;
        numbers->staging_done = progress->n_bytes_done;
        numbers->staging_origin = progress->n_bytes_origin;
        numbers->staging_files = progress->n_files_total;
        numbers->staging_done_files = progress->n_files_done;
        numbers->staging_retries = progress->n_retries;
        numbers->staging_errors = progress->n_errors;
        numbers->staging_nodes = progress->n_nodes;
}

static void collect_dataset(struct catalog_entry *entry, struct dataset_numbers *numbers) {
        struct dlp_progress progress;

        memset(numbers, 0xff, sizeof(*numbers)); /* METRIC_ABSENT */
        numbers->is_ready = entry->state == CATALOG_READY;
        numbers->has_failed = entry->state == CATALOG_FAILED;
        if (entry->state == CATALOG_READY)
                collect_open(entry->open, numbers);
        if (entry->state == CATALOG_INDEXING && catalog_progress(entry, &progress)) {
                numbers->indexing_micro = ratio_micro(&progress);
                numbers->indexing_ms = (uint64_t)(progress.seconds * MILLI);
        }
        if (entry->staged)
                collect_staging(entry, numbers);
}

static int collect_datasets(struct server *server, const struct session *viewer, struct metrics *metrics) {
        struct catalog_entry *entry;
        size_t n = 0;

        TAILQ_FOREACH(entry, &server->options.catalog->entries, entry)
                n++;
        metrics->datasets = calloc(n ? n : 1, sizeof(*metrics->datasets));
        if (!metrics->datasets)
                return -ENOMEM;
        TAILQ_FOREACH(entry, &server->options.catalog->entries, entry) {
                struct dataset_metrics *dataset = &metrics->datasets[metrics->n_datasets];

                if (viewer && !access_dataset(viewer, entry))
                        continue;
                dataset->labels = metrics_label(NULL, "dataset", entry->name);
                if (!dataset->labels)
                        return -ENOMEM;
                metrics->n_datasets++;
                collect_dataset(entry, &dataset->numbers);
        }
        return 0;
}

/* ---- jobs ------------------------------------------------------------------------------------------------------ */

/* Two users may have jobs of one name, so the user is one of them. */
static char *job_labels(struct server *server, const struct job *job) {
        _cleanup_(freep) char *dataset = metrics_label(NULL, "dataset", job->terms.dataset);
        _cleanup_(freep) char *name = dataset ? metrics_label(dataset, "job", job->name) : NULL;
        char user[USER_NAME_SIZE];

        return name ? metrics_label(name, "user", user_name(server->names, job->uid, user)) : NULL;
}

static void collect_job(struct job *job, struct job_metrics *metrics) {
        struct tally_totals totals;
        struct dlp_progress order;

        tallies_total(job->tallies, &totals);
        metrics->numbers = (struct job_numbers){
                .world = job->terms.world,
                .has_failed = atomic_load(&job->failed),
                .order_micro = job_order_progress(job, UINT64_MAX, &order) ? ratio_micro(&order) : METRIC_ABSENT,
                .n_damaged = counter_get(&job->damage.n_met),
                .n_decoded = totals.counts.n_samples,
                .n_reads = totals.counts.n_reads,
                .n_bytes_read = totals.counts.n_bytes_read,
                .read_ns = totals.counts.read_ns,
                .queued_ns = totals.counts.queued_ns,
                .worker_ns = counter_get(&job->share.taken_ns),
        };
        for (uint32_t i = 0; i < N_STAGES; i++)
                metrics->stages_ns[i] = totals.stages[i].n > 0 ? totals.stages[i].ns : METRIC_ABSENT;
}

static int collect_jobs(struct server *server, const struct session *viewer, struct metrics *metrics) {
        struct job *job;
        size_t n = 0;

        LIST_FOREACH(job, &server->jobs, entry)
                n++;
        metrics->node.n_jobs = n;
        metrics->jobs = calloc(n ? n : 1, sizeof(*metrics->jobs));
        if (!metrics->jobs)
                return -ENOMEM;
        LIST_FOREACH(job, &server->jobs, entry) {
                struct job_metrics *at = &metrics->jobs[metrics->n_jobs];

                if (viewer && !access_job(viewer, job))
                        continue;
                at->labels = job_labels(server, job);
                if (!at->labels)
                        return -ENOMEM;
                metrics->n_jobs++;
                at->job = job;
                collect_job(job, at);
        }
        return 0;
}

/* ---- ranks ----------------------------------------------------------------------------------------------------- */

static void collect_rank(const struct stream *stream, uint64_t now_ns, struct rank_metrics *metrics) {
        struct ring_counts counts;
        struct dlp_meter meter;

        ring_meter(stream->ring, now_ns, &meter);
        ring_count(stream->ring, &counts);
        memcpy(metrics->waits, meter.waits, sizeof(metrics->waits));
        metrics->numbers = (struct rank_numbers){
                .n_samples = counter_get(&stream->n_samples_published),
                .n_samples_again = counter_get(&stream->n_samples_again),
                .n_substituted = counter_get(&stream->n_substituted),
                .n_skipped = counter_get(&stream->n_skipped),
                .n_batches = meter.n_batches,
                .n_waits = meter.n_waits,
                .wait_ns = meter.wait_ns,
                .busy_ns = meter.busy_ns,
                .empty_ns = meter.empty_ns,
                .waiting_ns = meter.waiting_ns,
                .first_wait_ns = meter.first_wait_ns,
                .epoch = counts.epoch,
                .step = counts.step,
                .n_slots = stream->ring->n_slots,
                .n_ready = counts.n_ready,
                .n_filling = counts.n_filling,
                .n_leased = counts.n_leased,
                .ring_bytes = ring_bytes(stream->ring),
        };
}

static struct job_metrics *collect_job_of(const struct metrics *metrics, const struct job *job) {
        for (size_t i = 0; i < metrics->n_jobs; i++)
                if (metrics->jobs[i].job == job)
                        return &metrics->jobs[i];
        return NULL;
}

static int collect_ranks(struct server *server, struct metrics *metrics) {
        uint64_t now_ns = clock_now_ns();
        struct session *session;

        metrics->ranks = calloc(server->n_sessions ? server->n_sessions : 1, sizeof(*metrics->ranks));
        if (!metrics->ranks)
                return -ENOMEM;
        TAILQ_FOREACH(session, &server->sessions, entry) {
                struct job_metrics *job = session->stream ? collect_job_of(metrics, session->job) : NULL;
                struct rank_metrics *rank = &metrics->ranks[metrics->n_ranks];
                char number[RANK_MAX];
                struct why why;

                if (!job)
                        continue;
                snprintf(number, sizeof(number), "%u", session->stream->rank);
                rank->labels = metrics_label(job->labels, "rank", number);
                if (!rank->labels)
                        return -ENOMEM;
                metrics->n_ranks++;
                job->numbers.n_ranks++;
                job->numbers.is_on_hold |= hold_of(session->stream, &why);
                collect_rank(session->stream, now_ns, rank);
        }
        return 0;
}

/* ---------------------------------------------------------------------------------------------------------------- */

int metrics_collect(struct server *server, const struct session *viewer, struct metrics *ret_metrics) {
        int r;

        *ret_metrics = (struct metrics){ .version = server->options.version };
        collect_process(server, &ret_metrics->process);
        collect_node(server, &ret_metrics->node);
        r = collect_datasets(server, viewer, ret_metrics);
        if (r == 0)
                r = collect_jobs(server, viewer, ret_metrics);
        return r == 0 ? collect_ranks(server, ret_metrics) : r;
}

void metrics_free(struct metrics *metrics) {
        for (size_t i = 0; i < metrics->n_datasets; i++)
                free(metrics->datasets[i].labels);
        for (size_t i = 0; i < metrics->n_jobs; i++)
                free(metrics->jobs[i].labels);
        for (size_t i = 0; i < metrics->n_ranks; i++)
                free(metrics->ranks[i].labels);
        free(metrics->datasets);
        free(metrics->jobs);
        free(metrics->ranks);
        *metrics = (struct metrics){ .version = NULL };
}
