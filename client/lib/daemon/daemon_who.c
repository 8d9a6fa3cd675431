#include "client/lib/daemon/daemon_who.h"

/* dlc_get_daemon(): which daemon would serve this user. Nothing is started for the question. */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "client/include/dlclient.h"
#include "client/lib/daemon/daemon_find.h"
#include "client/lib/daemon/daemon_program.h"
#include "proto/base/cleanup.h"

#define ANSWER_TIMEOUT_MS 5000 /* it answers such questions from memory */
#define VERSION_MAX       64u
#define CLIENT            "libdlclient"

struct texts {
        char socket[DLP_PRIVATE_PATH_MAX];
        char log[DLP_PRIVATE_PATH_MAX];
        char version[VERSION_MAX];
        char program[PATH_MAX];
        struct why absence;
};

/* Puts a question whose answer is of the kind `body`. */
static int daemon_who_ask(struct dli_connection *connection, Dlp__Request *request, Dlp__Reply__BodyCase body,
                          struct why *reason, Dlp__Reply **ret_reply) {
        Dlp__Reply *reply = NULL;
        int r = dli_connection_call(connection, request, ANSWER_TIMEOUT_MS, reason, &reply, NULL, 0);

        if (r != 0)
                return r < 0 ? r : why_set(reason, -EPROTO, "the daemon at %s is not ready", connection->path);
        if (reply->body_case != body) {
                dlp__reply__free_unpacked(reply, NULL);
                return why_set(reason, -EPROTO, "the daemon at %s answered another question", connection->path);
        }
        *ret_reply = reply;
        return 0;
}

int dli_who_ask(struct dli_connection *connection, struct dli_who *ret_who, struct why *reason) {
        Dlp__WhoRequest body = DLP__WHO_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        Dlp__Reply *reply;
        int r;

        request.body_case = DLP__REQUEST__BODY_WHO;
        request.who = &body;
        r = daemon_who_ask(connection, &request, DLP__REPLY__BODY_WHO, reason, &reply);
        if (r < 0)
                return r;
        *ret_who = (struct dli_who){ .is_private = reply->who->is_private, .serves_paths = reply->who->serves_paths };
        dlp__reply__free_unpacked(reply, NULL);
        return 0;
}

static int daemon_who_ask_status(struct dli_connection *connection, struct texts *texts, struct dlc_daemon *daemon,
                                 struct why *reason) {
        Dlp__StatusRequest body = DLP__STATUS_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        Dlp__Reply *reply;
        int r;

        request.body_case = DLP__REQUEST__BODY_STATUS;
        request.status = &body;
        r = daemon_who_ask(connection, &request, DLP__REPLY__BODY_STATUS, reason, &reply);
        if (r < 0)
                return r;
        snprintf(texts->version, sizeof(texts->version), "%s", reply->status->version);
        daemon->pid = reply->status->pid;
        daemon->up_seconds = reply->status->up_seconds;
        daemon->n_datasets = reply->status->n_datasets;
        daemon->n_jobs = reply->status->n_jobs;
        dlp__reply__free_unpacked(reply, NULL);
        return 0;
}

static int daemon_who_ask_all(struct dli_connection *connection, struct texts *texts, struct dlc_daemon *daemon,
                              struct why *reason) {
        struct dli_who who;
        int r = dli_who_ask(connection, &who, reason);

        if (r < 0)
                return r;
        daemon->is_private = who.is_private;
        daemon->serves_paths = who.serves_paths;
        return daemon_who_ask_status(connection, texts, daemon, reason);
}

static int ask_private(struct dli_connection *connection, struct texts *texts, struct dlc_daemon *daemon,
                       struct why *reason) {
        struct dlp_private place;
        struct why cannot_start;
        bool can_start = dli_program_find(texts->program, &cannot_start) == 0;
        int r = dli_daemon_connect_private(connection, CLIENT, reason);

        if (dlp_private_find(&place, &(struct why){ 0 }) < 0) /* connecting has failed for the same reason */
                return r;
        snprintf(texts->socket, sizeof(texts->socket), "%s", place.socket);
        snprintf(texts->log, sizeof(texts->log), "%s", place.log);
        if (r == 0)
                r = daemon_who_ask_all(connection, texts, daemon, reason);
        else if (r == -ECONNREFUSED && !can_start)
                *reason = cannot_start;
        if (!can_start)
                texts->program[0] = '\0';
        return r;
}

static int ask_node(struct dli_connection *connection, struct texts *texts, struct dlc_daemon *daemon,
                    struct why *reason) {
        int r = dli_connection_open(connection, NULL, CLIENT, reason);

        snprintf(texts->socket, sizeof(texts->socket), "%s", dlp_socket_default());
        return r < 0 ? r : daemon_who_ask_all(connection, texts, daemon, reason);
}

int dlc_get_daemon(bool is_private, struct dlc_daemon *ret_daemon, size_t size) {
        static _Thread_local struct texts texts;
        struct dlc_daemon daemon = {
                .socket = texts.socket, .version = texts.version, .log = texts.log, .program = texts.program
        };
        struct dli_connection connection;
        struct why reason;
        int r;

        if (!ret_daemon)
                return dli_refuse(-EINVAL, "dlc_get_daemon: ret_daemon must not be NULL");
        texts = (struct texts){ 0 };
        r = is_private ? ask_private(&connection, &texts, &daemon, &reason)
                       : ask_node(&connection, &texts, &daemon, &reason);
        dli_connection_close(&connection);
        if (r == -EINTR || r == -ENOMEM)
                return dli_report(&reason, r);
        if (r < 0)
                texts.absence = reason;
        daemon.absence = r < 0 ? texts.absence.text : NULL;
        if (size > sizeof(daemon))
                memset((uint8_t *)ret_daemon + sizeof(daemon), 0, size - sizeof(daemon));
        memcpy(ret_daemon, &daemon, size < sizeof(daemon) ? size : sizeof(daemon));
        return 0;
}
