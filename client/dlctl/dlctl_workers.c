/* dlctl workers */

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/dlctl/control.h"
#include "client/dlctl/dlctl_options.h"

/* Returns -1 to continue, else the exit code. */
static int parse_operand(const char *text, Dlp__WorkersRequest *body) {
        unsigned long long n;
        char *end;

        errno = 0;
        n = strtoull(text, &end, 10);
        if (errno || *end || text[0] < '0' || text[0] > '9' || n > UINT32_MAX)
                return fail(EXIT_USAGE, "workers: \"%s\" is not allowed; write a number, 0 for as many as CPUs", text);
        body->change = true;
        body->n_workers = (uint32_t)n;
        return -1;
}

static cJSON *dlctl_workers_describe(const Dlp__Reply *reply) {
        const Dlp__WorkersReply *workers = reply->workers;
        cJSON *record = record_new();

        record_number(record, "n_workers", workers->n_workers);
        record_text(record, "text", workers->text);
        return record;
}

int workers_run(struct context *context, const struct command *command, int argc, char **argv) {
        Dlp__WorkersRequest body = DLP__WORKERS_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        int r;

        r = options_parse(context, command, NULL, 0, 0, argc, argv);
        if (r < 0 && optind < argc)
                r = parse_operand(argv[optind], &body);
        if (r >= 0)
                return r;

        request.body_case = DLP__REQUEST__BODY_WORKERS;
        request.workers = &body;
        return control_print(context, &request, DLP__REPLY__BODY_WORKERS, dlctl_workers_describe);
}
