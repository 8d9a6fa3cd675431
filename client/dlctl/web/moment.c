#include "client/dlctl/web/moment.h"

#include <stdio.h>

#include "client/dlctl/output.h"

static void list_number(cJSON *list, uint64_t value) {
        char text[24];

        snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
        cJSON_AddItemToArray(list, cJSON_CreateRaw(text));
}

/* [rank, batches, ready, leased, slots]: names would be most of the text. */
static void add_rank(cJSON *list, const Dlp__Rank *rank) {
        cJSON *row = cJSON_CreateArray();

        cJSON_AddItemToArray(list, row);
        list_number(row, rank->rank);
        list_number(row, rank->n_batches);
        list_number(row, rank->n_ready);
        list_number(row, rank->n_leased);
        list_number(row, rank->n_slots);
}

static void add_job(cJSON *list, const Dlp__Job *job) {
        cJSON *record = list_record(list), *ranks;

        record_text(record, "user", job->n_ranks > 0 ? job->ranks[0]->user : "");
        record_text(record, "name", job->name);
        record_number(record, "worker_ns", job->worker_ns);
        ranks = record_list(record, "ranks");
        for (size_t i = 0; i < job->n_ranks; i++)
                add_rank(ranks, job->ranks[i]);
}

struct piece *moment_describe(uint64_t sequence, uint64_t unix_ms, const Dlp__StatusReply *status,
                              Dlp__Reply *const *jobs, size_t n_jobs) {
        cJSON *record = record_new(), *list;

        record_number(record, "n", sequence);
        record_number(record, "unix_ms", unix_ms);
        record_number(record, "memory_used_bytes", status->memory_used_bytes);
        list = record_list(record, "jobs");
        for (size_t i = 0; i < n_jobs; i++)
                for (size_t k = 0; k < jobs[i]->jobs->n_jobs; k++)
                        add_job(list, jobs[i]->jobs->jobs[k]);
        return piece_of_record(record);
}
