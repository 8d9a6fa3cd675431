#include "client/dlctl/control.h"

#include <errno.h>
#include <stdlib.h>

#include "client/lib/connection.h"

#define ANSWER_TIMEOUT_MS 5000 /* the daemon answers such questions from memory */

struct control {
        struct dli_connection connection;
};

int control_print(const struct context *context, Dlp__Request *request, Dlp__Reply__BodyCase body,
                  cJSON *(*describe)(const Dlp__Reply *reply)) {
        struct control *control;
        Dlp__Reply *reply;
        cJSON *record;
        int r;

        r = control_open(context, &control);
        if (r != EXIT_DONE)
                return r;
        r = control_ask(control, request, body, &reply);
        if (r == EXIT_DONE) {
                record = describe(reply);
                output_record(context->format, record);
                cJSON_Delete(record);
                dlp__reply__free_unpacked(reply, NULL);
        }
        control_close(control);
        return r;
}

int exit_code_of(int error) {
        switch (error) {
        case -ECONNREFUSED:
        case -ECONNRESET:
        case -ETIMEDOUT:
                return EXIT_UNREACHABLE;
        case -EINTR:
                return EXIT_INTERRUPTED;
        default:
                return EXIT_REFUSED;
        }
}

int control_open(const struct context *context, struct control **ret_control) {
        struct control *control = calloc(1, sizeof(*control));
        struct why reason;
        int r;

        if (!control)
                return fail(EXIT_REFUSED, "no memory");
        r = dli_connection_open(&control->connection, context->socket, "dlctl " DLP_VERSION, &reason);
        if (r < 0) {
                control_close(control);
                return fail(exit_code_of(r), "%s", reason.text);
        }
        *ret_control = control;
        return EXIT_DONE;
}

void control_close(struct control *control) {
        dli_connection_close(&control->connection);
        free(control);
}

int control_ask(struct control *control, Dlp__Request *request, Dlp__Reply__BodyCase body, Dlp__Reply **ret_reply) {
        struct why reason;
        Dlp__Reply *reply;
        int r;

        r = dli_connection_call(&control->connection, request, ANSWER_TIMEOUT_MS, &reason, &reply, NULL, 0);
        if (r != 0) /* "ask again" is an error too: a question about the current state is asked once */
                return fail(exit_code_of(r), "%s", reason.text);
        if (reply->body_case != body) {
                dlp__reply__free_unpacked(reply, NULL);
                return fail(EXIT_REFUSED, "the daemon at %s answered another question", control->connection.path);
        }
        *ret_reply = reply;
        return EXIT_DONE;
}
