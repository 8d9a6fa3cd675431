/* dlctl status */

#include "client/dlctl/control.h"
#include "client/dlctl/dlctl_options.h"
#include "client/dlctl/listing/dlctl_listing.h"

static void add_facts(cJSON *record, const char *key, Dlp__Fact *const *facts, size_t n_facts) {
        cJSON *list = record_list(record, key);

        for (size_t i = 0; i < n_facts; i++) {
                record_fields(list_record(list), facts[i], "name value unit text");
        }
}

static void dlctl_status_add_node(cJSON *status, const Dlp__Node *node) {
        cJSON *record = record_inner(status, "node");

        record_fields(record, node,
                      "now_ns n_workers cpus_milli worker_ns worker_cpu_ns read_depth n_reading n_samples n_reads "
                      "n_bytes_read read_ns queued_ns");
        if (node->has_storage_bytes)
                record_fields(record, node, "storage_bytes");
}

/* "private" or "system", with its user if it knows the question. */
static int dlctl_status_add_daemon(cJSON *record, struct control *control) {
        Dlp__WhoRequest body = DLP__WHO_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        Dlp__Reply *reply;
        int r;

        request.body_case = DLP__REQUEST__BODY_WHO;
        request.who = &body;
        r = control_ask(control, &request, DLP__REPLY__BODY_WHO, &reply);
        if (r != EXIT_DONE)
                return r;
        record_text(record, "daemon", reply->who->is_private ? "private" : "configured");
        record_text(record, "socket", control_socket(control));
        record_fields(record, reply->who, "uid serves_paths");
        dlp__reply__free_unpacked(reply, NULL);
        return EXIT_DONE;
}

static void add_status(cJSON *record, const Dlp__StatusReply *status) {
        record_fields(record, status,
                      "version state pid up_seconds started_unix memory_limit_bytes memory_used_bytes n_workers "
                      "n_datasets n_jobs");
        if (status->node)
                dlctl_status_add_node(record, status->node);
        add_facts(record, "settings", status->settings, status->n_settings);
        add_facts(record, "obtained", status->obtained, status->n_obtained);
        add_facts(record, "counters", status->counters, status->n_counters);
        add_facts(record, "staging", status->staging, status->n_staging);
        add_facts(record, "plugins", status->plugins, status->n_plugins);
}

cJSON *status_record(const Dlp__StatusReply *status) {
        cJSON *record = record_new();

        add_status(record, status);
        return record;
}

int status_run(struct context *context, const struct command *command, int argc, char **argv) {
        Dlp__StatusRequest body = DLP__STATUS_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        struct control *control;
        Dlp__Reply *reply;
        cJSON *record;
        int r;

        r = options_parse(context, command, NULL, 0, 0, argc, argv);
        if (r >= 0)
                return r;
        r = control_open(context, &control);
        if (r != EXIT_DONE)
                return r;
        request.body_case = DLP__REQUEST__BODY_STATUS;
        request.status = &body;
        record = record_new();
        r = dlctl_status_add_daemon(record, control);
        if (r == EXIT_DONE)
                r = control_ask(control, &request, DLP__REPLY__BODY_STATUS, &reply);
        if (r == EXIT_DONE) {
                add_status(record, reply->status);
                output_record(context->format, record);
                dlp__reply__free_unpacked(reply, NULL);
        }
        cJSON_Delete(record);
        control_close(control);
        return r;
}
