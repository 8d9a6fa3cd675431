/* The table of scenarios, and those about the daemon. Each ends with a clean client, for whom all must be well. */
#include "tests/faults/scenarios.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/faults/points.h"

void scene_must_serve(struct scene *scene) {
        scene_end_trouble(scene);
        if (scene_mentioned("no format recognises it"))
                scene_problem(scene, "what failed was taken for an answer about the files");
        if (atomic_load(&scene->daemon_ended))
                scene_problem(scene, "the daemon ended by itself");
        else
                scene_read(scene, SCENE_FILES, 0, 1, true), scene_read(scene, SCENE_PHOTOS, 0, 1, true);
        scene_check_status(scene, scene_stop(scene));
}

/* ---- the daemon ---------------------------------------------------------------------------------------------- */

/* It starts and serves, or ends with a status and a sentence. */
static void start(struct scene *scene) {
        char metrics[sizeof(scene->folder) + 40];

        snprintf(metrics, sizeof(metrics), "metrics_socket = \"%s/metrics\"", scene->folder);
        scene_configure(scene, metrics);
        scene_begin_trouble(scene);
        if (scene_start(scene, true)) {
                scene_read(scene, SCENE_PHOTOS, 0, 1, false);
                scene_must_serve(scene);
                return;
        }
        scene_end_trouble(scene);
        scene_check_status(scene, scene_stop(scene));
        if (scene->daemon_status == 0)
                scene_problem(scene, "the daemon did not start and ended with 0");
        if (!scene_start(scene, false))
                scene_problem(scene, "the next daemon did not start");
        else
                scene_must_serve(scene);
}

void scene_begin(struct scene *scene, bool counts) {
        scene_configure(scene, "");
        if (!scene_start(scene, counts))
                scene_problem(scene, "the daemon did not start");
        scene_read(scene, SCENE_FILES, 0, 2, true);
        scene_read(scene, SCENE_PHOTOS, 0, 2, true);
}

/* Through the pool of reading threads: the way of machines without io_uring. */
static void threads(struct scene *scene) {
        scene_configure(scene, "reader = \"threads\"");
        if (!scene_start(scene, true))
                scene_problem(scene, "the daemon did not start");
        scene_read(scene, SCENE_FILES, 0, 2, true);
        scene_begin_trouble(scene);
        scene_read(scene, SCENE_FILES, 0, 2, false);
        scene_must_serve(scene);
}

static void serve(struct scene *scene, enum scene_data data) {
        scene_begin(scene, true);
        scene_begin_trouble(scene);
        scene_read(scene, data, 0, 2, false);
        scene_must_serve(scene);
}

static void raw(struct scene *scene) {
        serve(scene, SCENE_FILES);
}

static void pictures(struct scene *scene) {
        serve(scene, SCENE_PHOTOS);
}

/* Pictures as grey with alpha: two layers in memory. */
static void layers(struct scene *scene) {
        struct dlc_options options;
        const struct dlc_batch *batch;
        struct dlc_loader *loader;
        int r = 0;

        scene_begin(scene, true);
        options = scene_options(scene, SCENE_PHOTOS);
        options.pipeline = "decode(mode=LA) resize(12:12)";
        scene_begin_trouble(scene);
        loader = scene_open(scene, &options, false);
        while (loader && (r = dlc_next(loader, 20000, &batch)) == 0) {
                if (batch->tensors[0].shape[3] != 2)
                        scene_problem(scene, "a picture of %lld channels", (long long)batch->tensors[0].shape[3]);
                dlc_release(loader, batch);
        }
        if (r < 0)
                scene_check_failure(scene, "next", r, dlc_error(loader), false);
        dlc_close(loader);
        scene_must_serve(scene);
}

/* ---- samplers ------------------------------------------------------------------------------------------------- */

/* Two epochs of an order that is made of the trainer's column, which is sent as shared memory, and of the dataset's. */
static void read_sampled(struct scene *scene, bool must_work) {
        double weights[SCENE_SAMPLES];
        const struct dlc_column column = {
                .name = "w", .dtype = DLC_FLOAT64, .values = weights, .n_values = SCENE_SAMPLES
        };
        struct dlc_options options = scene_options(scene, SCENE_FILES);
        struct dlc_loader *loader;
        struct dlc_stats stats;
        int r;

        for (uint32_t i = 0; i < SCENE_SAMPLES; i++)
                weights[i] = 1 + i % 3;
        options.sampler = "weighted(column=w, n=30) stratified(column=label)";
        options.columns = &column;
        options.n_columns = 1;
        points_exempt = must_work;
        r = dlc_open(&options, &loader);
        points_exempt = true;
        if (r < 0) {
                scene_check_failure(scene, "open", r, dlc_last_error(), must_work);
                return;
        }
        r = scene_read_epoch(scene, SCENE_FILES, loader, must_work);
        if (r == DLC_END_OF_EPOCH)
                r = scene_read_epoch(scene, SCENE_FILES, loader, must_work);
        dlc_get_stats(loader, &stats, sizeof(stats));
        if (r == DLC_END_OF_EPOCH && stats.n_samples != 60)
                scene_problem(scene, "%llu samples came, not 60", (unsigned long long)stats.n_samples);
        dlc_close(loader);
}

static void sampler(struct scene *scene) {
        scene_begin(scene, true);
        scene_begin_trouble(scene);
        read_sampled(scene, false);
        scene_end_trouble(scene);
        read_sampled(scene, true);
        scene_must_serve(scene);
}

/* The configuration is read again under a running job: more workers, another dataset, then as it was. */
static void reload(struct scene *scene) {
        struct dlc_options options;
        struct dlc_loader *loader;
        char more[300];

        scene_begin(scene, true);
        options = scene_options(scene, SCENE_FILES);
        loader = scene_open(scene, &options, true);
        snprintf(more, sizeof(more), "dataset \"again\" { path = \"%s/files\" }", scene->data);
        scene_configure(scene, more);
        scene_begin_trouble(scene);
        kill(getpid(), SIGHUP);
        if (loader && scene_read_epoch(scene, SCENE_FILES, loader, false) == DLC_END_OF_EPOCH) {
                scene_configure(scene, "");
                kill(getpid(), SIGHUP);
                scene_read_epoch(scene, SCENE_FILES, loader, false);
        }
        dlc_close(loader);
        scene_must_serve(scene);
}

/* A damaged picture, and a job that has another one take its place or leaves it out. */
static void damage(struct scene *scene, const char *on_error) {
        struct dlc_options options;
        struct dlc_loader *loader;

        scene_begin(scene, true);
        options = scene_options(scene, SCENE_PHOTOS);
        options.dataset = "damaged";
        options.on_error = on_error;
        scene->tolerates_damage = true;
        scene_begin_trouble(scene);
        loader = scene_open(scene, &options, false);
        if (loader)
                while (scene_read_epoch(scene, SCENE_DAMAGED, loader, false) == DLC_END_OF_EPOCH &&
                       ++scene->n_epochs < 2)
                        ;
        dlc_close(loader);
        scene->tolerates_damage = false;
        scene_must_serve(scene);
}

static void substitute(struct scene *scene) {
        damage(scene, "substitute");
}

static void skip(struct scene *scene) {
        damage(scene, "skip");
}

static void seek(struct scene *scene) {
        struct dlc_options options;
        struct dlc_loader *loader;
        int r;

        scene_begin(scene, true);
        options = scene_options(scene, SCENE_PHOTOS);
        loader = scene_open(scene, &options, true);
        scene_begin_trouble(scene);
        if (loader) {
                r = dlc_seek(loader, 1, 5);
                if (r < 0)
                        scene_check_failure(scene, "seek", r, dlc_error(loader), false);
                else if (scene_read_epoch(scene, SCENE_PHOTOS, loader, false) == DLC_END_OF_EPOCH &&
                         (r = dlc_set_epoch(loader, 0)) < 0)
                        scene_check_failure(scene, "set_epoch", r, dlc_error(loader), false);
                else
                        scene_read_epoch(scene, SCENE_PHOTOS, loader, false);
        }
        dlc_close(loader);
        scene_must_serve(scene);
}

/* The daemon ends under a job and the next one takes it over; both of them fail. */
static void restart(struct scene *scene) {
        struct dlc_options options;
        struct dlc_loader *loader;
        const struct dlc_batch *batch;
        int r;

        scene_begin(scene, true);
        options = scene_options(scene, SCENE_PHOTOS);
        options.n_slots = 2;
        loader = scene_open(scene, &options, true);
        r = loader ? dlc_next(loader, 20000, &batch) : -1;
        if (r == 0)
                dlc_release(loader, batch);
        scene_begin_trouble(scene);
        scene_check_status(scene, scene_stop(scene));
        if (!scene_start(scene, true)) {
                scene_end_trouble(scene);
                scene_check_status(scene, scene_stop(scene));
                if (!scene_start(scene, false))
                        scene_problem(scene, "the next daemon did not start");
        }
        if (r == 0)
                scene_read_epoch(scene, SCENE_PHOTOS, loader, false);
        dlc_close(loader);
        scene_must_serve(scene);
}

/* It is told to end while it works. */
static void stop(struct scene *scene) {
        struct dlc_options options;
        struct dlc_loader *loader;

        scene_begin(scene, true);
        options = scene_options(scene, SCENE_PHOTOS);
        loader = scene_open(scene, &options, true);
        scene_begin_trouble(scene);
        scene_check_status(scene, scene_stop(scene));
        dlc_close(loader);
        if (!scene_start(scene, false))
                scene_problem(scene, "the next daemon did not start");
        scene_must_serve(scene);
}

/* A configuration that is wrong: it is said what, whatever else fails. */
static void configuration(struct scene *scene) {
        scene_configure(scene, "workrs = 3");
        scene_begin_trouble(scene);
        if (scene_start(scene, true))
                scene_problem(scene, "a setting that does not exist was taken");
        scene_check_status(scene, scene_stop(scene));
        if (scene->daemon_status == 0)
                scene_problem(scene, "a wrong configuration ended with 0");
        scene_end_trouble(scene);
}

const struct scenario SCENARIOS[] = {
        { "start", start },
        { "configuration", configuration },
        { "raw", raw },
        { "pictures", pictures },
        { "layers", layers },
        { "threads", threads },
        { "substitute", substitute },
        { "skip", skip },
        { "sampler", sampler },
        { "seek", seek },
        { "reload", reload },
        { "tables", scenario_tables },
        { "listings", scenario_listings },
        { "streams", scenario_streams },
        { "pipe", scenario_pipe },
        { "requests", scenario_requests },
        { "metrics", scenario_metrics },
        { "trace", scenario_trace },
        { "replay", scenario_replay },
        { "work", scenario_work },
        { "plugins-start", scenario_plugins_start },
        { "plugins", scenario_plugins },
        { "isolation-start", scenario_isolation_start },
        { "isolation", scenario_isolation },
        { "isolation-plugins", scenario_isolation_plugins },
        { "restart", restart },
        { "stop", stop },
        { "client", scenario_client },
        { "client-asks", scenario_client_asks },
        { "client-device", scenario_client_device },
        { "cuda", scenario_cuda },
        { "cuda-allocate", scenario_cuda_allocate },
        { "client-fork", scenario_client_fork },
        { "client-restart", scenario_client_restart },
        { "client-work", scenario_client_work },
        { "once", scenario_once },
        { "stage-folder", scenario_stage_folder },
        { "stage-http", scenario_stage_http },
        { "stage-packed", scenario_stage_packed },
        { "stage-archive", scenario_stage_archive },
        { "stage-converted", scenario_stage_converted },
};
const unsigned N_SCENARIOS = sizeof(SCENARIOS) / sizeof(SCENARIOS[0]);
