#include "client/dlctl/top/top_record.h"

#include <string.h>

#include "client/dlctl/diagnose/confirming.h"
#include "client/dlctl/output.h"
#include "client/lib/diagnose/job_wait.h"

/* What is not known is left out. */
static void top_record_rates(cJSON *record, const double rates[N_RATES]) {
        static const struct {
                const char *key;
                bool is_whole;
        } ROWS[] = {
#define ROW(name, key, is_whole) { key, is_whole },
                RATES(ROW)
#undef ROW
        };

        for (size_t i = 0; i < N_RATES; i++) {
                if (!is_known(rates[i]) || !*ROWS[i].key)
                        continue;
                if (ROWS[i].is_whole)
                        record_number(record, ROWS[i].key, (uint64_t)rates[i]);
                else
                        record_real(record, ROWS[i].key, rates[i]);
        }
}

static void top_record_add_node(cJSON *record, const struct node_rates *rates) {
        cJSON *node = record_inner(record, "node");

        if (rates->status)
                record_fields(node, rates->status, "memory_used_bytes memory_limit_bytes state");
        for (size_t i = 0; rates->status && i < rates->status->n_counters; i++)
                if (rates->status->counters[i]->watched)
                        record_facts(node, &rates->status->counters[i], 1);
        top_record_rates(node, rates->rates);
        if (!rates->node)
                return;
        record_real(node, "cpus", (double)rates->node->cpus_milli / 1000);
        record_fields(node, rates->node, "n_workers n_reading read_depth");
}

static void top_record_add_rank(cJSON *list, const struct rank_rates *rates) {
        cJSON *record = list_record(list);

        record_fields(record, rates->rank, "rank pid epoch step");
        top_record_rates(record, rates->rates);
}

static void top_record_add_stage(cJSON *list, const struct stage_rates *rates) {
        cJSON *record = list_record(list);

        record_text(record, "name", rates->name);
        record_real(record, "workers_busy", rates->workers);
        record_real(record, "share", rates->share);
        if (is_known(rates->per_sample))
                record_real(record, "seconds_per_sample", rates->per_sample);
}

static void top_record_add_job(cJSON *list, const struct job_rates *rates) {
        cJSON *record = list_record(list), *inner;
        char text[CONFIRMING_TEXT_MAX], waits[DLP_TEXT_MAX];

        record_fields(record, rates->job, "name user dataset world");
        top_record_rates(record, rates->rates);
        record_facts(record, rates->job->numbers, rates->job->n_numbers);
        record_fields(record, rates->job, "failure");
        record_text(record, "hold", job_wait_text(rates->job, waits));
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

        record_fields(record, dataset, "name state n_errors");
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
