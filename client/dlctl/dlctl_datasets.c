/* dlctl datasets */

#include <stdio.h>
#include <string.h>

#include "client/dlctl/dlctl_listing.h"

static const char *const COLUMNS[] = { "name",    "state",    "format", "n_samples", "n_classes",
                                       "n_bytes", "n_errors", "path",   NULL };

static uint64_t dlctl_datasets_percent(uint64_t n_done, uint64_t n_total) {
        uint64_t whole;

        if (n_done >= n_total)
                return n_total > 0 ? 100 : 0;
        whole = (uint64_t)((double)n_done / (double)n_total * 100);
        return whole < 100 ? whole : 99;
}

static void dlctl_datasets_add_nodes(cJSON *record, const Dlp__Staging *staging) {
        cJSON *list = record_list(record, "staging_nodes");

        for (size_t i = 0; i < staging->n_listed; i++) {
                const Dlp__StagingNode *node = staging->listed[i];
                cJSON *row = list_record(list);

                record_text(row, "node", node->name);
                record_number(row, "done_bytes", node->n_bytes_done);
                record_number(row, "total_bytes", node->n_bytes_total);
                record_number(row, "origin_bytes", node->n_bytes_origin);
                record_number(row, "n_retries", node->n_retries);
                record_number(row, "n_errors", node->n_errors);
                record_text(row, "doing", node->doing);
        }
}

/* A list with one record or none: as text it becomes a table. */
static void dlctl_datasets_add_staging(cJSON *record, const Dlp__Staging *staging) {
        cJSON *list = record_list(record, "staging"), *row;

        if (!staging)
                return;
        row = list_record(list);
        record_text(row, "phase", staging->phase);
        record_bool(row, "at_work", staging->at_work);
        record_number(row, "percent", dlctl_datasets_percent(staging->n_bytes_done, staging->n_bytes_total));
        record_number(row, "done_bytes", staging->n_bytes_done);
        record_number(row, "total_bytes", staging->n_bytes_total);
        record_number(row, "origin_bytes", staging->n_bytes_origin);
        record_number(row, "per_second_bytes", staging->bytes_per_second);
        if (staging->seconds_left >= 0)
                record_number(row, "left_seconds", (uint64_t)staging->seconds_left);
        record_number(row, "running_seconds", staging->seconds);
        record_number(row, "n_files", staging->n_files_total);
        record_number(row, "n_files_done", staging->n_files_done);
        record_number(row, "n_retries", staging->n_retries);
        record_number(row, "n_errors", staging->n_errors);
        record_number(row, "n_nodes", staging->n_nodes);
        record_text(row, "error", staging->error);
        dlctl_datasets_add_nodes(record, staging);
}

/* "[-1,4]" */
static void shape_text(const Dlp__Field *field, char *text, size_t size) {
        size_t n = (size_t)snprintf(text, size, "[");

        for (size_t i = 0; i < field->n_shape && n < size; i++)
                n += (size_t)snprintf(text + n, size - n, "%s%lld", i ? "," : "", (long long)field->shape[i]);
        if (n < size)
                snprintf(text + n, size - n, "]");
}

static void dlctl_datasets_add_fields(cJSON *record, const Dlp__Dataset *dataset) {
        cJSON *list = record_list(record, "fields");

        for (size_t i = 0; i < dataset->n_fields; i++) {
                const Dlp__Field *field = dataset->fields[i];
                cJSON *row = list_record(list);
                char shape[160];

                shape_text(field, shape, sizeof(shape));
                record_text(row, "field", field->name);
                record_text(row, "kind", field->kind);
                record_text(row, "dtype", field->dtype);
                record_text(row, "shape", shape);
                record_bool(row, "stored", field->stored);
                record_bool(row, "may_be_absent", field->may_be_absent);
        }
}

/* As JSON each is a record of its own, after that of the dataset (datasets_run()). */
static void add_refused(cJSON *record, const Dlp__Dataset *dataset) {
        cJSON *list = record_list(record, "columns");

        for (size_t i = 0; i < dataset->n_refused; i++) {
                cJSON *row = list_record(list);

                record_text(row, "kind", "column");
                record_text(row, "name", dataset->refused[i]->name);
                record_text(row, "refused", dataset->refused[i]->reason);
        }
}

void dataset_record(cJSON *list, const Dlp__Dataset *dataset) {
        cJSON *record = list_record(list);

        record_text(record, "name", dataset->name);
        record_text(record, "path", dataset->path);
        record_text(record, "format", dataset->format);
        record_text(record, "state", dataset->state);
        record_number(record, "n_samples", dataset->n_samples);
        record_number(record, "n_classes", dataset->n_classes);
        record_number(record, "n_bytes", dataset->n_bytes);
        record_text(record, "digest", dataset->digest);
        record_number(record, "n_shards", dataset->n_shards);
        if (dataset->n_hidden > 0)
                record_number(record, "n_hidden_files", dataset->n_hidden);
        if (dataset->is_stream) {
                record_bool(record, "stream", true);
                record_bool(record, "ended", dataset->has_ended);
                record_number(record, "n_late", dataset->n_late);
        }
        record_text(record, "text", dataset->text);
        record_number(record, "n_errors", dataset->n_errors);
        record_text(record, "last_error", dataset->last_error);
        if (dataset->doubt[0])
                record_text(record, "doubt", dataset->doubt);
        record_progress(record, dataset->progress);
        if (dataset->n_fields > 0)
                dlctl_datasets_add_fields(record, dataset);
        if (dataset->n_more_fields > 0)
                record_number(record, "n_more_fields", dataset->n_more_fields);
        if (dataset->n_refused > 0)
                add_refused(record, dataset);
        if (dataset->n_more_refused > 0)
                record_number(record, "n_more_columns", dataset->n_more_refused);
        if (!*dataset->origin)
                return;
        record_text(record, "origin", dataset->origin);
        record_text(record, "version", dataset->version);
        if (dataset->staged_unix > 0)
                record_number(record, "staged_unix", (uint64_t)dataset->staged_unix);
        dlctl_datasets_add_staging(record, dataset->staging);
}

static int ask_page(struct control *control, const char *operand, uint64_t first, cJSON *list, uint64_t *ret_next) {
        Dlp__DatasetsRequest body = DLP__DATASETS_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        Dlp__Reply *reply;
        int r;

        body.first = (uint32_t)first;
        body.name = (char *)(uintptr_t)(operand ? operand : "");
        request.body_case = DLP__REQUEST__BODY_DATASETS;
        request.datasets = &body;
        r = control_ask(control, &request, DLP__REPLY__BODY_DATASETS, &reply);
        if (r != EXIT_DONE)
                return r;
        for (size_t i = 0; i < reply->datasets->n_datasets; i++)
                dataset_record(list, reply->datasets->datasets[i]);
        *ret_next = reply->datasets->next;
        dlp__reply__free_unpacked(reply, NULL);
        return r;
}

/* Who asks for one dataset is told whether it can be served. */
static int check(const cJSON *list) {
        const cJSON *state = cJSON_GetObjectItemCaseSensitive(cJSON_GetArrayItem(list, 0), "state");

        return state && strcmp(cJSON_GetStringValue(state), "failed") == 0 ? EXIT_REFUSED : EXIT_DONE;
}

int datasets_run(struct context *context, const struct command *command, int argc, char **argv) {
        static const struct listing LISTING = {
                .name = "datasets",
                .columns = COLUMNS,
                .empty = "No datasets: the configuration names none.",
                .ask_page = ask_page,
                .apart = "columns",
                .check = check,
        };

        return listing_run(&LISTING, context, command, argc, argv);
}
