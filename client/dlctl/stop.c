/* dlctl stop */

#include "client/dlctl/control.h"
#include "client/dlctl/dlctl_options.h"

#define END_TIMEOUT_MS 10000

int stop_run(struct context *context, const struct command *command, int argc, char **argv) {
        Dlp__StopRequest body = DLP__STOP_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        bool now = false;
        const struct option_row rows[] = {
                { "now", OPTION_FLAG, &now, NULL, "also while ranks are attached, which then start another one" },
        };
        struct control *control;
        Dlp__Reply *reply;
        cJSON *record;
        int r;

        r = options_parse(context, command, rows, 1, 0, argc, argv);
        if (r >= 0)
                return r;
        if (!context->socket)
                context->is_private = true; /* no other daemon ends in this way */
        r = control_open(context, &control);
        if (r != EXIT_DONE)
                return r;
        body.now = now;
        request.body_case = DLP__REQUEST__BODY_STOP;
        request.stop = &body;
        r = control_ask(control, &request, DLP__REPLY__BODY_STOP, &reply);
        if (r == EXIT_DONE) {
                control_wait_end(control, END_TIMEOUT_MS);
                record = record_new();
                record_text(record, "stopped", control_socket(control));
                record_number(record, "n_ranks", reply->stop->n_ranks);
                output_record(context->format, record);
                cJSON_Delete(record);
                dlp__reply__free_unpacked(reply, NULL);
        }
        control_close(control);
        return r;
}
