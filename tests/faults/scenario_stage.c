/* Staging on one node, from a folder, from an archive and over http. Whatever fails, the next run ends well and all is
 * there. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sanitizer/lsan_interface.h>

#include "tests/faults/points.h"
#include "tests/faults/scenarios.h"
#include "tests/faults/scene.h"
#include "tests/faults/scene_origin.h"

int dataloaderd_stage_main(int argc, char **argv);

/* The program ends as a process does, so it runs in one. Returns its exit status, -1 if it crashed or leaked. */
static int run(struct scene *scene, bool counts, const char *option) {
        char name[] = "dataloaderd-stage", config[] = "-c", format[] = "--format", quiet[] = "quiet", dataset[] = "d";
        char more[16], *arguments[] = { name, config, scene->config, format, quiet, dataset, NULL, NULL };
        int n = 6, status;
        pid_t pid;

        if (option) {
                snprintf(more, sizeof(more), "%s", option);
                arguments[n++] = more;
        }
        fflush(NULL);
        pid = fork();
        if (pid == 0) {
                optind = 0;
                if (counts) /* here: a fork() beside a thread that is just beginning may hang in the sanitizer */
                        scene_begin_trouble(scene);
                points_exempt = !counts;
                status = dataloaderd_stage_main(n, arguments);
                points_exempt = true;
                scene_end_trouble(scene);
                if (__lsan_do_recoverable_leak_check()) {
                        fprintf(stderr, "PROBLEM: memory leaks\n");
                        _exit(99);
                }
                _exit(status);
        }
        waitpid(pid, &status, 0);
        if (!WIFEXITED(status) || WEXITSTATUS(status) == 99 || WEXITSTATUS(status) == 1) {
                scene_problem(scene, "dataloaderd-stage: wait status %x", (unsigned)status);
                return -1;
        }
        return WEXITSTATUS(status);
}

static void check(struct scene *scene, int status) {
        static const int NAMED[] = { 0, 69, 71, 75, 76, 78 };
        bool known = status < 0;

        for (size_t i = 0; i < sizeof(NAMED) / sizeof(NAMED[0]); i++)
                known |= status == NAMED[i];
        if (!known)
                scene_problem(scene, "dataloaderd-stage ended with %d, which its manual does not name", status);
        if (status > 0 && !scene_said("error") && !scene_said("dataloaderd-stage: "))
                scene_problem(scene, "dataloaderd-stage ended with %d and did not say why", status);
        if (status > 0 && !points_hit())
                scene_problem(scene, "dataloaderd-stage ended with %d, and nothing had failed", status);
}

static void stage_from(struct scene *scene, const char *origin, const char *settings, bool as_it_was) {
        char command[400];
        FILE *file;

        snprintf(scene->config, sizeof(scene->config), "%s/conf", scene->folder);
        file = fopen(scene->config, "w");
        fprintf(file,
                "index_dir = \"%s/index\"\nsocket = \"%s/s\"\ndataset \"d\" {\n  path = \"%s/d\"\n  origin = "
                "\"file://%s\"\n  %s\n}\n",
                scene->folder, scene->folder, scene->folder, origin, settings);
        fclose(file);
        check(scene, run(scene, true, NULL));
        points_disarm(); /* it may have crashed */
        if (run(scene, false, NULL) != 0)
                scene_problem(scene, "staging again, without trouble, did not end with 0");
        if (run(scene, false, "--verify") != 0)
                scene_problem(scene, "what was staged is not what it should be");
        snprintf(command, sizeof(command), "diff -r '%s/files' '%s/d/' >&2", scene->data, scene->folder);
        if (as_it_was && system(command) != 0)
                scene_problem(scene, "what was staged is not what the origin has");
}

static void stage(struct scene *scene, const char *origin, const char *settings, bool as_it_was) {
        char path[400];

        snprintf(path, sizeof(path), "%s/%s", scene->data, origin);
        stage_from(scene, path, settings, as_it_was);
}

void scenario_stage_http(struct scene *scene) {
        char folder[400], manifest[400];
        pid_t server;

        snprintf(folder, sizeof(folder), "%s/files", scene->data);
        snprintf(manifest, sizeof(manifest), "%s/m.jsonl", scene->folder);
        server = scene_origin_start(scene, folder, manifest);
        if (server > 0)
                stage_from(scene, manifest, "origin_kind = \"manifest\"", true);
        scene_origin_stop(server);
}

void scenario_stage_folder(struct scene *scene) {
        stage(scene, "files", "", true);
}

void scenario_stage_packed(struct scene *scene) {
        stage(scene, "photos", "prepare = \"resize(short=16) jpeg(90) gpu_jpeg\"", false);
}

void scenario_stage_converted(struct scene *scene) {
        stage(scene, "files", "prepare = 'command: echo {\\\\\"n\\\\\":1}'", false);
}

void scenario_stage_archive(struct scene *scene) {
        stage(scene, "files.tar", "", true);
}
