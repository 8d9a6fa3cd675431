#include "client/dlctl/web/moment.h"

#include <stdio.h>

#include "client/dlctl/output.h"

static void list_number(cJSON *list, uint64_t value) {
        char text[24];

        snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
        cJSON_AddItemToArray(list, cJSON_CreateRaw(text));
}

/* [rank, batches, ready, leased, slots, wait_ns, busy_ns]: names would be most of the text. The last two are missing if
 * the client does not tell them. */
static void moment_add_rank(cJSON *list, const Dlp__Rank *rank) {
        cJSON *row = cJSON_CreateArray();

        cJSON_AddItemToArray(list, row);
        list_number(row, rank->rank);
        list_number(row, rank->n_batches);
        list_number(row, rank->n_ready);
        list_number(row, rank->n_leased);
        list_number(row, rank->n_slots);
        if (!rank->waiting)
                return;
        list_number(row, rank->waiting->wait_ns);
        list_number(row, rank->waiting->busy_ns);
}

static void moment_add_job(cJSON *list, const Dlp__Job *job) {
        cJSON *record = list_record(list), *inner;

        record_text(record, "user", job->user);
        record_text(record, "name", job->name);
        record_number(record, "now_ns", job->now_ns);
        record_number(record, "worker_ns", job->worker_ns);
        record_number(record, "n_samples", job->n_samples);
        inner = record_inner(record, "stages");
        for (size_t i = 0; i < job->n_stages; i++)
                record_number(inner, job->stages[i]->name, job->stages[i]->taken_ns);
        inner = record_list(record, "ranks");
        for (size_t i = 0; i < job->n_ranks; i++)
                moment_add_rank(inner, job->ranks[i]);
}

struct piece *moment_describe(uint64_t sequence, uint64_t unix_ms, const Dlp__StatusReply *status,
                              const struct jobs_seen *jobs) {
        cJSON *record = record_new(), *list;

        record_number(record, "n", sequence);
        record_number(record, "unix_ms", unix_ms);
        record_number(record, "memory_used_bytes", status->memory_used_bytes);
        if (status->node) {
                record_number(record, "worker_ns", status->node->worker_ns);
                record_number(record, "n_bytes_read", status->node->n_bytes_read);
        }
        list = record_list(record, "jobs");
        for (size_t i = 0; i < jobs_seen_count(jobs); i++)
                moment_add_job(list, jobs_seen_at(jobs, i).job);
        return piece_of_record(record);
}
