/* dlctl read: a rank that prints its batches. It uses only the public interface, so it also serves as an example. */

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/dlctl/control.h"
#include "client/dlctl/dlctl_options.h"
#include "client/dlctl/orders/given.h"
#include "client/dlctl/samples/sample.h"
#include "client/dlctl/waiting.h"
#include "client/include/dlclient.h"
#include "proto/limits.h"

/* A signal that arrives just before a wait is noticed after this time. */
#define LOOK_AGAIN_MS 500

static volatile sig_atomic_t interrupted;

static void dlctl_read_on_interrupt(int number) {
        interrupted = 1;
}

struct reading {
        struct dlc_loader *loader;
        struct sample_printer *printer;
        struct text text;
        uint64_t first_epoch, n_epochs;
        uint64_t n_left; /* batches until --limit */
        int delay_ms;
};

/* Waits for a batch. Flushes the output first, so that a slow rank's lines are seen as they come. */
static int dlctl_read_next(struct reading *reading, const struct dlc_batch **ret_batch) {
        int r = dlc_next(reading->loader, 0, ret_batch);

        if (r != -EAGAIN)
                return r;
        text_flush(&reading->text);
        do
                r = dlc_next(reading->loader, LOOK_AGAIN_MS, ret_batch);
        while (r == -ETIMEDOUT && !interrupted);
        waiting_end();
        return r;
}

/* Sleeps, to act as a rank that needs time for a batch, as training does. */
static void dlctl_read_pause_for(struct reading *reading) {
        struct timespec pause = { .tv_sec = reading->delay_ms / 1000, .tv_nsec = reading->delay_ms % 1000 * 1000000L };

        if (reading->delay_ms <= 0)
                return;
        text_flush(&reading->text);
        nanosleep(&pause, NULL);
}

/* Returns 0 at the epoch's end, or a negative errno: of the loader, or of writing. */
static int read_epoch(struct reading *reading) {
        const struct dlc_batch *batch;
        int r;

        while (!interrupted && reading->n_left > 0) {
                r = dlctl_read_next(reading, &batch);
                if (r != 0)
                        return r == DLC_END_OF_EPOCH ? 0 : r;
                r = sample_print_batch(reading->printer, reading->loader, batch, &reading->text);
                if (r == 0)
                        r = reading->text.error;
                if (r < 0)
                        return r;
                dlctl_read_pause_for(reading);
                dlc_release(reading->loader, batch);
                reading->n_left--;
        }
        return 0;
}

static int read_epochs(struct reading *reading) {
        int r = 0;

        /* The loader may open in the middle of the first epoch. */
        for (uint64_t i = 0; i < reading->n_epochs && reading->n_left > 0 && !interrupted && r == 0; i++) {
                r = i == 0 ? 0 : dlc_set_epoch(reading->loader, reading->first_epoch + i);
                if (r == 0)
                        r = read_epoch(reading);
        }
        return r;
}

/* The exit code for the way in which the reading ended. */
static int dlctl_read_conclude(struct reading *reading, int r) {
        int written = text_flush(&reading->text);

        if (interrupted || r == -EINTR)
                return EXIT_INTERRUPTED;
        if (written < 0)
                return EXIT_REFUSED; /* output_end() says why */
        if (r == -EIO)
                return fail(EXIT_REFUSED, "SHA-256 is not available from libcrypto");
        if (r < 0)
                return fail(exit_code_of(r), "%s", dlc_error(reading->loader));
        return EXIT_DONE;
}

static void dlctl_read_catch_interrupts(void) {
        struct sigaction action = { .sa_handler = dlctl_read_on_interrupt }; /* without SA_RESTART: signals end waits */

        sigaction(SIGINT, &action, NULL);
}

static int dlctl_read_run(const struct dlc_options *options, struct reading *reading, enum output_format format) {
        int r;

        dlctl_read_catch_interrupts();
        r = dlc_open(options, &reading->loader);
        waiting_end();
        if (r < 0)
                return interrupted ? EXIT_INTERRUPTED : fail(exit_code_of(r), "%s", dlc_last_error());
        r = sample_printer_new(format, &reading->printer);
        if (r == 0)
                r = dlctl_read_conclude(reading, read_epochs(reading));
        else
                r = fail(EXIT_REFUSED, "no memory, or no SHA-256 in libcrypto");
        sample_printer_free(reading->printer);
        dlc_close(reading->loader);
        return r;
}

/* With --rank and --world given and no job, this rank runs alone: the launcher's job name would be wrong. */
static void default_job(struct dlc_options *options, char *name, size_t capacity) {
        if (options->job || (options->rank < 0 && options->world_size < 0))
                return;
        snprintf(name, capacity, "dlctl-%ld@%lld", (long)getpid(), (long long)time(NULL));
        options->job = name;
}

int read_run(struct context *context, const struct command *command, int argc, char **argv) {
        static struct reading reading = { .n_epochs = 1, .n_left = UINT64_MAX };
        struct dlc_options o = DLC_OPTIONS_INIT;
        static struct option_list columns;
        static struct given given;
        const char *fields = NULL;
        char job[64], named[DLP_PIPELINE_MAX + 2]; /* what is too long is refused, as any pipeline is */
        const struct option_row rows[] = {
                { "job", OPTION_TEXT, &o.job, "J",
                  "the job's name: ranks of one job must agree in everything else (default: its own)" },
                { "world", OPTION_COUNT, &o.world_size, "W", "ranks of the job (default: the launcher's, else 1)" },
                { "rank", OPTION_COUNT, &o.rank, "R",
                  "the number of this rank, 0 .. W-1 (default: the launcher's, else 0)" },
                { "batch", OPTION_COUNT, &o.batch_size, "B", "samples a batch (default 1)" },
                { "epochs", OPTION_NUMBER, &reading.n_epochs, "E", "how many epochs to read (default 1)" },
                { "first-epoch", OPTION_NUMBER, &reading.first_epoch, "E", "the first one (default 0)" },
                { "first-position", OPTION_NUMBER, &o.first_position, "P",
                  "the rest of the first epoch from this global position on (default 0)" },
                { "seed", OPTION_NUMBER, &o.seed, "S", "of order and augmentation (default 0)" },
                { "draws", OPTION_NUMBER, &o.draws, "N",
                  "which random draws the augmentation uses: another number gives other crops in the same order "
                  "(default 0)" },
                { "no-shuffle", OPTION_FLAG_OFF, &o.shuffle, NULL, "in the dataset's own order" },
                { "partition", OPTION_TEXT, &o.partition, "P", "pad, drop or exact (default pad)" },
                { "dealing", OPTION_TEXT, &o.dealing, "D",
                  "how samples are dealt to ranks: strided, or in whole batches: chunk or batch (default strided)" },
                { "drop-last", OPTION_FLAG, &o.drop_last, NULL, "leave out the last batch if it is incomplete" },
                { "order", OPTION_TEXT, &o.order, "torch|tdperm|buffer|blocks",
                  "how it is shuffled (default torch; a stream: always buffer); also blocks(window=N)" },
                { "shuffle-buffer", OPTION_COUNT, &o.shuffle_buffer, "N",
                  "samples in the shuffle buffer of a stream, or of --order buffer (default 1000)" },
                { "sampler", OPTION_TEXT, &o.sampler, "SAMPLER",
                  "steps that make the order, such as weighted(column=w)" },
                { "column", OPTION_LIST, &columns, "NAME=FILE",
                  "numbers for the sampler, one a line; may be given several times" },
                { "pipeline", OPTION_TEXT, &o.pipeline, "STEPS",
                  "steps applied to a sample (default raw: the bytes as stored)" },
                { "fields", OPTION_TEXT, &fields, "A,B",
                  "only these fields, as they are stored (instead of --pipeline)" },
                { "on-error", OPTION_TEXT, &o.on_error, "A",
                  "a damaged sample: fail, substitute or skip (default fail)" },
                { "max-errors", OPTION_REAL, &o.max_errors, "X",
                  "damaged samples that are tolerated; below 1: a share of all (default 0: any number)" },
                { "on-restart", OPTION_TEXT, &o.on_restart, "A",
                  "when the daemon ends: raise (default) or wait until it is back" },
                { "restart-timeout-ms", OPTION_COUNT, &o.restart_timeout_ms, "MS",
                  "how long to wait for the daemon (default 300000)" },
                { "slots", OPTION_COUNT, &o.n_slots, "N",
                  "batches prepared ahead, 2 .. 64 (default: the daemon's setting)" },
                { "limit", OPTION_NUMBER, &reading.n_left, "BATCHES", "stop after this number of batches" },
                { "delay-ms", OPTION_COUNT, &reading.delay_ms, "MS",
                  "hold each batch for this time, as a slow rank does" },
        };
        int r;

        r = options_parse(context, command, rows, sizeof(rows) / sizeof(rows[0]), 1, argc, argv);
        if (r >= 0)
                return r;
        if (!o.on_restart)
                o.on_restart = "raise"; /* a person who watches wants to see the restart */
        if (fields && o.pipeline)
                return fail(EXIT_USAGE, "read: --fields and --pipeline: write the fields into the pipeline's text");
        if (fields) { /* with ';' they are names, also one that a step has */
                snprintf(named, sizeof(named), "%s;", fields);
                o.pipeline = named;
        }
        if (reading.n_epochs < 1)
                return fail(EXIT_REFUSED, "epochs: 0; at least 1 is needed");

        o.dataset = argv[optind];
        if (context->is_private) { /* otherwise the library chooses, and again after a restart */
                r = control_choose(context, o.dataset);
                if (r != EXIT_DONE)
                        return r;
        }
        o.socket = context->socket;
        o.first_epoch = reading.first_epoch;
        o.n_epochs = reading.n_epochs;
        o.on_progress = waiting_on_progress;
        o.on_wait = waiting_on_wait;
        default_job(&o, job, sizeof(job));
        text_init(&reading.text, STDOUT_FILENO);
        r = given_read(&columns, &given);
        o.columns = given.columns;
        o.n_columns = (int)given.n;
        if (r == EXIT_DONE)
                r = dlctl_read_run(&o, &reading, context->format);
        given_free(&given);
        return r;
}
