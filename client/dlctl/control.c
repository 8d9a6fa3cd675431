#include "client/dlctl/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "client/dlctl/waiting.h"
#include "client/lib/client_clock.h"
#include "client/lib/daemon/daemon_find.h"
#include "client/lib/daemon/daemon_sources.h"
#include "client/lib/progress/progress_message.h"
#include "proto/version.h"

#define ANSWER_TIMEOUT_MS 5000 /* the daemon answers such questions from memory */
#define CLIENT            "dlctl " DLP_FULL_VERSION

struct control {
        struct dli_connection connection;
        struct dli_daemon daemon;
        struct dli_sources sources;
        char *name; /* of the dataset that it was opened for */
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

/* The daemon that was named; else the node's, if it can be reached; else the private one, if there is one. */
static int connect_to(const struct context *context, struct control *control, struct why *reason) {
        const char *variable = getenv("DATALOADERD_SOCKET");
        struct why private_reason;
        int r;

        control->daemon.kind = context->socket || (variable && *variable) ? DLI_DAEMON_GIVEN : DLI_DAEMON_SYSTEM;
        if (context->is_private) {
                control->daemon.kind = DLI_DAEMON_PRIVATE;
                return dli_daemon_connect_private(&control->connection, CLIENT, reason);
        }
        r = dli_connection_open(&control->connection, context->socket, CLIENT, reason);
        if (r != -ECONNREFUSED || control->daemon.kind == DLI_DAEMON_GIVEN)
                return r;
        dli_connection_close(&control->connection);
        if (dli_daemon_connect_private(&control->connection, CLIENT, &private_reason) < 0)
                return why_set(
                        reason, r,
                        "no daemon runs for this user: neither the node's (%s) nor a private one, which a loader with "
                        "a path would start (dlctl read /path/of/a/dataset)",
                        dlp_socket_system());
        control->daemon.kind = DLI_DAEMON_PRIVATE;
        return 0;
}

static struct control *control_new(void) {
        struct control *control = calloc(1, sizeof(*control));

        if (!control) {
                fail(EXIT_REFUSED, "no memory");
                return NULL;
        }
        control->daemon = DLI_DAEMON_NONE;
        control->connection = (struct dli_connection){ .socket = -1, .sent_fd = -1 };
        return control;
}

int control_open(const struct context *context, struct control **ret_control) {
        struct control *control = control_new();
        struct why reason;
        int r;

        if (!control)
                return EXIT_REFUSED;
        r = connect_to(context, control, &reason);
        if (r < 0) {
                control_close(control);
                return fail(exit_code_of(r), "%s", reason.text);
        }
        *ret_control = control;
        return EXIT_DONE;
}

void control_close(struct control *control) {
        dli_connection_close(&control->connection);
        dli_sources_free(&control->sources);
        free(control->name);
        free(control);
}

bool control_wait_end(struct control *control, int timeout_ms) {
        uint64_t deadline_ns = dli_deadline(timeout_ms);
        struct why reason; /* not used: whether it has ended is what counts */

        while (dli_connection_wait(&control->connection, deadline_ns) > 0)
                if (dli_connection_drain(&control->connection, &reason) < 0)
                        return true;
        return false;
}

struct dli_connection *control_connection(struct control *control) {
        return &control->connection;
}

const char *control_socket(const struct control *control) {
        return control->connection.path;
}

/* ---- a dataset ------------------------------------------------------------------------------------------------- */

static void control_show(const Dlp__DatasetsReply *reply) {
        const Dlp__Progress *message = reply->n_datasets == 1 ? reply->datasets[0]->progress : NULL;
        struct dlp_progress progress;
        char text[DLP_TEXT_MAX];

        if (!message)
                return;
        dli_progress_take(message, &progress);
        waiting_draw(reply->datasets[0]->name, &progress);
        if (!waiting_is_drawn())
                waiting_say(dlp_progress_sentence(&progress, text));
}

/* Returns an exit code; *ret_is_open tells whether there is nothing to wait for. */
static int ask_for(struct control *control, bool *ret_is_open) {
        Dlp__DatasetsRequest body = DLP__DATASETS_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        Dlp__Reply *reply;
        int r;

        body.sources = control->sources.pointers;
        body.n_sources = control->sources.datasets.n;
        request.body_case = DLP__REQUEST__BODY_DATASETS;
        request.datasets = &body;
        r = control_ask(control, &request, DLP__REPLY__BODY_DATASETS, &reply);
        if (r != EXIT_DONE)
                return r;
        control_show(reply->datasets);
        *ret_is_open = reply->datasets->n_datasets != 1 || strcmp(reply->datasets->datasets[0]->state, "indexing") != 0;
        free(control->name);
        control->name = strdup(reply->datasets->n_datasets == 1 ? reply->datasets->datasets[0]->name : "");
        dlp__reply__free_unpacked(reply, NULL);
        return control->name ? EXIT_DONE : fail(EXIT_REFUSED, "no memory");
}

static int open_path(const struct context *context, struct control *control, const char *operand) {
        const struct timespec tick = { .tv_nsec = 50000000 };
        bool is_open = false;
        struct why reason;
        int r;

        r = dli_sources_make(operand, &control->sources, &reason);
        if (r == 0 && context->is_private)
                r = dli_daemon_connect_path(&control->daemon, &control->connection, CLIENT, &reason);
        else if (r == 0)
                r = dli_daemon_connect(&control->daemon, &control->connection, context->socket, true, CLIENT, &reason);
        if (r < 0)
                return fail(exit_code_of(r), "%s", reason.text);
        for (r = ask_for(control, &is_open); r == EXIT_DONE && !is_open; r = ask_for(control, &is_open))
                nanosleep(&tick, NULL);
        waiting_end();
        return r;
}

int control_open_dataset(const struct context *context, const char *operand, struct control **ret_control,
                         const char **ret_name) {
        struct control *control;
        int r;

        if (!operand || !strchr(operand, '/')) {
                r = control_open(context, ret_control);
                *ret_name = operand ? operand : "";
                return r;
        }
        control = control_new();
        if (!control)
                return EXIT_REFUSED;
        r = open_path(context, control, operand);
        if (r != EXIT_DONE) {
                control_close(control);
                return r;
        }
        *ret_control = control;
        *ret_name = control->name;
        return EXIT_DONE;
}

int control_choose(struct context *context, const char *operand) {
        static char socket[DLP_SOCKET_PATH_MAX + 1];
        struct control *control;
        const char *name;
        int r;

        if (context->socket || (!context->is_private && !strchr(operand, '/')))
                return EXIT_DONE;
        r = control_open_dataset(context, operand, &control, &name);
        if (r != EXIT_DONE)
                return r;
        snprintf(socket, sizeof(socket), "%s", control->connection.path);
        context->socket = socket;
        control_close(control);
        return EXIT_DONE;
}

/* ---- questions ------------------------------------------------------------------------------------------------- */

int control_ask(struct control *control, Dlp__Request *request, Dlp__Reply__BodyCase body, Dlp__Reply **ret_reply) {
        return control_ask_for(control, request, body, ret_reply, NULL, 0);
}

int control_ask_for(struct control *control, Dlp__Request *request, Dlp__Reply__BodyCase body, Dlp__Reply **ret_reply,
                    int *ret_fds, size_t n_fds) {
        struct why reason;
        Dlp__Reply *reply;
        int r;

        r = dli_connection_call(&control->connection, request, ANSWER_TIMEOUT_MS, &reason, &reply, ret_fds, n_fds);
        if (r != 0) /* "ask again" is an error too: a question about the current state is asked once */
                return fail(exit_code_of(r), "%s", reason.text);
        if (reply->body_case != body) {
                for (size_t i = 0; i < n_fds; i++)
                        close(ret_fds[i]);
                dlp__reply__free_unpacked(reply, NULL);
                return fail(EXIT_REFUSED, "the daemon at %s answered another question", control->connection.path);
        }
        *ret_reply = reply;
        return EXIT_DONE;
}
