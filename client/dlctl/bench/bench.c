/* dlctl bench: what this node can deliver, before a trainer is written. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/dlctl/bench/bench_report.h"
#include "client/dlctl/control.h"
#include "client/dlctl/dlctl_options.h"

#define SECONDS_MAX 3600.0

/* ---- numbers of workers ---------------------------------------------------------------------------------------- */

/* "1,2,4" */
static int bench_read_numbers(const char *text, uint32_t *ret_numbers, unsigned *ret_n) {
        unsigned n = 0;

        for (;;) {
                unsigned long number;
                char *end;

                number = strtoul(text, &end, 10);
                if (text[0] < '0' || text[0] > '9' || number < 1 || number > UINT32_MAX || n == OPTION_LIST_MAX ||
                    (*end && *end != ','))
                        return fail(EXIT_USAGE, "bench: --workers: write numbers from 1 on, such as 1,2,4");
                ret_numbers[n++] = (uint32_t)number;
                if (!*end)
                        break;
                text = end + 1;
        }
        *ret_n = n;
        return EXIT_DONE;
}

/* Asks for the number of workers, and sets it if `n` is not UINT32_MAX. */
static int set_workers(const struct context *context, uint32_t n, Dlp__Reply **ret_reply) {
        Dlp__WorkersRequest body = DLP__WORKERS_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        struct control *control;
        int r = control_open(context, &control);

        if (r != EXIT_DONE)
                return r;
        body.change = n != UINT32_MAX;
        body.n_workers = body.change ? n : 0;
        request.body_case = DLP__REQUEST__BODY_WORKERS;
        request.workers = &body;
        r = control_ask(control, &request, DLP__REPLY__BODY_WORKERS, ret_reply);
        control_close(control);
        return r;
}

static int set_workers_to(const struct context *context, uint32_t n) {
        Dlp__Reply *reply;
        int r = set_workers(context, n, &reply);

        if (r == EXIT_DONE)
                dlp__reply__free_unpacked(reply, NULL);
        return r;
}

/* ---- the dataset ----------------------------------------------------------------------------------------------- */

/* Of a sample, on average; 0 if it is not known. Not worth a failure. */
static double stored_bytes(const struct context *context, const char *dataset) {
        Dlp__DatasetsRequest body = DLP__DATASETS_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        struct control *control;
        double n_bytes = 0;
        Dlp__Reply *reply;
        const char *name;

        if (control_open_dataset(context, dataset, &control, &name) != EXIT_DONE)
                return 0;
        body.name = (char *)(uintptr_t)name;
        request.body_case = DLP__REQUEST__BODY_DATASETS;
        request.datasets = &body;
        if (control_ask(control, &request, DLP__REPLY__BODY_DATASETS, &reply) == EXIT_DONE) {
                const Dlp__Dataset *row = reply->datasets->n_datasets == 1 ? reply->datasets->datasets[0] : NULL;

                if (row && row->n_samples > 0)
                        n_bytes = (double)row->n_bytes / (double)row->n_samples;
                dlp__reply__free_unpacked(reply, NULL);
        }
        control_close(control);
        return n_bytes;
}

/* ---- the command ----------------------------------------------------------------------------------------------- */

static int run_once(const struct context *context, const struct dlc_options *options, struct bench_terms *terms,
                    double seconds) {
        static struct measured measured;
        int r = measure(context, options, seconds, &measured), printed = 0;

        if (measured.n_batches > 0 && (r == EXIT_DONE || r == EXIT_INTERRUPTED)) {
                if (terms->stored_bytes <= 0)
                        terms->stored_bytes = stored_bytes(context, terms->dataset);
                printed = bench_print(context->format, terms, &measured);
        }
        return printed < 0 ? EXIT_REFUSED : r; /* output_end() says why */
}

/* With each of these numbers of workers; then the daemon has again what it had. */
static int run_each(const struct context *context, const struct dlc_options *options, struct bench_terms *terms,
                    double seconds, const char *text) {
        uint32_t numbers[OPTION_LIST_MAX], before;
        unsigned n_numbers = 0;
        Dlp__Reply *reply;
        int r = bench_read_numbers(text, numbers, &n_numbers), restored;

        if (r == EXIT_DONE)
                r = set_workers(context, UINT32_MAX, &reply);
        if (r != EXIT_DONE)
                return r;
        before = reply->workers->n_asked;
        dlp__reply__free_unpacked(reply, NULL);
        for (unsigned i = 0; i < n_numbers && r == EXIT_DONE && !measure_is_interrupted(); i++) {
                r = set_workers_to(context, numbers[i]);
                if (r == EXIT_DONE)
                        r = run_once(context, options, terms, seconds);
                if (i + 1 < n_numbers && context->format == OUTPUT_TEXT)
                        putchar('\n');
        }
        restored = set_workers_to(context, before);
        return r == EXIT_DONE ? restored : r;
}

static int bench_check(const struct bench_terms *terms, double seconds) {
        if (!(seconds > 0 && seconds <= SECONDS_MAX))
                return fail(EXIT_USAGE, "bench: --seconds: %g is not allowed; write a number above 0, at most %.0f",
                            seconds, SECONDS_MAX);
        if (terms->n_gpus > 0 && !(terms->gpu_rate > 0 && terms->gpu_rate < 1e12))
                return fail(EXIT_USAGE, "bench: --gpus needs --rate, the samples/s that one GPU takes");
        return EXIT_DONE;
}

int bench_run(struct context *context, const struct command *command, int argc, char **argv) {
        struct dlc_options o = DLC_OPTIONS_INIT;
        struct bench_terms terms = { .gpu_rate = 0 };
        const char *workers = NULL;
        double seconds = 10;
        const struct option_row rows[] = {
                { "pipeline", OPTION_TEXT, &o.pipeline, "STEPS",
                  "steps applied to a sample (default raw: the bytes as stored)" },
                { "batch", OPTION_COUNT, &o.batch_size, "B", "samples a batch (default 64)" },
                { "seconds", OPTION_REAL, &seconds, "S", "how long to measure (default 10)" },
                { "workers", OPTION_TEXT, &workers, "N,N",
                  "measure with each of these numbers of workers, and then set back what was before" },
                { "gpus", OPTION_NUMBER, &terms.n_gpus, "G", "is that enough for this number of GPUs" },
                { "rate", OPTION_REAL, &terms.gpu_rate, "X", "that take this number of samples/s each?" },
                { "slots", OPTION_COUNT, &o.n_slots, "N",
                  "batches prepared ahead, 2 .. 64 (default: the daemon's setting)" },
                { "no-shuffle", OPTION_FLAG_OFF, &o.shuffle, NULL, "in the dataset's own order" },
        };
        int r;

        o.batch_size = 64;
        r = options_parse(context, command, rows, sizeof(rows) / sizeof(rows[0]), 1, argc, argv);
        if (r >= 0)
                return r;
        terms.dataset = argv[optind];
        terms.batch_size = (uint32_t)o.batch_size;
        if (terms.gpu_rate > 0 && terms.n_gpus == 0)
                terms.n_gpus = 1;
        r = bench_check(&terms, seconds);
        if (r != EXIT_DONE)
                return r;
        r = control_choose(context, terms.dataset);
        if (r != EXIT_DONE)
                return r;
        o.dataset = terms.dataset;
        o.socket = context->socket;
        o.rank = 0;
        o.world_size = 1;
        o.on_error = "skip"; /* what is damaged is counted, and does not end it */
        o.on_restart = "raise";
        return workers ? run_each(context, &o, &terms, seconds, workers) : run_once(context, &o, &terms, seconds);
}
