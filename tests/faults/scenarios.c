/* The scenarios: what goes on while something fails. Each ends with a clean client, for whom all must be well. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/faults/points.h"
#include "tests/faults/scene.h"

/* After the trouble: whoever comes now gets every sample, and the daemon ends as it should. */
static void must_serve(struct scene *scene) {
        scene_end_trouble(scene);
        if (atomic_load(&scene->daemon_ended))
                scene_problem(scene, "the daemon ended by itself");
        else
                scene_read(scene, SCENE_FILES, 0, 1, true), scene_read(scene, SCENE_PHOTOS, 0, 1, true);
        scene_check_status(scene, scene_stop(scene));
}

/* ---- the daemon ---------------------------------------------------------------------------------------------- */

/* It starts and serves, or ends with a status and a sentence. */
static void start(struct scene *scene) {
        scene_configure(scene, "");
        scene_begin_trouble(scene);
        if (scene_start(scene, true)) {
                scene_read(scene, SCENE_PHOTOS, 0, 1, false);
                must_serve(scene);
                return;
        }
        scene_end_trouble(scene);
        scene_check_status(scene, scene_stop(scene));
        if (scene->daemon_status == 0)
                scene_problem(scene, "the daemon did not start and ended with 0");
        if (!scene_start(scene, false))
                scene_problem(scene, "the next daemon did not start");
        else
                must_serve(scene);
}

/* A daemon that runs; and how all samples look that are served by it. */
static void begin(struct scene *scene, bool counts) {
        scene_configure(scene, "");
        if (!scene_start(scene, counts))
                scene_problem(scene, "the daemon did not start");
        scene_read(scene, SCENE_FILES, 0, 2, true);
        scene_read(scene, SCENE_PHOTOS, 0, 2, true);
}

static void serve(struct scene *scene, enum scene_data data) {
        begin(scene, true);
        scene_begin_trouble(scene);
        scene_read(scene, data, 0, 2, false);
        must_serve(scene);
}

static void raw(struct scene *scene) {
        serve(scene, SCENE_FILES);
}

static void pictures(struct scene *scene) {
        serve(scene, SCENE_PHOTOS);
}

const struct scenario SCENARIOS[] = {
        { "start", start },
        { "raw", raw },
        { "pictures", pictures },
};
const unsigned N_SCENARIOS = sizeof(SCENARIOS) / sizeof(SCENARIOS[0]);
