/* Other forms of data than folders: tables, listings, records, and streams, one of which is a pipe. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/data/files/cuts.h"
#include "tests/faults/points.h"
#include "tests/faults/scenarios.h"
#include "tests/faults/scene.h"

/* A dataset below tests/vectors, or of those that the scene made, and what a job reads of it. */
struct form {
        const char *name, *settings, *pipeline;
        uint64_t n_samples;
        bool is_made;
};

/* Reads an epoch. There may be an error that is said, but never another number of samples. */
static void read_all(struct scene *scene, const struct dlc_options *options, uint64_t n_expected, bool must_work) {
        struct dlc_loader *loader = scene_open(scene, options, must_work);
        const struct dlc_batch *batch;
        uint64_t n_samples = 0;
        int r;

        if (!loader)
                return;
        while ((r = dlc_next(loader, 20000, &batch)) == 0) {
                n_samples += batch->n_samples;
                dlc_release(loader, batch);
        }
        if (r < 0)
                scene_check_failure(scene, "next", r, dlc_error(loader), must_work);
        else if (n_samples != n_expected)
                scene_problem(scene, "%s: %llu samples, and not %llu", options->dataset, (unsigned long long)n_samples,
                              (unsigned long long)n_expected);
        dlc_close(loader);
}

static void read_forms(struct scene *scene, const struct form *forms, size_t n, bool must_work) {
        for (size_t i = 0; i < n; i++) {
                struct dlc_options options = scene_options(scene, SCENE_FILES);

                options.dataset = forms[i].name;
                options.pipeline = forms[i].pipeline;
                options.batch_size = 16;
                read_all(scene, &options, forms[i].n_samples, must_work);
        }
}

static void serve_forms(struct scene *scene, const struct form *forms, size_t n) {
        char vectors[PATH_MAX], more[8 * PATH_MAX];
        size_t n_bytes = 0;

        if (!realpath("tests/vectors", vectors)) {
                scene_problem(scene, "tests/vectors is not there");
                return;
        }
        for (size_t i = 0; i < n; i++)
                n_bytes += (size_t)snprintf(more + n_bytes, sizeof(more) - n_bytes,
                                            "dataset \"%s\" { path = \"%s/%s }\n", forms[i].name,
                                            forms[i].is_made ? scene->data : vectors, forms[i].settings);
        scene_configure(scene, more);
        scene_begin_trouble(scene);
        if (scene_start(scene, true)) {
                read_forms(scene, forms, n, false);
                scene_end_trouble(scene);
                read_forms(scene, forms, n, false); /* one may still wait for an opening that began in the trouble */
                read_forms(scene, forms, n, true);
                scene_must_serve(scene);
                return;
        }
        scene_end_trouble(scene);
        scene_check_status(scene, scene_stop(scene));
}

/* Parquet files, for which an index is made: several codecs and encodings, nulls, lists, pictures; and rows that an
 * indices file puts in order. */
void scenario_tables(struct scene *scene) {
        static const struct form FORMS[] = {
                { "lists", "parquet/lists-small-dictionary.parquet\"", NULL, 37 },
                { "texts", "parquet/strings-delta-v2.parquet\"", NULL, 37 },
                { "pictures", "parquet/hub\" split = \"train\"", "image: resize(12:12) views(2)", 12 },
                { "ordered", "arrow_indices/shuffled\"", NULL, 25 },
        };

        serve_forms(scene, FORMS, sizeof(FORMS) / sizeof(FORMS[0]));
}

/* What is read from its beginning to its end before it is served. */
void scenario_listings(struct scene *scene) {
        static const struct form FORMS[] = {
                { "rows", "listings/datasets.csv\"", "text: text; id", 40 },
                { "objects", "listings/datasets.jsonl\"", "text: text; id", 40 },
                { "lines", "listings/lines.txt\"", "text", 47 },
                { "records", "tfrecord/tokens\" format = \"tfrecord\"", NULL, 5 },
                { "many", "records\"", "record: raw", 12, .is_made = true },
                { "items", "mds/all\"", "caption: text; label", 8 },
                { "chunks", "litdata/records\"", "text: text; label", 7 },
                { "tokens", "megatron/small\" sequence_length = 3", "tokens", 5395 },
        };

        CUTS_LIMITS = (struct cuts_limits){ .n_threads = 2, .cut_bytes = 500, .long_bytes = 1 << 20 };
        serve_forms(scene, FORMS, sizeof(FORMS) / sizeof(FORMS[0]));
}

/* ---- streams --------------------------------------------------------------------------------------------------- */

static void read_stream(struct scene *scene, uint64_t n_samples, bool must_work) {
        struct dlc_options options = scene_options(scene, SCENE_FILES);

        options.dataset = "stream";
        options.shuffle_buffer = 10;
        options.n_epochs = 1;
        read_all(scene, &options, n_samples, must_work);
}

static void configure_stream(struct scene *scene, const char *folder, const char *name) {
        char more[PATH_MAX];

        snprintf(more, sizeof(more),
                 "dataset \"stream\" { path = \"%s/%s\" format = \"webdataset\" stream = \"yes\" "
                 "fields = \"image=jpg|png\" }",
                 folder, name);
        scene_configure(scene, more);
}

/* A folder with an archive and a compressed one. */
void scenario_streams(struct scene *scene) {
        configure_stream(scene, scene->data, "stream");
        scene_begin_trouble(scene);
        if (scene_start(scene, true)) {
                read_stream(scene, 2 * SCENE_SAMPLES, false);
                scene_end_trouble(scene);
                read_stream(scene, 2 * SCENE_SAMPLES, false); /* one may still wait, as above */
                read_stream(scene, 2 * SCENE_SAMPLES, true);
                scene_must_serve(scene);
                return;
        }
        scene_end_trouble(scene);
        scene_check_status(scene, scene_stop(scene));
}

/* Whoever writes to the pipe is another process. It waits until somebody reads; if that one gives up, it ends, and the
 * next attempt to read needs another one. */
static pid_t write_pipe(struct scene *scene, pid_t before) {
        char path[PATH_MAX], command[2 * PATH_MAX];
        pid_t pid;

        if (before > 0 && waitpid(before, NULL, WNOHANG) == 0)
                return before;
        snprintf(path, sizeof(path), "%s/pipe", scene->folder);
        snprintf(command, sizeof(command), "exec cat '%s/files.tar' >'%s' 2>/dev/null", scene->data, path);
        pid = fork();
        if (pid == 0) {
                execl("/bin/sh", "sh", "-c", command, (char *)NULL);
                _exit(127);
        }
        return pid;
}

void scenario_pipe(struct scene *scene) {
        char path[PATH_MAX];
        pid_t writer;

        snprintf(path, sizeof(path), "%s/pipe", scene->folder);
        if (mkfifo(path, 0600) < 0)
                scene_problem(scene, "no pipe can be made");
        configure_stream(scene, scene->folder, "pipe");
        writer = write_pipe(scene, 0);
        scene_begin_trouble(scene);
        if (scene_start(scene, true)) {
                read_stream(scene, SCENE_SAMPLES, false);
                scene_end_trouble(scene);
                writer = write_pipe(scene, writer);
                read_stream(scene, SCENE_SAMPLES, false);
                writer = write_pipe(scene, writer);
                read_stream(scene, SCENE_SAMPLES, true);
                scene_must_serve(scene);
        } else {
                scene_end_trouble(scene);
                scene_check_status(scene, scene_stop(scene));
        }
        if (writer > 0) {
                kill(writer, SIGKILL);
                waitpid(writer, NULL, 0);
        }
}
