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

struct metric {
        const char *name, *help;
        enum metric_kind kind;
        enum metric_scale scale;
};

#define ROW(field, kind, scale, name, help) { name, help, METRIC_##kind, METRIC_##scale },
static const struct metric PROCESS_ROWS[] = { PROCESS_METRICS(ROW) };
static const struct metric NODE_ROWS[] = { NODE_METRICS(ROW) };
static const struct metric DATASET_ROWS[] = { DATASET_METRICS(ROW) };
static const struct metric JOB_ROWS[] = { JOB_METRICS(ROW) };
static const struct metric RANK_ROWS[] = { RANK_METRICS(ROW) };
#undef ROW

#define IS_NUMBERS(type, rows) sizeof(type) == ARRAY_SIZE(rows) * sizeof(uint64_t)
_Static_assert(IS_NUMBERS(struct process_numbers, PROCESS_ROWS), "a number for each row");
_Static_assert(IS_NUMBERS(struct node_numbers, NODE_ROWS), "a number for each row");
_Static_assert(IS_NUMBERS(struct dataset_numbers, DATASET_ROWS), "a number for each row");
_Static_assert(IS_NUMBERS(struct job_numbers, JOB_ROWS), "a number for each row");
_Static_assert(IS_NUMBERS(struct rank_numbers, RANK_ROWS), "a number for each row");

#define NUMBERS_AT sizeof(uint64_t)
_Static_assert(offsetof(struct dataset_metrics, numbers) == NUMBERS_AT, "numbers follow labels");
_Static_assert(offsetof(struct job_metrics, numbers) == NUMBERS_AT, "numbers follow labels");
_Static_assert(offsetof(struct rank_metrics, numbers) == NUMBERS_AT, "numbers follow labels");

/* Items that have the same rows. */
struct family {
        const struct metric *rows;
        size_t n_rows;
        const void *items;
        size_t n_items, item_size;
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

static void add_value(struct text *text, uint64_t value, enum metric_scale scale) {
        static const unsigned PLACES[] = {
                [METRIC_ONE] = 0, [METRIC_MILLI] = 3, [METRIC_MICRO] = 6, [METRIC_NANO] = 9
        };

        text_add(text, " ");
        text_add_decimal(text, value, PLACES[scale]);
        text_add(text, "\n");
}

static const char *metrics_write_type_of(const struct metric *row) {
        return row->kind == METRIC_COUNTER ? "counter" : "gauge";
}

/* The numbers of the daemon itself: one line each, without labels. */
static void write_single(struct text *text, const struct metric *rows, size_t n_rows, const void *numbers) {
        for (size_t i = 0; i < n_rows; i++) {
                uint64_t value = ((const uint64_t *)numbers)[i];

                add_head(text, rows[i].name, metrics_write_type_of(&rows[i]), rows[i].help);
                if (value == METRIC_ABSENT)
                        continue;
                text_add(text, rows[i].name);
                add_value(text, value, rows[i].scale);
        }
}

static void metrics_write_write_row(struct text *text, const struct family *family, size_t idx) {
        const struct metric *row = &family->rows[idx];

        add_head(text, row->name, metrics_write_type_of(row), row->help);
        for (size_t k = 0; k < family->n_items; k++) {
                const char *item = (const char *)family->items + k * family->item_size;
                const char *labels;
                uint64_t value;

                memcpy(&labels, item, sizeof(labels));
                memcpy(&value, item + NUMBERS_AT + idx * sizeof(value), sizeof(value));
                if (value == METRIC_ABSENT)
                        continue;
                text_add(text, row->name);
                text_add(text, "{");
                text_add(text, labels);
                text_add(text, "}");
                add_value(text, value, row->scale);
        }
}

static void write_family(struct text *text, const struct family *family) {
        for (size_t i = 0; i < family->n_rows; i++)
                metrics_write_write_row(text, family, i);
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
                        if (metrics->jobs[k].stages_ns[i] == METRIC_ABSENT)
                                continue;
                        text_add(text, METRIC_STAGE "{");
                        text_add(text, metrics->jobs[k].labels);
                        text_add(text, ",stage=\"");
                        text_add(text, stage_name((enum stage_id)i));
                        text_add(text, "\"}");
                        add_value(text, metrics->jobs[k].stages_ns[i], METRIC_NANO);
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

                n += rank->waits[i];
                if (!is_last && i % BUCKET_STEP != 0)
                        continue;
                if (!is_last)
                        snprintf(bound, sizeof(bound), "%.9g", (double)(UINT64_C(1) << i) / 1e6);
                add_next_line(text, "_bucket", rank->labels, bound);
                add_value(text, n, METRIC_ONE);
        }
        add_next_line(text, "_sum", rank->labels, NULL);
        add_value(text, rank->numbers.wait_ns, METRIC_NANO);
        add_next_line(text, "_count", rank->labels, NULL);
        add_value(text, n, METRIC_ONE);
}

static void metrics_write_write_next(struct text *text, const struct metrics *metrics) {
        add_head(text, METRIC_NEXT, "histogram", METRIC_NEXT_HELP);
        for (size_t k = 0; k < metrics->n_ranks; k++)
                write_next_of(text, &metrics->ranks[k]);
}

int metrics_write(const struct metrics *metrics, char **ret_text, size_t *ret_n) {
        const struct family FAMILIES[] = {
                { DATASET_ROWS, ARRAY_SIZE(DATASET_ROWS), metrics->datasets, metrics->n_datasets,
                  sizeof(struct dataset_metrics) },
                { JOB_ROWS, ARRAY_SIZE(JOB_ROWS), metrics->jobs, metrics->n_jobs, sizeof(struct job_metrics) },
                { RANK_ROWS, ARRAY_SIZE(RANK_ROWS), metrics->ranks, metrics->n_ranks, sizeof(struct rank_metrics) },
        };
        struct text text = { .bytes = NULL };

        write_build(&text, metrics->version);
        write_single(&text, PROCESS_ROWS, ARRAY_SIZE(PROCESS_ROWS), &metrics->process);
        write_single(&text, NODE_ROWS, ARRAY_SIZE(NODE_ROWS), &metrics->node);
        for (size_t i = 0; i < ARRAY_SIZE(FAMILIES); i++)
                write_family(&text, &FAMILIES[i]);
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
