/* Questions to the daemon, as dlctl asks them, while a job runs; and workers that become more and fewer. */
#include <errno.h>
#include <stdio.h>

#include "client/lib/connection.h"
#include "proto/dataloader.pb-c.h"
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
