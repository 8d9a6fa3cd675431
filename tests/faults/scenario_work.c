/* Worker processes, on threads here: what the daemon calls for them, and what their library does. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/faults/points.h"
#include "tests/faults/scenarios.h"
#include "tests/faults/scene.h"

#define SLICE_MS 100

struct crew {
        struct scene *scene;
        const struct dlc_info *info;
        _Atomic bool is_over;
        struct dlc_work *supervisor; /* NULL: it could not connect */
        uint64_t n_processes;
};

static struct dlc_work *join_in(struct crew *crew, bool supervises) {
        struct dlc_work_options options = DLC_WORK_OPTIONS_INIT;
        struct dlc_work *work = NULL;
        int r;

        options.socket = crew->info->socket;
        options.ticket = crew->info->ticket;
        options.worker = supervises ? 0 : ++crew->n_processes;
        options.supervises = supervises;
        r = dlc_work_open(&options, &work);
        if (r < 0)
                scene_check_failure(crew->scene, "work_open", r, dlc_last_error(), false);
        return r < 0 ? NULL : work;
}

/* One process from its beginning to its end: it does nothing to its samples, and neither does the step after
 * it, so they are as without both. */
static void work_on(struct crew *crew, struct dlc_work *work) {
        const struct dlc_order *order;
        int r = 0;

        while ((r == 0 || r == -ETIMEDOUT || r == -EINTR) && !atomic_load(&crew->is_over)) {
                r = dlc_work_next(work, SLICE_MS, &order);
                if (r == 0)
                        r = dlc_work_done(work, NULL);
        }
        if (r < 0 && r != -ETIMEDOUT && r != -EINTR)
                scene_check_failure(crew->scene, "work", r, dlc_last_error(), false);
}

static void *crew_main(void *userdata) {
        struct crew *crew = userdata;
        struct dlc_work *work;

        points_exempt = !crew->scene->client_counts;
        crew->supervisor = join_in(crew, true);
        while (!atomic_load(&crew->is_over)) {
                work = join_in(crew, false);
                if (work)
                        work_on(crew, work);
                dlc_work_close(work);
                if (crew->supervisor)
                        dlc_work_ended(crew->supervisor, crew->n_processes, "it ended", false);
                if (!work)
                        usleep(10000);
        }
        dlc_work_close(crew->supervisor);
        return NULL;
}

static void read_with_functions(struct scene *scene) {
        struct dlc_options options = scene_options(scene, SCENE_PHOTOS);
        struct crew crew = { .scene = scene };
        struct dlc_loader *loader;
        char pipeline[200];
        pthread_t thread;

        snprintf(pipeline, sizeof(pipeline), "%s python(my) hflip(0)", options.pipeline);
        options.pipeline = pipeline;
        loader = scene_open(scene, &options, false);
        if (!loader)
                return;
        crew.info = dlc_get_info(loader);
        if (pthread_create(&thread, NULL, crew_main, &crew) != 0) {
                scene_problem(scene, "no thread");
        } else {
                scene_read_epoch(scene, SCENE_PHOTOS, loader, false);
                atomic_store(&crew.is_over, true);
                pthread_join(thread, NULL);
        }
        dlc_close(loader);
}

void scenario_work(struct scene *scene) {
        scene_begin(scene, true);
        scene_begin_trouble(scene);
        read_with_functions(scene);
        scene_must_serve(scene);
}

void scenario_client_work(struct scene *scene) {
        scene_begin(scene, false);
        scene->client_counts = true;
        scene_begin_trouble(scene);
        read_with_functions(scene);
        scene->client_counts = false;
        scene_must_serve(scene);
}
