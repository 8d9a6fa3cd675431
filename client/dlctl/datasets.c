/* dlctl datasets */

#include "client/dlctl/control.h"
#include "client/dlctl/options.h"

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

/* One page; *ret_next is where the next one begins, 0 after the last. */
static int ask_page(struct control *control, uint32_t first, cJSON *list, uint32_t *ret_next) {
        Dlp__DatasetsRequest body = DLP__DATASETS_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        Dlp__Reply *reply;
        int r;

        body.first = first;
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
        struct control *control;
        uint32_t first = 0, next = 0;
        cJSON *record, *list;
        int r;

        r = options_parse(context, command, NULL, 0, 0, argc, argv);
        if (r >= 0)
                return r;
        r = control_open(context, &control);
        if (r != EXIT_DONE)
                return r;

        record = record_new();
        list = record_list(record, "datasets");
        do {
                first = next;
                r = ask_page(control, first, list, &next);
        } while (r == EXIT_DONE && next > first); /* pages go forwards, or there is no end */
        if (r == EXIT_DONE)
                output_list(context->format, list, COLUMNS, "No datasets: the configuration names none.");
        cJSON_Delete(record);
        control_close(control);
        return r;
}
