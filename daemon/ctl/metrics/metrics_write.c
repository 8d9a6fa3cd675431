/* The text that is scraped. All lines of a metric stand together, so each row of the table goes through all ranks. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/ctl/metrics/metrics.h"
#include "daemon/ctl/metrics/metrics_text.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"
#include "proto/base/utf8.h"

#define BUCKET_STEP 2u /* every second power of two is a bucket of the histogram: 1 us, 4 us, 16 us, ... 67 s */

/* These are not numbers of a row: a label, the stages, a histogram. */
#define METRIC_BUILD "dataloaderd_build_info"
#define METRIC_STAGE "dataloaderd_stage_cpu_seconds_total"
#define METRIC_NEXT  "dataloaderd_client_next_seconds"

#define METRIC_BUILD_HELP "1; the label says which version runs."
#define METRIC_STAGE_HELP "Time of workers by what they did, as the clock has it: CPU time, unless CPUs are short."
#define METRIC_NEXT_HELP                                                                                               \
        "How long the trainer waited for each batch but the first. A wait under way is in the sum already."

static const struct number_row PROCESS_ROWS[] = { PROCESS_NUMBERS(NUMBER_ROW) };
static const struct number_row NODE_ROWS[] = { NODE_NUMBERS(NUMBER_ROW) };
static const struct number_row DATASET_ROWS[] = { DATASET_NUMBERS(NUMBER_ROW) };
static const struct number_row STAGING_ROWS[] = { STAGING_NUMBERS(NUMBER_ROW) };
static const struct number_row JOB_ROWS[] = { JOB_NUMBERS(NUMBER_ROW) };
static const struct number_row RANK_ROWS[] = { RANK_NUMBERS(NUMBER_ROW) };

/* Items that have the same rows. Each begins with its labels, unless its numbers do. */
struct family {
        const struct number_row *rows;
        size_t n_rows;
        const void *items;
        size_t n_items, item_size, numbers_at;
};

/* ---- lines --------------------------------------------------------------------------------------------------- */

static void add_head(struct text *text, const char *name, const char *type, const char *help) {
        text_add(text, "# HELP ");
        text_add(text, name);
        text_add(text, " ");
        text_add(text, help);
        text_add(text, "\n# TYPE ");
        text_add(text, name);
        text_add(text, " ");
        text_add(text, type);
        text_add(text, "\n");
}

/* Prometheus counts seconds and ones. */
static unsigned decimal_places(const char *unit) {
        return strcmp(unit, "ns") == 0                                       ? 9
               : strcmp(unit, "millionths") == 0                             ? 6
               : strcmp(unit, "ms") == 0 || strcmp(unit, "thousandths") == 0 ? 3
                                                                             : 0;
}

static void add_value(struct text *text, uint64_t value, const char *unit) {
        text_add(text, " ");
        text_add_decimal(text, value, decimal_places(unit));
        text_add(text, "\n");
}

/* A row, for all items. */
static void write_number(struct text *text, const struct family *family, size_t idx) {
        const struct number_row *row = &family->rows[idx];

        if (!*row->metric)
                return;
        add_head(text, row->metric, row->kind == NUMBER_COUNTER ? "counter" : "gauge", row->help);
        for (size_t k = 0; k < family->n_items; k++) {
                const char *item = (const char *)family->items + k * family->item_size, *labels = NULL;
                uint64_t value;

                if (family->numbers_at > 0)
                        memcpy(&labels, item, sizeof(labels));
                memcpy(&value, item + family->numbers_at + idx * sizeof(value), sizeof(value));
                if (value == NUMBER_UNKNOWN)
                        continue;
                text_add(text, row->metric);
                if (labels) {
                        text_add(text, "{");
                        text_add(text, labels);
                        text_add(text, "}");
                }
                add_value(text, value, row->unit);
        }
}

/* ---- what is not a number of a row ---------------------------------------------------------------------------- */

static void write_build(struct text *text, const char *version) {
        _cleanup_(freep) char *label = metrics_label(NULL, "version", version);

        add_head(text, METRIC_BUILD, "gauge", METRIC_BUILD_HELP);
        text_add(text, METRIC_BUILD "{");
        text_add(text, label ? label : "");
        text_add(text, "} 1\n");
        text->failed = text->failed || !label;
}

static void write_stages(struct text *text, const struct metrics *metrics) {
        add_head(text, METRIC_STAGE, "counter", METRIC_STAGE_HELP);
        for (size_t k = 0; k < metrics->n_jobs; k++)
                for (uint32_t i = 0; i < N_STAGES; i++) {
                        if (metrics->jobs[k].stages[i].n == 0)
                                continue;
                        text_add(text, METRIC_STAGE "{");
                        text_add(text, metrics->jobs[k].labels);
                        text_add(text, ",stage=\"");
                        text_add(text, stage_name((enum stage_id)i));
                        text_add(text, "\"}");
                        add_value(text, metrics->jobs[k].stages[i].ns, "ns");
                }
}

static void add_next_line(struct text *text, const char *suffix, const char *labels, const char *bound) {
        text_add(text, METRIC_NEXT);
        text_add(text, suffix);
        text_add(text, "{");
        text_add(text, labels);
        if (bound) {
                text_add(text, ",le=\"");
                text_add(text, bound);
                text_add(text, "\"");
        }
        text_add(text, "}");
}

/* Bucket i of the client has what is below 2^i microseconds; the last one has no upper end. */
static void write_next_of(struct text *text, const struct rank_metrics *rank) {
        uint64_t n = 0;

        for (uint32_t i = 0; i < DLP_WAIT_BUCKETS; i++) {
                bool is_last = i == DLP_WAIT_BUCKETS - 1;
                char bound[32] = "+Inf";

                n += rank->meter.waits[i];
                if (!is_last && i % BUCKET_STEP != 0)
                        continue;
                if (!is_last)
                        snprintf(bound, sizeof(bound), "%.9g", (double)(UINT64_C(1) << i) / 1e6);
                add_next_line(text, "_bucket", rank->labels, bound);
                add_value(text, n, "");
        }
        add_next_line(text, "_sum", rank->labels, NULL);
        add_value(text, rank->numbers.wait_ns, "ns");
        add_next_line(text, "_count", rank->labels, NULL);
        add_value(text, n, "");
}

static void metrics_write_write_next(struct text *text, const struct metrics *metrics) {
        add_head(text, METRIC_NEXT, "histogram", METRIC_NEXT_HELP);
        for (size_t k = 0; k < metrics->n_ranks; k++)
                write_next_of(text, &metrics->ranks[k]);
}

int metrics_write(const struct metrics *metrics, char **ret_text, size_t *ret_n) {
#define FAMILY(rows, items, n_items, numbers_at)                                                                       \
        { rows, ARRAY_SIZE(rows), items, n_items, sizeof(*(items)), numbers_at }
        const struct family FAMILIES[] = {
                FAMILY(PROCESS_ROWS, &metrics->process, 1, 0),
                FAMILY(NODE_ROWS, &metrics->node, 1, 0),
                FAMILY(DATASET_ROWS, metrics->datasets, metrics->n_datasets, offsetof(struct dataset_metrics, numbers)),
                FAMILY(STAGING_ROWS, metrics->datasets, metrics->n_datasets, offsetof(struct dataset_metrics, staging)),
                FAMILY(JOB_ROWS, metrics->jobs, metrics->n_jobs, offsetof(struct job_metrics, numbers)),
                FAMILY(RANK_ROWS, metrics->ranks, metrics->n_ranks, offsetof(struct rank_metrics, numbers)),
        };
#undef FAMILY
        struct text text = { .bytes = NULL };

        write_build(&text, metrics->version);
        for (size_t i = 0; i < ARRAY_SIZE(FAMILIES); i++)
                for (size_t k = 0; k < FAMILIES[i].n_rows; k++)
                        write_number(&text, &FAMILIES[i], k);
        write_stages(&text, metrics);
        metrics_write_write_next(&text, metrics);
        if (text.failed) {
                free(text.bytes);
                return -ENOMEM;
        }
        *ret_text = text.bytes;
        *ret_n = text.n;
        return 0;
}

/* ---- labels ---------------------------------------------------------------------------------------------------- */

static void add_byte(struct text *text, unsigned char byte) {
        char hex[8];

        snprintf(hex, sizeof(hex), "\\\\x%02x", byte); /* the backslash itself has to be escaped */
        text_add(text, hex);
}

/* Returns how many bytes of the value were taken. */
static size_t add_character(struct text *text, const char *value) {
        uint32_t point;
        size_t n = utf8_decode(value, SIZE_MAX, &point);

        if (text_printable_length(value) == 0) {
                add_byte(text, (unsigned char)*value);
                for (size_t i = 1; i < n; i++)
                        add_byte(text, (unsigned char)value[i]);
                return n ? n : 1;
        }
        if (*value == '"' || *value == '\\')
                text_add(text, "\\");
        text_add_bytes(text, value, n);
        return n;
}

/* FNV-1a: tells long names apart that begin alike. */
static uint64_t metrics_write_digest_of(const char *value) {
        uint64_t digest = UINT64_C(0xcbf29ce484222325);

        for (; *value; value++)
                digest = (digest ^ (unsigned char)*value) * UINT64_C(0x100000001b3);
        return digest;
}

char *metrics_label(const char *before, const char *name, const char *value) {
        struct text text = { .bytes = NULL };
        size_t n_kept = strlen(value) > METRIC_LABEL_MAX ? METRIC_LABEL_MAX - 24 : METRIC_LABEL_MAX;
        const char *at = value;
        char digest[24];

        if (before) {
                text_add(&text, before);
                text_add(&text, ",");
        }
        text_add(&text, name);
        text_add(&text, "=\"");
        while (*at && (size_t)(at - value) < n_kept)
                at += add_character(&text, at);
        snprintf(digest, sizeof(digest), "...#%016llx", (unsigned long long)metrics_write_digest_of(value));
        if (*at)
                text_add(&text, digest);
        text_add_bytes(&text, "\"", 2); /* with the NUL */
        if (text.failed) {
                free(text.bytes);
                return NULL;
        }
        return text.bytes;
}
