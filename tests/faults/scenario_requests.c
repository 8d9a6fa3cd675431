/* Questions to the daemon, as dlctl asks them, while a job runs; and workers that become more and fewer. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/lib/connection.h"
#include "proto/dataloader.pb-c.h"
#include "proto/trace.h"
#include "tests/faults/points.h"
#include "tests/faults/scenarios.h"
#include "tests/faults/scene.h"

static void ask(struct scene *scene, struct dli_connection *connection, const char *what, Dlp__Request *request) {
        struct why reason = { 0 };
        Dlp__Reply *reply;
        int r = dli_connection_call(connection, request, 20000, &reason, &reply, NULL, 0);

        if (r == 0)
                dlp__reply__free_unpacked(reply, NULL);
        else if (r < 0)
                scene_check_failure(scene, what, r, reason.text, false);
}

static void ask_all(struct scene *scene, struct dli_connection *connection) {
        Dlp__StatusRequest status = DLP__STATUS_REQUEST__INIT;
        Dlp__DatasetsRequest datasets = DLP__DATASETS_REQUEST__INIT;
        Dlp__JobsRequest jobs = DLP__JOBS_REQUEST__INIT;
        Dlp__ErrorsRequest errors = DLP__ERRORS_REQUEST__INIT;
        Dlp__MetricsRequest metrics = DLP__METRICS_REQUEST__INIT;
        Dlp__WorkersRequest workers = DLP__WORKERS_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        char photos[] = "photos";

        request.body_case = DLP__REQUEST__BODY_STATUS;
        request.status = &status;
        ask(scene, connection, "status", &request);
        request.body_case = DLP__REQUEST__BODY_DATASETS;
        request.datasets = &datasets;
        ask(scene, connection, "datasets", &request);
        request.body_case = DLP__REQUEST__BODY_JOBS;
        request.jobs = &jobs;
        ask(scene, connection, "jobs", &request);
        errors.dataset = photos;
        request.body_case = DLP__REQUEST__BODY_ERRORS;
        request.errors = &errors;
        ask(scene, connection, "errors", &request);
        request.body_case = DLP__REQUEST__BODY_METRICS;
        request.metrics = &metrics;
        ask(scene, connection, "metrics", &request);
        workers.change = true;
        request.body_case = DLP__REQUEST__BODY_WORKERS;
        request.workers = &workers;
        for (uint32_t n = 4; n > 0; n /= 2) {
                workers.n_workers = n;
                ask(scene, connection, "workers", &request);
        }
}

void scenario_requests(struct scene *scene) {
        struct dli_connection connection;
        struct why reason = { 0 };
        struct dlc_options options;
        struct dlc_loader *loader;
        int r;

        scene_begin(scene, true);
        options = scene_options(scene, SCENE_PHOTOS);
        if (dlc_open(&options, &loader) < 0) {
                scene_problem(scene, "open: %s", dlc_last_error());
                scene_must_serve(scene);
                return;
        }
        scene_begin_trouble(scene);
        r = dli_connection_open(&connection, scene->socket, "faults", &reason);
        if (r < 0)
                scene_check_failure(scene, "connect", r, reason.text, false);
        else
                ask_all(scene, &connection);
        dli_connection_close(&connection);
        scene_read_epoch(scene, SCENE_PHOTOS, loader, false);
        dlc_close(loader);
        scene_must_serve(scene);
}

/* ---- a trace ------------------------------------------------------------------------------------------------- */

/* Receives all that comes within ten seconds. */
static void receive_trace(int fd) {
        struct timeval limit = { .tv_sec = 10 };
        struct dlp_trace_event cells[64];

        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
        while (recv(fd, cells, sizeof(cells), 0) > 0)
                ;
        close(fd);
}

static void trace(struct scene *scene, struct dli_connection *connection) {
        Dlp__TraceRequest body = DLP__TRACE_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        struct why reason = { 0 };
        Dlp__Reply *reply;
        int fd, r;

        body.duration_ms = 100;
        request.body_case = DLP__REQUEST__BODY_TRACE;
        request.trace = &body;
        r = dli_connection_call(connection, &request, 20000, &reason, &reply, &fd, 1);
        if (r < 0)
                scene_check_failure(scene, "trace", r, reason.text, false);
        if (r != 0)
                return;
        dlp__reply__free_unpacked(reply, NULL);
        receive_trace(fd);
}

void scenario_trace(struct scene *scene) {
        struct dli_connection connection;
        struct why reason = { 0 };
        int r;

        scene_begin(scene, true);
        scene_begin_trouble(scene);
        r = dli_connection_open(&connection, scene->socket, "faults", &reason);
        if (r < 0)
                scene_check_failure(scene, "connect", r, reason.text, false);
        else
                trace(scene, &connection);
        dli_connection_close(&connection);
        scene_must_serve(scene);
}

/* ---- batches that are served again ----------------------------------------------------------------------------- */

static void ask_for_replay(struct scene *scene, const char *job) {
        Dlp__ReplayRequest body = DLP__REPLAY_REQUEST__INIT;
        Dlp__Request request = DLP__REQUEST__INIT;
        struct dli_connection connection;
        struct why reason = { 0 };
        int r;

        body.job = (char *)(uintptr_t)job;
        body.n_batches = 4;
        request.body_case = DLP__REQUEST__BODY_REPLAY;
        request.replay = &body;
        r = dli_connection_open(&connection, scene->socket, "faults", &reason);
        if (r < 0)
                scene_check_failure(scene, "connect", r, reason.text, false);
        else
                ask(scene, &connection, "replay", &request);
        dli_connection_close(&connection);
}

/* Whatever fails, the epochs' own samples all come, once; what comes again is whole. */
void scenario_replay(struct scene *scene) {
        struct dlc_options options;
        struct dlc_loader *loader;
        struct dlc_stats stats;
        int r = 0;

        scene_begin(scene, true);
        options = scene_options(scene, SCENE_FILES);
        options.batch_size = 1;
        options.n_slots = 2;
        if (dlc_open(&options, &loader) < 0) {
                scene_problem(scene, "open: %s", dlc_last_error());
                scene_must_serve(scene);
                return;
        }
        scene_begin_trouble(scene);
        ask_for_replay(scene, options.job);
        for (uint64_t i = 0; i < options.n_epochs && r >= 0; i++)
                r = scene_read_epoch(scene, SCENE_FILES, loader, false);
        dlc_get_stats(loader, &stats, sizeof(stats));
        if (r == DLC_END_OF_EPOCH && stats.n_samples != options.n_epochs * SCENE_SAMPLES)
                scene_problem(scene, "%llu samples of the epochs came", (unsigned long long)stats.n_samples);
        dlc_close(loader);
        scene_must_serve(scene);
}

/* ---- the metrics over HTTP ----------------------------------------------------------------------------------- */

/* Sends a request, and returns all that comes back within ten seconds, as text of *ret_n bytes. */
static char *answer_from(const char *path, size_t *ret_n) {
        static const char REQUEST[] = "GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n";
        static char text[1 << 20]; /* the scenario's own thread */
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct timeval limit = { .tv_sec = 10 };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        size_t n = 0;
        ssize_t more = 1;

        snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
        if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
            send(fd, REQUEST, sizeof(REQUEST) - 1, MSG_NOSIGNAL) > 0)
                while (more > 0 && n < sizeof(text) - 1) {
                        more = recv(fd, text + n, sizeof(text) - 1 - n, 0);
                        n += more > 0 ? (size_t)more : 0;
                }
        close(fd);
        text[n] = '\0';
        *ret_n = n;
        return text;
}

/* An answer is whole, or there is none. */
static void scrape(struct scene *scene, const char *path, bool must_work) {
        size_t n = 0;
        const char *text = answer_from(path, &n), *body = strstr(text, "\r\n\r\n"),
                   *length = strstr(text, "Content-Length: ");
        bool is_good = strncmp(text, "HTTP/1.1 200 ", 13) == 0;

        if (n == 0 && !must_work)
                return;
        if (!body || !length || strtoul(length + 16, NULL, 10) != n - (size_t)(body + 4 - text))
                scene_problem(scene, "metrics: an answer that is not whole: %.200s", text);
        else if (must_work ? !is_good : !is_good && strncmp(text, "HTTP/1.1 503 ", 13) != 0)
                scene_problem(scene, "metrics: %.200s", text);
        else if (is_good && !strstr(body, "\ndataloaderd_jobs "))
                scene_problem(scene, "metrics: a text without numbers: %.200s", body);
}

void scenario_metrics(struct scene *scene) {
        char path[sizeof(scene->folder) + 16], setting[sizeof(path) + 32];

        snprintf(path, sizeof(path), "%s/metrics", scene->folder);
        snprintf(setting, sizeof(setting), "metrics_socket = \"%s\"", path);
        scene_configure(scene, setting);
        if (!scene_start(scene, true))
                scene_problem(scene, "the daemon did not start");
        scene_read(scene, SCENE_FILES, 0, 1, true);
        scrape(scene, path, true);
        usleep(300000); /* the next text is a new one */
        scene_begin_trouble(scene);
        scrape(scene, path, false);
        scene_end_trouble(scene);
        usleep(1500000); /* a lack of descriptors is looked at again after a second */
        scrape(scene, path, true);
        scene_must_serve(scene);
}
