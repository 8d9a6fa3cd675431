/* The client's side: the calls of the library fail, the daemon's don't. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/faults/points.h"
#include "tests/faults/scenarios.h"
#include "tests/faults/scene.h"

static void begin_client(struct scene *scene) {
        scene_begin(scene, false);
        scene->client_counts = true;
        scene_begin_trouble(scene);
}

static void end_client(struct scene *scene) {
        scene->client_counts = false;
        scene_must_serve(scene);
}

/* With failures. NULL: it could not be opened, and the scenario has ended. */
static struct dlc_loader *open_client(struct scene *scene, const struct dlc_options *options) {
        struct dlc_loader *loader;
        int r;

        points_exempt = false;
        r = dlc_open(options, &loader);
        points_exempt = true;
        if (r == 0)
                return loader;
        scene_check_failure(scene, "open", r, dlc_last_error(), false);
        end_client(scene);
        return NULL;
}

void scenario_client(struct scene *scene) {
        begin_client(scene);
        scene_read(scene, SCENE_FILES, 0, 2, false);
        end_client(scene);
}

/* Also what is asked for beside batches. */
void scenario_client_asks(struct scene *scene) {
        static const uint64_t SAMPLES[] = { 0, 1 };
        const char *const *names;
        uint64_t labels[2];
        uint32_t dtype;
        struct dlc_options options;
        struct dlc_loader *loader;
        int64_t n;
        int r, fd;

        begin_client(scene);
        options = scene_options(scene, SCENE_FILES);
        loader = open_client(scene, &options);
        if (!loader)
                return;
        points_exempt = false;
        n = dlc_n_classes(loader);
        points_exempt = true;
        if (n < 0)
                scene_check_failure(scene, "n_classes", (int)n, dlc_error(loader), false);
        else if (n != 2)
                scene_problem(scene, "%lld classes", (long long)n);
        points_exempt = false;
        n = dlc_sample_names(loader, SAMPLES, 2, &names);
        points_exempt = true;
        if (n < 0)
                scene_check_failure(scene, "sample_names", (int)n, dlc_error(loader), false);
        else if (strcmp(names[0], names[1]) == 0)
                scene_problem(scene, "two samples are both %s", names[0]);
        points_exempt = false;
        n = dlc_sample_numbers(loader, "label", SAMPLES, 2, labels, &dtype);
        points_exempt = true;
        if (n < 0)
                scene_check_failure(scene, "sample_numbers", (int)n, dlc_error(loader), false);
        else if (dtype != DLC_INT64 || labels[0] > 1 || labels[1] > 1)
                scene_problem(scene, "the labels of two samples are of dtype %u and no classes", dtype);
        points_exempt = false;
        fd = dlc_fd(loader);
        points_exempt = true;
        if (fd < 0)
                scene_check_failure(scene, "fd", fd, dlc_error(loader), false);
        points_exempt = false;
        r = dlc_seek(loader, 1, 7);
        points_exempt = true;
        if (r < 0)
                scene_check_failure(scene, "seek", r, dlc_error(loader), false);
        else
                scene_read_epoch(scene, SCENE_FILES, loader, false);
        points_exempt = false;
        dlc_detach(loader);
        dlc_close(loader);
        points_exempt = true;
        end_client(scene);
}

/* A client with a device: what is left to it, and memory that it holds. */
void scenario_client_device(struct scene *scene) {
        struct dlc_options options;
        struct dlc_loader *loader;
        struct dlc_left_form form;
        const struct dlc_batch *batch;
        uint64_t n_bytes;
        void *base;
        int r;

        scene_begin(scene, true);
        scene->client_counts = true;
        scene_begin_trouble(scene);
        options = scene_options(scene, SCENE_PHOTOS);
        options.pipeline = "resize(12:12) to(float16)";
        options.leave_forms = true;
        options.near_device = "0000:00:00.0"; /* the daemon looks where that is */
        loader = open_client(scene, &options);
        if (!loader)
                return;
        if (dlc_get_left_form(loader, 0, &form, sizeof(form)) < 0 || form.table_bytes != 3 * 256 * 2)
                scene_problem(scene, "no form was left");
        points_exempt = false;
        r = dlc_hold_memory(loader, &base, &n_bytes);
        points_exempt = true;
        if (r < 0)
                scene_check_failure(scene, "hold_memory", r, dlc_error(loader), false);
        while ((r = dlc_next(loader, 20000, &batch)) == 0) {
                if (batch->tensors[0].dtype != DLC_UINT8)
                        scene_problem(scene, "a picture of dtype %u", batch->tensors[0].dtype);
                dlc_release(loader, batch);
        }
        if (r < 0)
                scene_check_failure(scene, "next", r, dlc_error(loader), false);
        dlc_close(loader);
        end_client(scene);
}

void scenario_client_fork(struct scene *scene) {
        struct dlc_options options;
        struct dlc_loader *loader;
        const struct dlc_batch *batch;
        int r, status;
        pid_t pid;

        begin_client(scene);
        options = scene_options(scene, SCENE_FILES);
        loader = open_client(scene, &options);
        if (!loader)
                return;
        pid = fork();
        if (pid == 0) {
                points_exempt = false;
                r = dlc_next(loader, 0, &batch);
                dlc_close(loader);
                _exit(r == -ECHILD ? 0 : 1);
        }
        waitpid(pid, &status, 0);
        if (status != 0)
                scene_problem(scene, "the child used the loader, or died: wait status %x", (unsigned)status);
        scene_read_epoch(scene, SCENE_FILES, loader, false);
        points_exempt = false;
        dlc_close(loader);
        points_exempt = true;
        end_client(scene);
}

/* The daemon goes and comes back in the middle of an epoch. */
void scenario_client_restart(struct scene *scene) {
        struct dlc_options options;
        struct dlc_loader *loader;
        const struct dlc_batch *batch;
        int r;

        begin_client(scene);
        options = scene_options(scene, SCENE_FILES);
        options.n_slots = 2;
        points_exempt = false;
        r = dlc_open(&options, &loader);
        if (r == 0) {
                r = dlc_next(loader, 20000, &batch);
                if (r == 0)
                        r = dlc_release(loader, batch);
                points_exempt = true;
                scene_check_status(scene, scene_stop(scene));
                if (!scene_start(scene, false))
                        scene_problem(scene, "the next daemon did not start");
                if (r == 0)
                        scene_read_epoch(scene, SCENE_FILES, loader, false);
                else if (r != -EINTR)
                        scene_check_failure(scene, "next", r, dlc_error(loader), false);
                points_exempt = false;
                dlc_close(loader);
        } else {
                points_exempt = true;
                scene_check_failure(scene, "open", r, dlc_last_error(), false);
        }
        points_exempt = true;
        end_client(scene);
}

static int do_once(struct scene *scene, bool must_work) {
        struct dlc_once_options options = DLC_ONCE_OPTIONS_INIT;
        struct dlc_once *once;
        int r;

        options.name = "work";
        options.dir = scene->folder;
        points_exempt = must_work;
        r = dlc_once_open(&options, &once);
        points_exempt = true;
        if (r < 0) {
                scene_check_failure(scene, "once_open", r, dlc_last_error(), must_work);
                return r;
        }
        points_exempt = must_work;
        do
                r = dlc_once_wait(once, 20000);
        while (r == -EINTR);
        points_exempt = true;
        if (r < 0) {
                scene_check_failure(scene, "once_wait", r, dlc_last_error(), must_work);
        } else if (r == DLC_ONCE_RUN) {
                points_exempt = must_work;
                r = dlc_once_end(once, DLC_ONCE_DONE, 0, NULL, "result");
                points_exempt = true;
                if (r < 0)
                        scene_check_failure(scene, "once_end", r, dlc_last_error(), must_work);
                else
                        r = DLC_ONCE_RUN;
        }
        points_exempt = must_work;
        dlc_once_close(once);
        points_exempt = true;
        return r;
}

/* Work that was told as done is not done again; work that was not is. */
void scenario_once(struct scene *scene) {
        int first, second;

        scene_begin_trouble(scene);
        first = do_once(scene, false);
        scene_end_trouble(scene);
        second = do_once(scene, true);
        if (first == DLC_ONCE_RUN && second != DLC_ONCE_DONE)
                scene_problem(scene, "the work was done, and is to be done again: %d", second);
        if (first < 0 && second != DLC_ONCE_RUN && second != DLC_ONCE_DONE)
                scene_problem(scene, "the work was not done, and the next one is told %d", second);
}
