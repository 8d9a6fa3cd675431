#include "client/dlctl/diagnose/diagnose_record.h"

/* Nothing, where a number is not known. */
static void add_known(cJSON *record, const char *key, double value) {
        if (value > 0)
                record_real(record, key, value);
}

static void diagnose_record_add_workers(cJSON *record, const struct verdict *v) {
        record_number(record, "n_workers", v->n_workers);
        record_real(record, "cpus", v->cpus);
        record_real(record, "worker_busy_share", v->worker_share);
        add_known(record, "worker_on_cpu_share", v->cpu_share);
        add_known(record, "other_jobs_share", v->other_share);
        if (v->stage[0]) {
                record_text(record, "largest_stage", v->stage);
                record_real(record, "largest_stage_share", v->stage_share);
        }
}

static void add_storage(cJSON *record, const struct verdict *v) {
        record_real(record, "reading_share", v->reading_share);
        record_real(record, "queued_share", v->queued_share);
        add_known(record, "read_milliseconds", v->read_ms);
        add_known(record, "fetch_share", v->fetch_share);
        if (v->storage_share >= 0)
                record_real(record, "from_storage_share", v->storage_share);
}

static void add_origin(cJSON *record, const struct dlp_origin *origin) {
        record_text(record, "origin", origin->url);
        if (origin->n_answers > 0) {
                record_number(record, "first_byte_ns", origin->first_byte_ns);
                record_number(record, "first_byte_late_ns", origin->first_byte_late_ns);
        }
        add_known(record, "per_second_bytes", (double)origin->bytes_per_second);
        record_number(record, "n_requests", origin->n_requests);
        record_number(record, "n_retries", origin->n_retries);
        record_number(record, "n_paused", origin->n_paused);
        record_number(record, "n_ahead", origin->n_ahead);
        record_number(record, "ahead_bytes", origin->ahead_bytes);
        record_number(record, "cached_bytes", origin->cached_bytes);
        record_number(record, "origin_bytes", origin->total_bytes);
}

void verdict_record(cJSON *record, const struct verdict *v) {
        record_text(record, "verdict", v->sentence);
        record_text(record, "advice", v->advice);
        record_text(record, "input_bound", verdict_bound_name(v->bound));
        record_text(record, "limit", verdict_limit_name(v->limit));
        if (v->rank >= 0)
                record_number(record, "rank", (uint64_t)v->rank);
        record_real(record, "looked_seconds", v->seconds);
        record_number(record, "n_batches", v->n_batches);
        record_real(record, "wait_share", v->wait_share);
        record_real(record, "mean_wait_share", v->mean_wait_share);
        record_real(record, "samples_per_second", v->rate);
        add_known(record, "tokens_per_second", v->tokens);
        add_known(record, "demand_samples_per_second", v->demand);
        add_known(record, "workers_samples_per_second", v->supply_workers);
        add_known(record, "storage_samples_per_second", v->supply_storage);
        add_known(record, "predicted_samples_per_second", v->predicted);
        diagnose_record_add_workers(record, v);
        add_storage(record, v);
        if (v->limit == VERDICT_ORIGIN)
                add_origin(record, &v->origin);
}

void confirmation_record(cJSON *record, const struct confirmation *c) {
        record_text(record, "confirmation", c->sentence);
        record_number(record, "n_batches_again", c->n_batches);
        record_real(record, "again_seconds", c->seconds);
        record_real(record, "again_samples_per_second", c->rate);
        record_real(record, "again_wait_share", c->wait_share);
        if (c->predicted > 0)
                record_real(record, "again_to_predicted", c->rate / c->predicted);
}

void verdict_brief(cJSON *record, const struct look *look) {
        struct verdict v;

        verdict_make(NULL, look, &v);
        record_real(record, "samples_per_second", v.rate);
        add_known(record, "tokens_per_second", v.tokens);
        record_real(record, "wait_share", v.wait_share);
        record_text(record, "limit", verdict_limit_name(v.limit));
        record_text(record, "advice", v.advice);
}
