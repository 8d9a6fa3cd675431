/* dlctl check-steps: does a pipeline give each sample the same result whoever makes it, when, and beside which others?
 *
 * It reads some samples twice. First as one rank. Then as two ranks of another job, the second one before the first and
 * with batches of another size, so that other workers make them, at other times and places. What is delivered has to be
 * equal to the last bit: a step's draws depend on nothing but the seed, the epoch, the sample and the step's place in
 * the text. The order stays, as a sampler that puts samples into another one may change what is drawn for them. */

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/dlctl/control.h"
#include "client/dlctl/dlctl_options.h"
#include "client/dlctl/samples/sample.h"
#include "client/dlctl/waiting.h"
#include "client/include/dlclient.h"

#define LOOK_AGAIN_MS 500 /* a signal that arrives just before a wait is noticed after this time */
#define SAMPLES_MAX   1000000u
#define NAMES_MAX     64u    /* fields that are compared: above the limit of a pipeline */
#define NAMED_MAX     10u    /* samples that differ and are named */
#define BATCH_MAX     100000 /* above the daemon's own limit */

static volatile sig_atomic_t interrupted;

static void check_steps_on_interrupt(int number) {
        interrupted = 1;
}

struct field_name {
        char text[64];
};

/* What one reading delivered. */
struct reading {
        size_t n, capacity;           /* samples */
        size_t n_positions, n_wanted; /* of the order: samples, and damaged ones that were left out */
        bool is_whole;                /* the epoch has ended before as many as wanted */
        size_t n_fields;
        int64_t *indices;
        uint8_t *hashes; /* capacity x n_fields x SAMPLE_HASH_BYTES */
        struct field_name names[NAMES_MAX];
};

struct check {
        struct dlc_options options;
        uint64_t n_samples;
        bool same_batches; /* asked for, or the dataset is a stream, of which two ranks have other samples than one */
        struct sample_printer *printer; /* hashes */
        struct reading readings[2];
};

static uint8_t *hash_at(const struct reading *reading, size_t idx_sample, size_t idx_field) {
        return reading->hashes + (idx_sample * reading->n_fields + idx_field) * SAMPLE_HASH_BYTES;
}

static void reading_free(struct reading *reading) {
        free(reading->indices);
        free(reading->hashes);
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

static bool is_compared(const struct dlc_tensor *tensor) {
        return !tensor->is_whole || tensor->places;
}

/* The fields become known with the first batch. Returns 0 or -ENOMEM. */
static int note_fields(struct reading *reading, const struct dlc_batch *batch) {
        for (uint32_t i = 0; i < batch->n_tensors && reading->n_fields < NAMES_MAX; i++)
                if (is_compared(&batch->tensors[i]))
                        snprintf(reading->names[reading->n_fields++].text, sizeof(reading->names[0].text), "%s",
                                 batch->tensors[i].name);
        reading->indices = calloc(reading->capacity, sizeof(*reading->indices));
        reading->hashes = calloc(reading->capacity, reading->n_fields * SAMPLE_HASH_BYTES + 1);
        return reading->indices && reading->hashes ? 0 : -ENOMEM;
}

/* Returns 0, -EIO if hashing fails, or -ENOMEM. */
static int note_batch(struct check *check, struct reading *reading, const struct dlc_batch *batch) {
        int r = reading->indices ? 0 : note_fields(reading, batch);

        reading->n_positions += batch->n_samples + batch->n_skipped;
        for (uint32_t i = 0; i < batch->n_samples && reading->n < reading->capacity && r == 0; i++) {
                for (uint32_t k = 0, idx = 0; k < batch->n_tensors && idx < reading->n_fields; k++)
                        if (is_compared(&batch->tensors[k]) &&
                            !sample_hash(check->printer, &batch->tensors[k], i, hash_at(reading, reading->n, idx++)))
                                return -EIO;
                reading->indices[reading->n++] = batch->indices[i];
        }
        return r;
}

/* Returns 0 at the end, or what the loader says. */
static int read_batches(struct check *check, struct reading *reading, struct dlc_loader *loader) {
        int r = 0;

        while (r == 0 && reading->n_positions < reading->n_wanted) {
                const struct dlc_batch *batch;

                do
                        r = dlc_next(loader, LOOK_AGAIN_MS, &batch);
                while (r == -ETIMEDOUT && !interrupted);
                if (interrupted)
                        return -EINTR;
                if (r == 0) {
                        r = note_batch(check, reading, batch);
                        dlc_release(loader, batch);
                }
        }
        reading->is_whole = r == DLC_END_OF_EPOCH;
        return reading->is_whole ? 0 : r;
}

/* Returns EXIT_DONE, or an exit code after a message. */
static int read_rank(struct check *check, struct reading *reading, const struct dlc_options *options) {
        struct dlc_loader *loader;
        int r = dlc_open(options, &loader), code = EXIT_DONE;

        waiting_end();
        if (r < 0)
                return interrupted ? EXIT_INTERRUPTED : fail(exit_code_of(r), "%s", dlc_last_error());
        check->same_batches |= dlc_get_info(loader)->is_stream;
        r = read_batches(check, reading, loader);
        waiting_end();
        if (interrupted || r == -EINTR)
                code = EXIT_INTERRUPTED;
        else if (r == -EIO || r == -ENOMEM)
                code = fail(EXIT_REFUSED, "no memory, or SHA-256 is not available from libcrypto");
        else if (r < 0)
                code = fail(exit_code_of(r), "%s", dlc_error(loader));
        dlc_close(loader);
        return code;
}

/* Jobs of their own, whatever the launcher's environment says. */
static void name_job(const char *which, char *name, size_t size) {
        snprintf(name, size, "check-steps-%s-%ld@%lld", which, (long)getpid(), (long long)time(NULL));
}

static int check_steps_read_first(struct check *check) {
        struct dlc_options options = check->options;
        char job[96];

        name_job("1", job, sizeof(job));
        options.job = job;
        options.rank = 0;
        options.world_size = 1;
        check->readings[0].n_wanted = (size_t)check->n_samples;
        check->readings[0].capacity = (size_t)check->n_samples + (size_t)options.batch_size;
        return read_rank(check, &check->readings[0], &options);
}

/* The same samples, those of the odd positions first: dealt to two ranks, of which the second one reads before the
 * first. */
static int read_dealt(struct check *check) {
        struct reading *first = &check->readings[0], *second = &check->readings[1];
        struct dlc_options options = check->options;
        int code = EXIT_DONE;
        char job[96];

        name_job("2", job, sizeof(job));
        options.job = job;
        options.world_size = 2;
        options.batch_size += 3;
        options.partition = "exact";
        second->capacity = first->n_positions + (size_t)options.batch_size + (size_t)options.batch_size;
        for (options.rank = 1; options.rank >= 0 && code == EXIT_DONE; options.rank--) {
                second->n_positions = 0;
                second->n_wanted = (first->n_positions + 1 - (size_t)options.rank) / 2;
                if (second->n_wanted > 0)
                        code = read_rank(check, second, &options);
        }
        return code;
}

/* For steps that mix the samples of a batch, and streams, which have one order: in the same batches, into fewer slots.
 */
static int check_steps_read_again(struct check *check) {
        struct dlc_options options = check->options;
        char job[96];

        name_job("2", job, sizeof(job));
        options.job = job;
        options.rank = 0;
        options.world_size = 1;
        options.n_slots = 2;
        check->readings[1].n_wanted = check->readings[0].n_positions;
        check->readings[1].capacity = check->readings[0].capacity;
        return read_rank(check, &check->readings[1], &options);
}

/* ---- comparing ----------------------------------------------------------------------------------------------- */

/* A sample of both readings, or of one of them. */
struct pair {
        int64_t index;
        const uint8_t *hashes[2]; /* NULL: the reading does not have it */
};

static int compare_pairs(const void *a, const void *b) {
        int64_t x = ((const struct pair *)a)->index, y = ((const struct pair *)b)->index;

        return (x > y) - (x < y);
}

/* The last batches of the second reading may reach further than the first one. Returns how many pairs stay. */
static size_t drop_further(struct pair *pairs, size_t n_all) {
        size_t n = 0;

        for (size_t i = 0; i < n_all; i++)
                if (pairs[i].hashes[0])
                        pairs[n++] = pairs[i];
        return n;
}

/* The samples of both, in the sequence of their numbers. Returns NULL without memory. */
static struct pair *check_steps_match(const struct reading readings[2], size_t *ret_n) {
        struct pair *pairs = calloc(readings[0].n + readings[1].n + 1, sizeof(*pairs));
        size_t n_all = 0, n = 0;

        if (!pairs)
                return NULL;
        for (size_t which = 0; which < 2; which++)
                for (size_t i = 0; i < readings[which].n; i++) {
                        pairs[n_all].index = readings[which].indices[i];
                        pairs[n_all++].hashes[which] = hash_at(&readings[which], i, 0);
                }
        qsort(pairs, n_all, sizeof(*pairs), compare_pairs);
        for (size_t i = 0; i < n_all; i++) {
                struct pair *last = n > 0 ? &pairs[n - 1] : NULL;
                size_t which = pairs[i].hashes[1] ? 1 : 0;

                if (last && last->index == pairs[i].index && !last->hashes[which])
                        last->hashes[which] = pairs[i].hashes[which];
                else
                        pairs[n++] = pairs[i];
        }
        *ret_n = readings[0].is_whole ? n : drop_further(pairs, n);
        return pairs;
}

static bool field_differs(const struct pair *pair, size_t idx_field) {
        size_t at = idx_field * SAMPLE_HASH_BYTES;

        return memcmp(pair->hashes[0] + at, pair->hashes[1] + at, SAMPLE_HASH_BYTES) != 0;
}

/* "image, boxes differ", or in which reading a sample is missing. False: it is equal. */
static bool describe_pair(const struct reading *reading, const struct pair *pair, char *text, size_t size) {
        size_t n = 0;

        for (size_t which = 0; which < 2; which++)
                if (!pair->hashes[which]) {
                        snprintf(text, size, "damaged in the %s reading only", which == 0 ? "first" : "second");
                        return true;
                }
        for (size_t i = 0; i < reading->n_fields; i++)
                if (field_differs(pair, i) && n < size)
                        n += (size_t)snprintf(text + n, size - n, "%s%s", n ? ", " : "", reading->names[i].text);
        if (n > 0 && n < size)
                snprintf(text + n, size - n, " %s", strchr(text, ',') ? "differ" : "differs");
        return n > 0;
}

/* Prints the record, and which samples differ. Returns an exit code. */
static int check_steps_conclude(const struct check *check, enum output_format format) {
        const struct reading *first = &check->readings[0];
        size_t n_pairs = 0, n_different = 0;
        struct pair *pairs = check_steps_match(check->readings, &n_pairs);
        cJSON *record, *list, *row;
        char text[256];

        if (!pairs)
                return fail(EXIT_REFUSED, "no memory");
        record = record_new();
        record_number(record, "n_samples", n_pairs);
        list = record_list(record, "different");
        for (size_t i = 0; i < n_pairs; i++) {
                if (!describe_pair(first, &pairs[i], text, sizeof(text)) || n_different++ >= NAMED_MAX)
                        continue;
                row = list_record(list);
                record_number(row, "index", (uint64_t)pairs[i].index);
                record_text(row, "difference", text);
        }
        record_number(record, "n_equal", n_pairs - n_different);
        record_number(record, "n_different", n_different);
        free(pairs);
        if (format == OUTPUT_JSON) {
                output_record(format, record);
        } else {
                printf("%zu samples read twice%s: %zu equal, %zu different\n", n_pairs,
                       check->same_batches ? ", in the same batches" : "", n_pairs - n_different, n_different);
                cJSON_ArrayForEach(row, list) printf("sample %s: %s\n", cJSON_GetObjectItem(row, "index")->valuestring,
                                                     cJSON_GetObjectItem(row, "difference")->valuestring);
                if (n_different > NAMED_MAX)
                        printf("and %zu more\n", n_different - NAMED_MAX);
        }
        cJSON_Delete(record);
        if (n_different == 0)
                return EXIT_DONE;
        return fail(EXIT_REFUSED,
                    check->same_batches
                            ? "the pipeline does not give each sample the same result"
                            : "the pipeline does not give each sample the same result in another batch and sequence; "
                              "if one of its steps mixes the samples of a batch, check it with --same-batches");
}

/* ---- the command --------------------------------------------------------------------------------------------- */

static int check_run(struct check *check, enum output_format format) {
        struct sigaction action = { .sa_handler =
                                            check_steps_on_interrupt }; /* without SA_RESTART: signals end waits */
        int code;

        sigaction(SIGINT, &action, NULL);
        if (sample_printer_new(format, &check->printer) < 0)
                return fail(EXIT_REFUSED, "no memory, or no SHA-256 in libcrypto");
        code = check_steps_read_first(check);
        if (code == EXIT_DONE && check->readings[0].n == 0)
                code = fail(EXIT_REFUSED, "not one sample came through the pipeline; dlctl errors says why");
        if (code == EXIT_DONE)
                code = check->same_batches ? check_steps_read_again(check) : read_dealt(check);
        if (code == EXIT_DONE)
                code = check_steps_conclude(check, format);
        sample_printer_free(check->printer);
        reading_free(&check->readings[0]);
        reading_free(&check->readings[1]);
        return code;
}

int check_steps_run(struct context *context, const struct command *command, int argc, char **argv) {
        static struct check check = { .n_samples = 256 };
        struct dlc_options o = DLC_OPTIONS_INIT;
        uint64_t epoch = 0;
        const struct option_row rows[] = {
                { "pipeline", OPTION_TEXT, &o.pipeline, "STEPS", "the steps (default raw: the bytes as stored)" },
                { "samples", OPTION_NUMBER, &check.n_samples, "N",
                  "read as many, up to a whole batch, in the order of the seed and epoch (default 256)" },
                { "batch", OPTION_COUNT, &o.batch_size, "B", "samples a batch in the first reading (default 16)" },
                { "seed", OPTION_NUMBER, &o.seed, "S", "of order and augmentation (default 0)" },
                { "epoch", OPTION_NUMBER, &epoch, "E", "the epoch (default 0)" },
                { "same-batches", OPTION_FLAG, &check.same_batches, NULL,
                  "read the same batches twice: for steps that mix the samples of a batch" },
        };
        int r;

        o.batch_size = 16;
        r = options_parse(context, command, rows, sizeof(rows) / sizeof(rows[0]), 1, argc, argv);
        if (r >= 0)
                return r;
        if (check.n_samples < 1 || check.n_samples > SAMPLES_MAX)
                return fail(EXIT_REFUSED, "samples: %" PRIu64 "; 1 .. %u are allowed", check.n_samples, SAMPLES_MAX);
        if (o.batch_size < 1 || o.batch_size > BATCH_MAX)
                return fail(EXIT_REFUSED, "batch: %d; 1 .. %d are allowed", o.batch_size, BATCH_MAX);
        o.dataset = argv[optind];
        r = control_choose(context, o.dataset);
        if (r != EXIT_DONE)
                return r;
        o.socket = context->socket;
        o.first_epoch = epoch;
        o.n_epochs = 1;
        o.on_error = "skip";
        o.on_restart = "raise";
        o.on_progress = waiting_on_progress;
        o.on_wait = waiting_on_wait;
        check.options = o;
        return check_run(&check, context->format);
}
