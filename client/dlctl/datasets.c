/* dlctl datasets */

#include "client/dlctl/listing.h"

static const char *const COLUMNS[] = { "name",    "state",    "format", "n_samples", "n_classes",
                                       "n_bytes", "n_errors", "path",   NULL };

static void add(cJSON *list, const Dlp__Dataset *dataset) {
        cJSON *record = list_record(list);

        record_text(record, "name", dataset->name);
        record_text(record, "path", dataset->path);
        record_text(record, "format", dataset->format);
        record_text(record, "state", dataset->state);
        record_number(record, "n_samples", dataset->n_samples);
        record_number(record, "n_classes", dataset->n_classes);
        record_number(record, "n_bytes", dataset->n_bytes);
        record_text(record, "digest", dataset->digest);
        record_text(record, "text", dataset->text);
        record_number(record, "n_errors", dataset->n_errors);
        record_text(record, "last_error", dataset->last_error);
}

static int ask_page(struct control *control, const char *operand, uint64_t first, cJSON *list, uint64_t *ret_next) {
        Dlp__DatasetsRequest body = DLP__DATASETS_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        Dlp__Reply *reply;
        int r;

        body.first = (uint32_t)first;
        request.body_case = DLP__REQUEST__BODY_DATASETS;
        request.datasets = &body;
        r = control_ask(control, &request, DLP__REPLY__BODY_DATASETS, &reply);
        if (r != EXIT_DONE)
                return r;
        for (size_t i = 0; i < reply->datasets->n_datasets; i++)
                add(list, reply->datasets->datasets[i]);
        *ret_next = reply->datasets->next;
        dlp__reply__free_unpacked(reply, NULL);
        return EXIT_DONE;
}

int datasets_run(struct context *context, const struct command *command, int argc, char **argv) {
        static const struct listing LISTING = {
                .name = "datasets",
                .columns = COLUMNS,
                .empty = "No datasets: the configuration names none.",
                .ask_page = ask_page,
        };

        return listing_run(&LISTING, context, command, argc, argv);
}
