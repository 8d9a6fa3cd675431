/* dlctl plan: what an order fetches of a dataset, before anything is fetched. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/dlctl/dlctl_options.h"
#include "client/dlctl/forecast/places.h"
#include "client/dlctl/waiting.h"
#include "proto/base/bytes.h"
#include "proto/fetching.h"
#include "proto/order/epoch_plan.h"
#include "proto/order/sampler.h"

#define JOBS_MAX      64u
#define LOCAL_MAX     DLP_LOCAL_RANKS_MAX
#define READS_MAX     100000000ull /* an epoch: some seconds, and the orders are in memory */
#define LATENCY_MS    100.0        /* of an object store in the same region, as people measure it */
#define BATCH_DEFAULT 64
#define AT_ONCE       (1u << 22) /* steps of a shuffle between two looks at how far it is */

/* The ranks of a job take batches in turn: whose turn it is. */
struct plan_turn {
        uint64_t step, rank;
        uint32_t idx_sample; /* in the batch */
};

struct plan_job {
        struct dlp_sampler samplers[2]; /* of this epoch; and of the next one, with several jobs */
        void *tables[2];
        struct plan_turn turn, foreseen;
};

struct plan {
        /* As asked for. */
        const char *order, *cache, *bandwidth, *files;
        uint64_t world, local, seed, n_jobs, n_epochs, n_samples, n_connections;
        int batch_size;
        double rate, latency_ms;
        bool shuffle;

        struct forecast_places places;
        struct forecast_terms terms;
        struct dlp_sampler_terms sampler;
        struct dlp_blocks blocks;
        struct dlp_epoch_plan ranks[LOCAL_MAX];
        struct plan_job jobs[JOBS_MAX];
        uint32_t idx_job;          /* whose turn it is */
        uint64_t n_reads, n_first; /* of an epoch; of its first batches */
        struct dlp_progress progress;
};

/* ---- which sample is read when ----------------------------------------------------------------------------------- */

static uint64_t turn_next(const struct plan *plan, struct plan_turn *turn, const struct dlp_sampler *sampler) {
        struct dlp_plan_batch batch = dlp_epoch_plan_batch(&plan->ranks[turn->rank], turn->step);
        uint64_t position = dlp_epoch_plan_position(&plan->ranks[turn->rank], batch.first + turn->idx_sample);

        if (++turn->idx_sample == batch.n_samples) {
                turn->idx_sample = 0;
                turn->rank = (turn->rank + 1) % plan->local;
                turn->step += turn->rank == 0;
        }
        return dlp_sampler_at(sampler, position);
}

/* Jobs take turns, a step of all their ranks each. */
static uint64_t plan_next_sample(void *userdata, uint32_t *ret_job) {
        struct plan *plan = userdata;
        struct plan_job *job = &plan->jobs[plan->idx_job];
        uint64_t sample = turn_next(plan, &job->turn, &job->samplers[0]);

        *ret_job = plan->idx_job;
        if (job->turn.idx_sample == 0 && job->turn.rank == 0)
                plan->idx_job = (plan->idx_job + 1) % (uint32_t)plan->n_jobs;
        return sample;
}

static uint64_t plan_foreseen(void *userdata, uint32_t idx_job, uint32_t idx_epoch, uint64_t k) {
        struct plan *plan = userdata;
        struct plan_job *job = &plan->jobs[idx_job];

        if (k == 0)
                job->foreseen = (struct plan_turn){ 0 };
        return turn_next(plan, &job->foreseen, &job->samplers[idx_epoch]);
}

static void plan_on_progress(void *userdata, uint64_t k) {
        struct plan *plan = userdata;

        plan->progress.done = k;
        waiting_draw("", &plan->progress);
}

static int make_order(struct plan *plan, struct plan_job *job, uint32_t idx_epoch) {
        uint64_t n_bytes = dlp_sampler_table_bytes(&plan->sampler);

        free(job->tables[idx_epoch]);
        job->tables[idx_epoch] = n_bytes > 0 ? calloc(1, n_bytes) : NULL;
        if (n_bytes > 0 && !job->tables[idx_epoch])
                return fail(EXIT_REFUSED, "plan: out of memory for the orders of %" PRIu64 " jobs", plan->n_jobs);
        dlp_sampler_init(&job->samplers[idx_epoch], &plan->sampler, job->tables[idx_epoch]);
        while (dlp_sampler_advance(&job->samplers[idx_epoch], AT_ONCE) < job->samplers[idx_epoch].n_positions)
                ;
        return EXIT_DONE;
}

static int make_orders(struct plan *plan, uint64_t epoch) {
        uint32_t n_epochs = plan->n_jobs > 1 ? 2 : 1;
        int r = EXIT_DONE;

        plan->idx_job = 0;
        for (uint64_t j = 0; j < plan->n_jobs; j++) {
                plan->jobs[j].turn = (struct plan_turn){ 0 };
                plan->sampler.seed = plan->seed + j;
                for (uint32_t i = 0; i < n_epochs && r == EXIT_DONE; i++) {
                        plan->sampler.epoch = epoch + i;
                        r = make_order(plan, &plan->jobs[j], i);
                }
        }
        return r;
}

static int compute(struct plan *plan, struct forecast_epoch epochs[2]) {
        struct forecast_reads reads = { .n = plan->n_reads,
                                        .n_first = plan->n_first,
                                        .next = plan_next_sample,
                                        .foreseen = plan_foreseen,
                                        .progress = plan_on_progress,
                                        .userdata = plan };
        struct forecast *forecast;
        int r = EXIT_DONE;

        if (forecast_new(&plan->places, &plan->terms, &forecast) < 0)
                return fail(EXIT_REFUSED, "plan: out of memory");
        plan->progress = (struct dlp_progress){ .phase = "computing", .unit = "reads", .total = plan->n_reads };
        for (uint64_t epoch = 0; epoch < 2 && r == EXIT_DONE; epoch++) {
                r = make_orders(plan, epoch);
                if (r == EXIT_DONE)
                        forecast_epoch(forecast, &reads, &epochs[epoch]);
        }
        waiting_end();
        forecast_free(forecast);
        return r;
}

/* ---- what is printed --------------------------------------------------------------------------------------------- */

static void add_epoch(cJSON *list, const char *name, double n_times, const struct forecast_epoch *first,
                      const struct forecast_epoch *more) {
        double n_reads = (double)first->n_reads + n_times * (double)more->n_reads;
        double seconds = first->seconds + n_times * more->seconds;
        cJSON *record = list_record(list);

        record_text(record, "epoch", name);
        record_number(record, "n_requests", first->n_requests + (uint64_t)(n_times * (double)more->n_requests));
        record_number(record, "n_pieces", first->n_pieces + (uint64_t)(n_times * (double)more->n_pieces));
        record_number(record, "origin_bytes", first->n_bytes + (uint64_t)(n_times * (double)more->n_bytes));
        record_real(record, "hit_share",
                    n_reads > 0 ? ((double)first->n_hits + n_times * (double)more->n_hits) / n_reads : 0);
        record_real(record, "first_batch_seconds", first->first_batch_seconds);
        record_real(record, "epoch_seconds", seconds);
        record_real(record, "samples_per_second", seconds > 0 ? n_reads / seconds : 0);
}

static void plan_print(const struct plan *plan, const char *dataset, const struct forecast_epoch epochs[2],
                       enum output_format format) {
        static const struct forecast_epoch NOTHING;
        cJSON *record = record_new(), *list;
        char name[64];

        record_text(record, "dataset", dataset);
        record_number(record, "n_samples", plan->places.n_samples);
        record_number(record, "dataset_bytes", plan->places.n_bytes);
        record_number(record, "n_chunks", plan->places.n_chunks);
        record_number(record, "cache_bytes", plan->terms.cache_bytes);
        record_text(record, "order", plan->shuffle ? plan->order : "sequential");
        record_number(record, "n_jobs", plan->n_jobs);
        record_number(record, "world", plan->world);
        record_number(record, "n_local_ranks", plan->local);
        if (plan->rate > 0)
                record_real(record, "job_samples_per_second", plan->rate);
        record_real(record, "latency_milliseconds", plan->latency_ms);
        if (plan->terms.bandwidth > 0)
                record_number(record, "bandwidth_bytes", (uint64_t)plan->terms.bandwidth);
        record_number(record, "n_connections", plan->n_connections);
        list = record_list(record, "epochs");
        add_epoch(list, "first", 0, &epochs[0], &NOTHING);
        add_epoch(list, "each later", 0, &epochs[1], &NOTHING);
        snprintf(name, sizeof(name), "all %" PRIu64, plan->n_epochs);
        if (plan->n_epochs > 0)
                add_epoch(list, name, (double)(plan->n_epochs - 1), &epochs[0], &epochs[1]);
        output_record(format, record);
        cJSON_Delete(record);
}

/* ---- what was asked for ------------------------------------------------------------------------------------------ */

static int plan_read_size(const char *option, const char *text, uint64_t *ret_bytes) {
        if (parse_bytes(text, ret_bytes) == 0)
                return EXIT_DONE;
        return fail(EXIT_USAGE, "plan: --%s: \"%s\" is not a size; write a number with KiB, MiB or GiB, such as 40GiB",
                    option, text);
}

static int plan_check_numbers(struct plan *plan) {
        if (plan->world < 1 || plan->world > DLP_WORLD_MAX)
                return fail(EXIT_USAGE, "plan: --world: %" PRIu64 "; 1 to %u ranks are allowed", plan->world,
                            DLP_WORLD_MAX);
        if (plan->local == 0)
                plan->local = plan->world < LOCAL_MAX ? plan->world : LOCAL_MAX;
        if (plan->local > plan->world || plan->local > LOCAL_MAX)
                return fail(EXIT_USAGE,
                            "plan: --local: %" PRIu64 "; at most %u ranks, and no more than --world, are on a "
                            "node",
                            plan->local, LOCAL_MAX);
        if (plan->n_jobs < 1 || plan->n_jobs > JOBS_MAX)
                return fail(EXIT_USAGE, "plan: --jobs: %" PRIu64 "; 1 to %u are allowed", plan->n_jobs, JOBS_MAX);
        if (plan->batch_size < 1 || plan->batch_size > (int)DLP_BATCH_MAX)
                return fail(EXIT_USAGE, "plan: --batch: %d; 1 to %u samples are allowed", plan->batch_size,
                            DLP_BATCH_MAX);
        if (plan->n_epochs > DLP_EPOCH_MAX)
                return fail(EXIT_USAGE, "plan: --epochs: %" PRIu64 "; at most %llu are allowed", plan->n_epochs,
                            DLP_EPOCH_MAX);
        if (plan->n_connections < 1 || plan->n_connections > 1024)
                return fail(EXIT_USAGE, "plan: --connections: %" PRIu64 "; 1 to 1024 are allowed", plan->n_connections);
        if (!(plan->rate >= 0 && plan->rate <= 1e9) || !(plan->latency_ms >= 0 && plan->latency_ms <= 1e6))
                return fail(EXIT_USAGE,
                            "plan: --rate and --latency: %g and %g; write numbers of samples/s and of "
                            "milliseconds, up to 1e9 and 1e6",
                            plan->rate, plan->latency_ms);
        return EXIT_DONE;
}

static int choose_order(struct plan *plan) {
        struct dlp_order_choice choice;
        struct why why;

        if (dlp_order_choice_read(plan->order, &choice, &why) < 0)
                return fail(EXIT_USAGE, "plan: %s", why.text);
        plan->sampler =
                (struct dlp_sampler_terms){ .shuffle = plan->shuffle, .kind = choice.kind, .window = choice.window };
        return EXIT_DONE;
}

/* Asks, or reads, where the samples lie, and where blocks end if the order goes by them. */
static int plan_find_places(struct plan *plan, const struct context *context, const char *operand) {
        bool goes_by_blocks = plan->sampler.kind == DLP_ORDER_BLOCKS && plan->shuffle;
        struct control *control;
        const char *name;
        int r;

        if (plan->files)
                return places_read(plan->files, plan->n_samples, &plan->places, &plan->blocks);
        r = control_open_dataset(context, operand, &control, &name);
        if (r != EXIT_DONE)
                return r;
        r = places_ask(control, name, &plan->places);
        if (r == EXIT_DONE && goes_by_blocks)
                r = places_ask_blocks(control, name, &plan->blocks);
        control_close(control);
        return r;
}

/* What follows from the places. */
static int set_terms(struct plan *plan) {
        struct dlp_epoch_terms terms = { .world = (uint32_t)plan->world,
                                         .batch_size = (uint32_t)plan->batch_size,
                                         .partition = DLP_PARTITION_PAD };
        uint64_t n_bytes = plan->places.n_bytes, bandwidth = 0;
        uint64_t latency_ns = (uint64_t)(plan->latency_ms * 1e6);
        double rate = plan->rate * (double)plan->n_jobs;
        int r = plan->cache ? plan_read_size("cache", plan->cache, &n_bytes) : EXIT_DONE;

        if (r == EXIT_DONE && plan->bandwidth)
                r = plan_read_size("bandwidth", plan->bandwidth, &bandwidth);
        if (r != EXIT_DONE)
                return r;
        if (plan->places.n_samples == 0)
                return fail(EXIT_REFUSED, "plan: the dataset has no sample");
        plan->sampler.n_samples = plan->places.n_samples;
        plan->sampler.blocks = plan->sampler.kind == DLP_ORDER_BLOCKS ? &plan->blocks : NULL;
        terms.n_positions = dlp_sampler_n_positions(&plan->sampler);
        for (uint64_t i = 0; i < plan->local; i++) {
                plan->ranks[i] = dlp_epoch_plan_make(&terms, (uint32_t)i, 0);
                plan->n_reads += plan->ranks[i].n_samples * plan->n_jobs;
                plan->n_first += dlp_epoch_plan_batch(&plan->ranks[i], 0).n_samples * plan->n_jobs;
        }
        if (plan->n_reads > READS_MAX)
                return fail(EXIT_REFUSED,
                            "plan: %" PRIu64 " reads an epoch; at most %llu are computed: take fewer --jobs",
                            plan->n_reads, READS_MAX);
        plan->terms = (struct forecast_terms){ .cache_bytes = n_bytes,
                                               .rate = rate,
                                               .latency_s = plan->latency_ms / 1000,
                                               .bandwidth = (double)bandwidth,
                                               .n_connections = (uint32_t)plan->n_connections,
                                               .n_jobs = (uint32_t)plan->n_jobs,
                                               .horizon_s = (double)dlp_horizon_ns(DLP_AHEAD_S, latency_ns) / 1e9,
                                               .horizon = DLP_AHEAD_SAMPLES * plan->local * plan->n_jobs };
        if (plan->terms.horizon > plan->n_reads)
                plan->terms.horizon = plan->n_reads;
        return EXIT_DONE;
}

static int plan_operands(const struct plan *plan, bool has_dataset) {
        if (!has_dataset && !plan->files)
                return fail(EXIT_USAGE, "plan: DATASET is missing, or --files\nTry 'dlctl plan --help'.");
        if (has_dataset && plan->files)
                return fail(EXIT_USAGE, "plan: --files is in place of DATASET");
        if (plan->n_samples > 0 && !plan->files)
                return fail(EXIT_USAGE, "plan: --samples is for --files; the daemon knows those of DATASET");
        return EXIT_DONE;
}

int plan_run(struct context *context, const struct command *command, int argc, char **argv) {
        static struct plan plan = { .order = "torch",
                                    .world = 1,
                                    .n_jobs = 1,
                                    .n_connections = DLP_ORIGIN_CONNECTIONS,
                                    .batch_size = BATCH_DEFAULT,
                                    .latency_ms = LATENCY_MS,
                                    .shuffle = true };
        const struct option_row rows[] = {
                { "cache", OPTION_TEXT, &plan.cache, "SIZE", "cache_limit of the node (default: room for all of it)" },
                { "world", OPTION_NUMBER, &plan.world, "N", "ranks of a job (default 1)" },
                { "local", OPTION_NUMBER, &plan.local, "N", "of these, on the node (default all)" },
                { "batch", OPTION_COUNT, &plan.batch_size, "B", "samples a batch (default 64)" },
                { "rate", OPTION_REAL, &plan.rate, "X",
                  "samples/s that a job takes on the node (default: as fast as they come)" },
                { "latency", OPTION_REAL, &plan.latency_ms, "MS",
                  "milliseconds from a request to the first byte of its answer (default 100)" },
                { "bandwidth", OPTION_TEXT, &plan.bandwidth, "SIZE",
                  "bytes/s that the origin sends the node at most, as 1GiB (default: no limit)" },
                { "connections", OPTION_NUMBER, &plan.n_connections, "N", "to the origin (default 256)" },
                { "order", OPTION_TEXT, &plan.order, "torch|tdperm|buffer|blocks",
                  "how it is shuffled (default torch); also blocks(window=N)" },
                { "no-shuffle", OPTION_FLAG_OFF, &plan.shuffle, NULL, "in the dataset's own order" },
                { "seed", OPTION_NUMBER, &plan.seed, "S",
                  "seed of the first job; the next ones have S+1, ... (default 0)" },
                { "jobs", OPTION_NUMBER, &plan.n_jobs, "K", "jobs with other seeds that share the cache (default 1)" },
                { "epochs", OPTION_NUMBER, &plan.n_epochs, "E", "also what a number of epochs takes together" },
                { "files", OPTION_TEXT, &plan.files, "FILE",
                  "in place of DATASET: bytes of each of its files, one number a line; each is a sample" },
                { "samples", OPTION_NUMBER, &plan.n_samples, "N",
                  "with --files: the files are shards, which have N samples of one length together" },
        };
        struct forecast_epoch epochs[2];
        const char *operand;
        int r = options_parse(context, command, rows, sizeof(rows) / sizeof(rows[0]), 0, argc, argv);

        if (r >= 0)
                return r;
        operand = optind < argc ? argv[optind] : NULL;
        r = plan_operands(&plan, operand != NULL);
        if (r == EXIT_DONE)
                r = plan_check_numbers(&plan);
        if (r == EXIT_DONE)
                r = choose_order(&plan);
        if (r == EXIT_DONE)
                r = plan_find_places(&plan, context, operand);
        if (r == EXIT_DONE)
                r = set_terms(&plan);
        if (r == EXIT_DONE)
                r = compute(&plan, epochs);
        if (r == EXIT_DONE)
                plan_print(&plan, operand ? operand : plan.files, epochs, context->format);
        for (size_t i = 0; i < JOBS_MAX; i++)
                for (size_t k = 0; k < 2; k++)
                        free(plan.jobs[i].tables[k]);
        free((uint64_t *)(uintptr_t)plan.blocks.ends);
        places_free(&plan.places);
        return r;
}
