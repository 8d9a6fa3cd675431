/* dlctl errors */

#include "client/dlctl/listing/dlctl_listing.h"

static const char *const COLUMNS[] = { "dataset", "index", "n_met", "first_unix", "last_unix", "field", "path", NULL };

void error_record(cJSON *list, const Dlp__SampleError *error) {
        record_fields(list_record(list), error, "dataset index path field error n_met first_unix last_unix");
}

static void add_errors(cJSON *list, const Dlp__Reply *reply) {
        for (size_t i = 0; i < reply->errors->n_errors; i++)
                error_record(list, reply->errors->errors[i]);
}

int errors_run(struct context *context, const struct command *command, int argc, char **argv) {
        static const struct listing LISTING = {
                .name = "errors",
                .columns = COLUMNS,
                .empty = "No damaged samples: none has been met.",
                .question = ASK_ERRORS,
                .add = add_errors,
        };

        return listing_run(&LISTING, context, command, argc, argv);
}
