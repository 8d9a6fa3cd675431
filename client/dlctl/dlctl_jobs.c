/* dlctl jobs */

#include <string.h>
#include <unistd.h>

#include "client/dlctl/diagnose/confirming.h"
#include "client/dlctl/diagnose/diagnose_record.h"
#include "client/dlctl/diagnose/job_name.h"
#include "client/dlctl/dlctl_listing.h"
#include "client/dlctl/dlctl_options.h"

static const char *const COLUMNS[] = { "name", "dataset", "world", "batch_size", NULL };

static void add_waiting(cJSON *rank, const Dlp__Waiting *waiting) {
        cJSON *record = record_inner(rank, "waiting");

        record_number(record, "n_batches", waiting->n_batches);
        record_number(record, "n_waits", waiting->n_waits);
        record_number(record, "wait_ns", waiting->wait_ns);
        record_number(record, "busy_ns", waiting->busy_ns);
        record_number(record, "waiting_ns", waiting->waiting_ns);
        record_number(record, "empty_ns", waiting->empty_ns);
        record_number(record, "first_wait_ns", waiting->first_wait_ns);
        record_numbers(record, "histogram", waiting->histogram, waiting->n_histogram);
}

static void dlctl_jobs_add_rank(cJSON *list, const Dlp__Rank *rank) {
        cJSON *record = list_record(list);

        record_number(record, "rank", rank->rank);
        record_number(record, "pid", rank->pid);
        record_text(record, "user", rank->user);
        record_number(record, "epoch", rank->epoch);
        record_number(record, "step", rank->step);
        record_number(record, "n_ready", rank->n_ready);
        record_number(record, "n_filling", rank->n_filling);
        record_number(record, "n_leased", rank->n_leased);
        record_number(record, "n_slots", rank->n_slots);
        record_number(record, "n_batches", rank->n_batches);
        record_number(record, "n_substituted", rank->n_substituted);
        record_number(record, "n_skipped", rank->n_skipped);
        record_number(record, "ring_bytes", rank->ring_bytes);
        record_text(record, "memory", rank->memory);
        record_number(record, "age_ns", rank->age_ns);
        record_number(record, "n_samples", rank->n_samples);
        if (rank->n_samples_again > 0)
                record_number(record, "n_samples_again", rank->n_samples_again);
        if (rank->waiting)
                add_waiting(record, rank->waiting);
}

static void add_counts(cJSON *job_record, const Dlp__Job *job) {
        cJSON *record = record_inner(job_record, "counts");

        record_number(record, "now_ns", job->now_ns);
        record_number(record, "n_samples", job->n_samples);
        record_number(record, "n_tokens", job->n_tokens);
        record_number(record, "n_reads", job->n_reads);
        record_number(record, "n_bytes_read", job->n_bytes_read);
        record_number(record, "read_ns", job->read_ns);
        record_number(record, "queued_ns", job->queued_ns);
        record_number(record, "n_texts_cut", job->n_texts_cut);
        record_number(record, "n_tokens_cut", job->n_tokens_cut);
}

static void dlctl_jobs_add_stage(cJSON *list, const Dlp__Stage *stage) {
        cJSON *record = list_record(list);

        record_text(record, "name", stage->name);
        record_number(record, "taken_ns", stage->taken_ns);
        record_number(record, "n", stage->n);
}

void job_record(cJSON *list, const Dlp__Job *job, const Dlp__Node *node) {
        cJSON *record = list_record(list), *ranks, *stages;
        const struct look look = { job, node };
        char text[CONFIRMING_TEXT_MAX];

        record_text(record, "name", job->name);
        record_text(record, "dataset", job->dataset);
        record_text(record, "user", job->user);
        record_number(record, "world", job->world);
        record_number(record, "batch_size", job->batch_size);
        record_text(record, "pipeline", job->pipeline);
        record_number(record, "seed", job->seed);
        record_number(record, "draws", job->draws);
        record_bool(record, "shuffle", job->shuffle);
        record_text(record, "order", job->order);
        if (job->shuffle_buffer > 0)
                record_number(record, "shuffle_buffer", job->shuffle_buffer);
        if (job->sampler[0])
                record_text(record, "sampler", job->sampler);
        record_text(record, "dealing", job->dealing);
        record_text(record, "partition", job->partition);
        record_bool(record, "drop_last", job->drop_last);
        record_text(record, "on_error", job->on_error);
        record_number(record, "n_errors", job->n_errors);
        record_number(record, "errors_allowed", job->errors_allowed);
        record_number(record, "worker_ns", job->worker_ns);
        record_number(record, "other_ns", job->other_ns);
        verdict_brief(record, &look);
        add_counts(record, job);
        record_text(record, "failure", job->failure);
        record_text(record, "hold", job->hold);
        if (confirming_text(job, text, sizeof(text)))
                record_text(record, "confirming", text);
        record_progress(record, job->progress);
        ranks = record_list(record, "ranks");
        for (size_t i = 0; i < job->n_ranks; i++)
                dlctl_jobs_add_rank(ranks, job->ranks[i]);
        stages = record_list(record, "stages");
        for (size_t i = 0; i < job->n_stages; i++)
                dlctl_jobs_add_stage(stages, job->stages[i]);
}

/* Those of this name; NULL: all. */
static void list_jobs(const struct jobs_seen *jobs, const char *name, cJSON *list) {
        for (size_t i = 0; i < jobs_seen_count(jobs); i++) {
                struct look look = jobs_seen_at(jobs, i);

                if (!name || strcmp(look.job->name, name) == 0)
                        job_record(list, look.job, look.node);
        }
}

int jobs_run(struct context *context, const struct command *command, int argc, char **argv) {
        struct control *control;
        struct jobs_seen jobs;
        const char *name;
        int r;

        r = options_parse(context, command, NULL, 0, 0, argc, argv);
        if (r >= 0)
                return r;
        name = optind < argc ? argv[optind] : NULL;
        r = control_open(context, &control);
        if (r != EXIT_DONE)
                return r;
        r = jobs_seen_ask(control, &jobs);
        if (r == EXIT_DONE) {
                cJSON *record = record_new(), *list = record_list(record, "jobs");

                list_jobs(&jobs, name, list);
                if (name)
                        r = job_name_check(&jobs, "jobs", name);
                if (r == EXIT_DONE)
                        output_list(context->format, list, COLUMNS, "No jobs: nobody is attached.");
                cJSON_Delete(record);
                jobs_seen_free(&jobs);
        }
        control_close(control);
        return r;
}
