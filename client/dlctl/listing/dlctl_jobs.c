/* dlctl jobs */

#include <string.h>
#include <unistd.h>

#include "client/dlctl/diagnose/confirming.h"
#include "client/dlctl/diagnose/diagnose_record.h"
#include "client/dlctl/diagnose/job_name.h"
#include "client/dlctl/dlctl_options.h"
#include "client/dlctl/listing/dlctl_listing.h"
#include "client/lib/diagnose/job_wait.h"

static const char *const COLUMNS[] = { "name", "dataset", "world", "batch_size", NULL };

static void dlctl_jobs_add_rank(cJSON *list, const Dlp__Rank *rank) {
        cJSON *record = list_record(list), *waiting;

        record_fields(record, rank,
                      "rank pid user epoch step n_ready n_filling n_leased n_slots n_batches n_substituted n_skipped "
                      "ring_bytes memory age_ns n_samples n_samples_again?");
        record_facts(record, rank->numbers, rank->n_numbers);
        if (!rank->waiting)
                return;
        waiting = record_inner(record, "waiting");
        record_fields(waiting, rank->waiting, "n_batches n_waits wait_ns busy_ns waiting_ns empty_ns first_wait_ns");
        record_numbers(waiting, "histogram", rank->waiting->histogram, rank->waiting->n_histogram);
}

void job_record(cJSON *list, const Dlp__Job *job, const Dlp__Node *node) {
        cJSON *record = list_record(list), *inner;
        const struct look look = { job, node };
        char text[CONFIRMING_TEXT_MAX], waits[DLP_TEXT_MAX];

        record_fields(record, job,
                      "name dataset user world batch_size pipeline seed draws shuffle order shuffle_buffer? sampler? "
                      "dealing partition drop_last on_error n_errors errors_allowed worker_ns other_ns");
        verdict_brief(record, &look);
        inner = record_inner(record, "counts");
        record_fields(inner, job,
                      "now_ns n_samples n_tokens n_reads n_bytes_read read_ns queued_ns n_texts_cut n_tokens_cut");
        record_facts(inner, job->numbers, job->n_numbers);
        record_fields(record, job, "failure");
        record_text(record, "hold", job_wait_text(job, waits));
        if (confirming_text(job, text, sizeof(text)))
                record_text(record, "confirming", text);
        record_progress(record, job->progress);
        inner = record_list(record, "ranks");
        for (size_t i = 0; i < job->n_ranks; i++)
                dlctl_jobs_add_rank(inner, job->ranks[i]);
        inner = record_list(record, "stages");
        for (size_t i = 0; i < job->n_stages; i++)
                record_fields(list_record(inner), job->stages[i], "name taken_ns n");
}

/* Those of this name; NULL: all. */
static void list_jobs(const struct glance *glance, const char *name, cJSON *list) {
        for (size_t i = 0; i < glance->n_jobs; i++)
                if (!name || strcmp(glance->jobs[i].job->name, name) == 0)
                        job_record(list, glance->jobs[i].job, glance->jobs[i].node);
}

int jobs_run(struct context *context, const struct command *command, int argc, char **argv) {
        struct control *control;
        struct glance *glance;
        const char *name;
        int r;

        r = options_parse(context, command, NULL, 0, 0, argc, argv);
        if (r >= 0)
                return r;
        name = optind < argc ? argv[optind] : NULL;
        r = control_open(context, &control);
        if (r != EXIT_DONE)
                return r;
        r = glance_ask_jobs(control, &glance);
        if (r == EXIT_DONE) {
                cJSON *record = record_new(), *list = record_list(record, "jobs");

                list_jobs(glance, name, list);
                if (name)
                        r = job_name_check(glance, "jobs", name);
                if (r == EXIT_DONE)
                        output_list(context->format, list, COLUMNS, "No jobs: nobody is attached.");
                cJSON_Delete(record);
                glance_free(glance);
        }
        control_close(control);
        return r;
}
