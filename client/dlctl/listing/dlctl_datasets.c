/* dlctl datasets */

#include <stdio.h>
#include <string.h>

#include "client/dlctl/listing/dlctl_listing.h"

static const char *const COLUMNS[] = { "name",    "state",    "format", "n_samples", "n_classes",
                                       "n_bytes", "n_errors", "path",   NULL };

static uint64_t dlctl_datasets_percent(uint64_t n_done, uint64_t n_total) {
        uint64_t whole;

        if (n_done >= n_total)
                return n_total > 0 ? 100 : 0;
        whole = (uint64_t)((double)n_done / (double)n_total * 100);
        return whole < 100 ? whole : 99;
}

/* A list with one record or none: as text it becomes a table. */
static void dlctl_datasets_add_staging(cJSON *record, const Dlp__Staging *staging) {
        cJSON *list = record_list(record, "staging"), *row;

        if (!staging)
                return;
        row = list_record(list);
        record_fields(row, staging, "phase at_work");
        record_number(row, "percent", dlctl_datasets_percent(staging->n_bytes_done, staging->n_bytes_total));
        record_fields(row, staging,
                      "done_bytes=n_bytes_done total_bytes=n_bytes_total origin_bytes=n_bytes_origin "
                      "per_second_bytes=bytes_per_second");
        if (staging->seconds_left >= 0)
                record_fields(row, staging, "left_seconds=seconds_left");
        record_fields(row, staging,
                      "running_seconds=seconds n_files=n_files_total n_files_done n_retries n_errors n_nodes error");
        list = record_list(record, "staging_nodes");
        for (size_t i = 0; i < staging->n_listed; i++)
                record_fields(list_record(list), staging->listed[i],
                              "node=name done_bytes=n_bytes_done total_bytes=n_bytes_total "
                              "origin_bytes=n_bytes_origin n_retries n_errors doing");
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
                record_fields(row, field, "field=name kind dtype");
                record_text(row, "shape", shape);
                record_fields(row, field, "stored may_be_absent");
        }
}

/* As JSON each is a record of its own, after that of the dataset (datasets_run()). */
static void add_refused(cJSON *record, const Dlp__Dataset *dataset) {
        cJSON *list = record_list(record, "columns");

        for (size_t i = 0; i < dataset->n_refused; i++) {
                cJSON *row = list_record(list);

                record_text(row, "kind", "column");
                record_fields(row, dataset->refused[i], "name refused=reason");
        }
}

/* Where it lies, what of it is here, and what would make room. */
static void add_from(cJSON *record, const Dlp__Origin *from) {
        cJSON *list;

        record_fields(
                record, from,
                "origin=url origin_size_bytes=total_bytes n_origin_files=n_files cached_bytes cache_limit_bytes=cache_limit "
                "n_requests n_retries n_paused first_byte_ns? first_byte_late_ns? horizon_ns? "
                "per_second_bytes=bytes_per_second? room?");
        if (from->n_going == 0)
                return;
        list = record_list(record, "evicted_next");
        for (size_t i = 0; i < from->n_going; i++) {
                cJSON *row = list_record(list);

                record_fields(row, from->going[i], "file offset_bytes=offset size_bytes=bytes");
                if (from->going[i]->is_needed)
                        record_fields(row, from->going[i], "needed_ns");
                else
                        record_text(row, "needed", "by no job");
        }
}

void dataset_record(cJSON *list, const Dlp__Dataset *dataset) {
        cJSON *record = list_record(list);

        record_fields(record, dataset,
                      "name path format state n_samples n_classes n_bytes digest n_shards n_hidden_files=n_hidden?");
        if (dataset->is_stream)
                record_fields(record, dataset, "stream=is_stream ended=has_ended n_late");
        record_fields(record, dataset, "text n_errors last_error doubt?");
        record_facts(record, dataset->numbers, dataset->n_numbers);
        if (dataset->from)
                add_from(record, dataset->from);
        record_progress(record, dataset->progress);
        if (dataset->n_fields > 0)
                dlctl_datasets_add_fields(record, dataset);
        record_fields(record, dataset, "n_more_fields?");
        if (dataset->n_refused > 0)
                add_refused(record, dataset);
        record_fields(record, dataset, "n_more_columns=n_more_refused?");
        if (!*dataset->origin)
                return;
        record_fields(record, dataset, "origin version staged_unix?");
        dlctl_datasets_add_staging(record, dataset->staging);
}

static void add_datasets(cJSON *list, const Dlp__Reply *reply) {
        for (size_t i = 0; i < reply->datasets->n_datasets; i++)
                dataset_record(list, reply->datasets->datasets[i]);
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
                .question = ASK_DATASETS,
                .add = add_datasets,
                .apart = "columns",
                .check = check,
        };

        return listing_run(&LISTING, context, command, argc, argv);
}
