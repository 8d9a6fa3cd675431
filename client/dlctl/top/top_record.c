#include "client/dlctl/top/top_record.h"

#include <string.h>

#include "client/dlctl/diagnose/confirming.h"
#include "client/dlctl/output.h"

/* What is not known is left out. */
static void add_real(cJSON *record, const char *key, double value) {
        if (is_known(value))
                record_real(record, key, value);
}

static void top_record_add_node(cJSON *record, const struct node_rates *rates) {
        cJSON *node = record_inner(record, "node");

        if (rates->status) {
                record_number(node, "memory_used_bytes", rates->status->memory_used_bytes);
                record_number(node, "memory_limit_bytes", rates->status->memory_limit_bytes);
                record_text(node, "state", rates->status->state);
        }
        add_real(node, "samples_per_second", rates->samples);
        add_real(node, "read_bytes_per_second", rates->bytes);
        add_real(node, "storage_bytes_per_second", rates->storage);
        add_real(node, "read_seconds", rates->read_seconds);
        add_real(node, "workers_busy", rates->workers);
        add_real(node, "cpus_busy", rates->cpus);
        if (!rates->node)
                return;
        record_number(node, "n_workers", rates->node->n_workers);
        add_real(node, "cpus", (double)rates->node->cpus_milli / 1000);
        record_number(node, "n_reading", rates->node->n_reading);
        record_number(node, "read_depth", rates->node->read_depth);
}

static void top_record_add_rank(cJSON *list, const struct rank_rates *rates) {
        cJSON *record = list_record(list);

        record_number(record, "rank", rates->rank->rank);
        record_number(record, "pid", rates->rank->pid);
        record_number(record, "epoch", rates->rank->epoch);
        record_number(record, "step", rates->rank->step);
        record_number(record, "n_ready", rates->rank->n_ready);
        record_number(record, "n_slots", rates->rank->n_slots);
        add_real(record, "samples_per_second", rates->samples);
        add_real(record, "batches_per_second", rates->batches);
        add_real(record, "wait_share", rates->wait);
        add_real(record, "ready_share", rates->ready);
        add_real(record, "step_seconds", rates->per_step);
        add_real(record, "waiting_seconds", rates->waiting);
}

static void top_record_add_stage(cJSON *list, const struct stage_rates *rates) {
        cJSON *record = list_record(list);

        record_text(record, "name", rates->name);
        add_real(record, "workers_busy", rates->workers);
        add_real(record, "share", rates->share);
        add_real(record, "seconds_per_sample", rates->per_sample);
}

static void top_record_add_job(cJSON *list, const struct job_rates *rates) {
        cJSON *record = list_record(list), *inner;
        char text[CONFIRMING_TEXT_MAX];

        record_text(record, "name", rates->job->name);
        record_text(record, "user", rates->job->user);
        record_text(record, "dataset", rates->job->dataset);
        record_number(record, "world", rates->job->world);
        add_real(record, "samples_per_second", rates->samples);
        if (rates->verdict->tokens > 0)
                record_real(record, "tokens_per_second", rates->verdict->tokens);
        add_real(record, "read_bytes_per_second", rates->bytes);
        add_real(record, "read_seconds", rates->read_seconds);
        add_real(record, "workers_busy", rates->workers);
        add_real(record, "wait_share", rates->wait);
        add_real(record, "ready_share", rates->ready);
        record_number(record, "n_ready", rates->n_ready);
        record_number(record, "n_slots", rates->n_slots);
        record_number(record, "ring_bytes", rates->ring_bytes);
        record_number(record, "n_errors", rates->job->n_errors);
        record_text(record, "failure", rates->job->failure);
        record_text(record, "hold", rates->job->hold);
        if (confirming_text(rates->job, text, sizeof(text)))
                record_text(record, "confirming", text);
        record_text(record, "limit", verdict_limit_name(rates->verdict->limit));
        record_text(record, "sentence", rates->verdict->sentence);
        record_text(record, "advice", rates->verdict->advice);
        record_progress(record, rates->job->progress);
        inner = record_list(record, "ranks");
        for (size_t i = 0; i < rates->job->n_ranks; i++)
                top_record_add_rank(inner, &rates->ranks[i]);
        inner = record_list(record, "stages");
        for (size_t i = 0; i < rates->n_stages; i++)
                top_record_add_stage(inner, &rates->stages[i]);
}

static void add_dataset(cJSON *list, const Dlp__Dataset *dataset) {
        cJSON *record = list_record(list);

        record_text(record, "name", dataset->name);
        record_text(record, "state", dataset->state);
        record_number(record, "n_errors", dataset->n_errors);
        record_progress(record, dataset->progress);
}

cJSON *top_record(const struct rates *rates, const struct items *items) {
        cJSON *record = record_new(), *list;

        top_record_add_node(record, &rates->node);
        list = record_list(record, "jobs");
        for (size_t i = 0; i < items->n; i++)
                if (!items->items[i].rank)
                        top_record_add_job(list, items->items[i].job);
        list = record_list(record, "datasets");
        for (size_t i = 0; i < rates->now->n_datasets; i++)
                add_dataset(list, rates->now->datasets[i]);
        return record;
}
