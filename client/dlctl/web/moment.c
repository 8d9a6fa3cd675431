#include "client/dlctl/web/moment.h"

#include <stdio.h>

#include "client/dlctl/output.h"

/* [rank, batches, ready, leased, slots, wait_ns, busy_ns]: names would be most of the text. The last two are missing if
 * the client does not tell them. */
static void moment_add_rank(cJSON *list, const Dlp__Rank *rank) {
        uint64_t numbers[] = { rank->rank, rank->n_batches, rank->n_ready, rank->n_leased, rank->n_slots, 0, 0 };
        cJSON *row = cJSON_CreateArray();
        char text[24];

        if (rank->waiting) {
                numbers[5] = rank->waiting->wait_ns;
                numbers[6] = rank->waiting->busy_ns;
        }
        for (size_t i = 0; i < (rank->waiting ? 7 : 5); i++) {
                snprintf(text, sizeof(text), "%llu", (unsigned long long)numbers[i]);
                cJSON_AddItemToArray(row, cJSON_CreateRaw(text));
        }
        cJSON_AddItemToArray(list, row);
}

static void moment_add_job(cJSON *list, const Dlp__Job *job) {
        cJSON *record = list_record(list), *inner;

        record_fields(record, job, "user name now_ns worker_ns n_samples");
        inner = record_inner(record, "stages");
        for (size_t i = 0; i < job->n_stages; i++)
                record_number(inner, job->stages[i]->name, job->stages[i]->taken_ns);
        inner = record_list(record, "ranks");
        for (size_t i = 0; i < job->n_ranks; i++)
                moment_add_rank(inner, job->ranks[i]);
}

struct piece *moment_describe(uint64_t sequence, uint64_t unix_ms, const struct glance *glance) {
        const Dlp__StatusReply *status = glance->status;
        cJSON *record = record_new(), *list;

        record_number(record, "n", sequence);
        record_number(record, "unix_ms", unix_ms);
        record_fields(record, status, "memory_used_bytes");
        if (status->node)
                record_fields(record, status->node, "worker_ns n_bytes_read");
        list = record_list(record, "jobs");
        for (size_t i = 0; i < glance->n_jobs; i++)
                moment_add_job(list, glance->jobs[i].job);
        return piece_of_record(record);
}
