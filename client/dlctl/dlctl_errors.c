/* dlctl errors */

#include "client/dlctl/dlctl_listing.h"

static const char *const COLUMNS[] = { "dataset", "index", "n_met", "first_unix", "last_unix", "field", "path", NULL };

void error_record(cJSON *list, const Dlp__SampleError *error) {
        record_fields(list_record(list), error, "dataset index path field error n_met first_unix last_unix");
}

static int ask_page(struct control *control, const char *operand, uint64_t first, cJSON *list, uint64_t *ret_next) {
        Dlp__ErrorsRequest body = DLP__ERRORS_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        Dlp__Reply *reply;
        int r;

        body.dataset = (char *)(uintptr_t)(operand ? operand : "");
        body.first = first;
        request.body_case = DLP__REQUEST__BODY_ERRORS;
        request.errors = &body;
        r = control_ask(control, &request, DLP__REPLY__BODY_ERRORS, &reply);
        if (r != EXIT_DONE)
                return r;
        for (size_t i = 0; i < reply->errors->n_errors; i++)
                error_record(list, reply->errors->errors[i]);
        *ret_next = reply->errors->next;
        dlp__reply__free_unpacked(reply, NULL);
        return EXIT_DONE;
}

int errors_run(struct context *context, const struct command *command, int argc, char **argv) {
        static const struct listing LISTING = {
                .name = "errors",
                .columns = COLUMNS,
                .empty = "No damaged samples: none has been met.",
                .ask_page = ask_page,
        };

        return listing_run(&LISTING, context, command, argc, argv);
}
