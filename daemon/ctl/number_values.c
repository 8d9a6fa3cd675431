#include "daemon/ctl/number_values.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/machine/own_io.h"
#include "daemon/base/machine/own_process.h"
#include "proto/base/clock.h"

#define MICRO 1000000.0
#define MILLI 1000.0

/* ---- the daemon ------------------------------------------------------------------------------------------------ */

void number_values_of_process(const struct server *server, struct process_numbers *ret_numbers) {
        struct own_process process;

        own_process(&process);
        *ret_numbers = (struct process_numbers){
                .cpu_ns = process.cpu_ns,
                .resident_bytes = process.resident_bytes ? process.resident_bytes : NUMBER_UNKNOWN,
                .virtual_bytes = process.virtual_bytes ? process.virtual_bytes : NUMBER_UNKNOWN,
                .n_fds = process.n_fds ? process.n_fds : NUMBER_UNKNOWN,
                .n_fds_max = process.n_fds_max,
                .started_unix = (uint64_t)server->started_unix,
        };
}

void number_values_take_cache(struct server *server, struct cache_counts *ret_counts) {
        struct counters *counters = pipeline_counters(server->options.pipeline);
        struct cache *cache = server->options.catalog->cache;

        if (!cache || !cache_counts(cache, ret_counts)) {
                *ret_counts = (struct cache_counts){ 0 };
                return;
        }
#define TAKE(name, member) atomic_store_explicit(&counters->name, ret_counts->member, memory_order_relaxed)
        TAKE(n_cache_hits, n_hits);
        TAKE(n_cache_misses, n_misses);
        TAKE(origin_bytes, n_fetched);
        TAKE(peer_bytes, n_peer_fetched);
        TAKE(peer_sent_bytes, n_peer_sent);
        TAKE(n_peer_failures, n_peer_failures);
        TAKE(n_origin_requests, n_requests);
        TAKE(n_origin_retries, n_retries);
        TAKE(n_origin_pauses, n_paused);
        TAKE(cache_evicted_bytes, n_evicted);
#undef TAKE
}

void number_values_of_node(struct server *server, struct node_numbers *ret_numbers) {
        struct pipeline *pipeline = server->options.pipeline;
        struct counters *counters = pipeline_counters(pipeline);
        struct pipeline_memory memory;
        struct cache_counts cache;
        struct job *job;

        pipeline_memory(pipeline, &memory);
        number_values_take_cache(server, &cache);
        *ret_numbers = (struct node_numbers){
#define ROW(name, ...) .name = counter_get(&counters->name),
                NODE_COUNTERS(ROW)
#undef ROW
                        .is_draining = server->draining,
                .n_connections = server->n_sessions,
                .n_workers = pipeline_n_workers(pipeline),
                .cpus_milli = pool_cpus_milli(pipeline_pool(pipeline)),
                .memory_limit = server->options.budget->limit_bytes,
                .memory_used = budget_used(server->options.budget),
                .memory_buffers = memory.read_buffers,
                .memory_scratch = memory.worker_scratch + memory.large_picture_scratch,
                .memory_held = atomic_load_explicit(&pipeline_held(pipeline)->n_bytes, memory_order_relaxed),
                .read_depth = pipeline_read_depth(pipeline),
                .n_reading = pipeline_n_reading(pipeline),
                .cache_used = cache.n_bytes,
                .cache_limit = cache.limit,
                .origin_first_byte_ns = cache.first_byte_ns,
                .origin_horizon_ns = cache.horizon_ns > 0 ? cache.horizon_ns : NUMBER_UNKNOWN,
        };
        ret_numbers->worker_ns = ret_numbers->decode_ns + ret_numbers->collate_ns;
        if (!own_storage_bytes(&ret_numbers->storage_bytes))
                ret_numbers->storage_bytes = NUMBER_UNKNOWN;
        LIST_FOREACH(job, &server->jobs, entry)
                ret_numbers->n_jobs++;
}

void number_values_tell_node(struct server *server, Dlp__Node *message) {
        struct node_numbers values;
        const struct node_numbers *numbers = &values;
        struct number_list *list = NULL; /* all counters are in the status */

        number_values_of_node(server, &values);
        NODE_NUMBERS(NUMBER_TELL)
        message->now_ns = clock_now_ns();
        message->has_storage_bytes = values.storage_bytes != NUMBER_UNKNOWN;
}

/* ---- datasets -------------------------------------------------------------------------------------------------- */

static uint64_t ratio_micro(const struct dlp_progress *progress) {
        if (progress->total == 0)
                return NUMBER_UNKNOWN;
        return progress->done >= progress->total ? (uint64_t)MICRO
                                                 : (uint64_t)((double)progress->done * MICRO / (double)progress->total);
}

void number_values_of_dataset(struct catalog_entry *entry, struct dataset_numbers *ret_numbers) {
        const struct catalog_staged *staged = entry->staged;
        struct catalog_dataset *open = catalog_shown(entry);
        struct dlp_progress progress;
        struct why why;

        memset(ret_numbers, 0xff, sizeof(*ret_numbers)); /* NUMBER_UNKNOWN */
        ret_numbers->is_ready = open != NULL;
        ret_numbers->has_failed = entry->state == CATALOG_FAILED;
        if (open) {
                const struct source *source = dataset_source(open->dataset);

                ret_numbers->n_samples = source->growth ? growth_n_samples(source->growth, NULL) : source->n_samples;
                ret_numbers->n_bytes = source->total_bytes;
                ret_numbers->n_errors = ledger_n_samples(open->ledger);
                ret_numbers->is_unreadable = catalog_dataset_is_held(open, &why);
        }
        if (entry->state == CATALOG_INDEXING && catalog_progress(entry, &progress)) {
                ret_numbers->indexing_micro = ratio_micro(&progress);
                ret_numbers->indexing_ms = (uint64_t)(progress.seconds * MILLI);
        }
        if (staged && staged->progress_mark) {
                ret_numbers->staging_at_work = catalog_is_being_staged(entry);
                ret_numbers->staging_failed = staged->progress.result[0] != '\0';
        }
}

void number_values_of_staging(const struct catalog_entry *entry, struct staging_numbers *ret_numbers) {
        bool is_known = entry->staged && entry->staged->progress_mark;

#define ROW(name, ...) ret_numbers->name = is_known ? entry->staged->progress.name : NUMBER_UNKNOWN;
        STAGING_NUMBERS(ROW)
#undef ROW
}

/* ---- jobs ------------------------------------------------------------------------------------------------------ */

void number_values_of_job(struct job *job, struct job_numbers *ret_numbers,
                          struct stage_total ret_stages[static N_STAGES]) {
        struct tally_totals totals;
        struct dlp_progress order;

        tallies_total(job->tallies, &totals);
        memcpy(ret_stages, totals.stages, sizeof(totals.stages));
        *ret_numbers = (struct job_numbers){
#define ROW(name, ...) .name = totals.counts.name,
                JOB_COUNTERS(ROW)
#undef ROW
                        .world = job->terms.world,
                .has_failed = atomic_load(&job->failed),
                .order_micro = job_order_progress(job, UINT64_MAX, &order) ? ratio_micro(&order) : NUMBER_UNKNOWN,
                .n_errors = counter_get(&job->damage.n_met),
                .worker_ns = counter_get(&job->share.taken_ns),
                .other_ns = counter_get(&job->household->user->time.beside_ns),
                .step_wait_ns = step_waits_total(&job->waits),
        };
}

void number_values_of_rank(const struct feed *feed, uint64_t now_ns, struct rank_numbers *ret_numbers,
                           struct dlp_meter *ret_meter) {
        struct ring_counts counts;

        ring_meter(feed->ring, now_ns, ret_meter);
        ring_count(feed->ring, &counts);
        *ret_numbers = (struct rank_numbers){
#define ROW(name, ...) .name = counter_get(&feed->counters.name),
                RANK_COUNTERS(ROW)
#undef ROW
#define ROW(name, ...) .name = ret_meter->name,
                        WAITING_NUMBERS(ROW)
#undef ROW
                                .age_ns = now_ns - feed->ring->made_ns,
                .ahead_ns = atomic_load_explicit(&feed->ahead_ns, memory_order_relaxed),
                .epoch = counts.epoch,
                .step = counts.step,
                .n_slots = feed->ring->n_slots,
                .n_ready = counts.n_ready,
                .n_filling = counts.n_filling,
                .n_leased = counts.n_leased,
                .ring_bytes = ring_bytes(feed->ring),
                .n_released = counts.n_released,
        };
}

/* ---- numbers in messages --------------------------------------------------------------------------------------- */

void number_list_add(struct number_list *list, const char *name, uint64_t value, const char *unit, const char *help,
                     bool is_watched) {
        Dlp__Fact *fact;

        if (!list || value == NUMBER_UNKNOWN)
                return;
        assert(list->n < NUMBER_LIST_MAX);
        fact = &list->facts[list->n];
        dlp__fact__init(fact);
        snprintf(list->values[list->n], sizeof(list->values[0]), "%" PRIu64, value);
        fact->name = (char *)(uintptr_t)name;
        fact->value = list->values[list->n];
        fact->unit = (char *)(uintptr_t)(list->is_brief ? "" : unit);
        fact->text = (char *)(uintptr_t)(list->is_brief ? "" : help);
        fact->watched = is_watched;
        list->pointers[list->n++] = fact;
}
