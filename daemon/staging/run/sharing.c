#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/staging/run/run.h"
#include "daemon/store/tree/lock.h"
#include "proto/base/cleanup.h"

#define LOOK_TIMES 20 /* a network file system may show a new file late: a second of patience */

static bool sees(const char *path) {
        static const struct timespec PAUSE = { .tv_nsec = 50000000 };

        for (int i = 0; i < LOOK_TIMES; i++) {
                if (access(path, F_OK) == 0)
                        return true;
                nanosleep(&PAUSE, NULL);
        }
        return false;
}

/* The first node leaves a file; who sees it has the same folder. Returns how many do. */
static int look_for_file(struct run *run, uint32_t *ret_n_seeing, struct why *why) {
        _cleanup_(freep) uint8_t *all = NULL;
        char name[64], path[PATH_MAX];
        uint8_t sees_it = 1;
        int fd = -1, r = 0;

        if (run->node == 0 && mkdir(run->place.folder, 0755) < 0 && errno != EEXIST)
                r = why_errno(why, -errno, "%s", run->place.folder);
        r = agree(run, r, why);
        if (r < 0)
                return r;
        snprintf(name, sizeof(name), "seen-by-%ld-%lx", (long)getpid(), (unsigned long)time(NULL));
        run_share(run, 0, name, sizeof(name));
        name[sizeof(name) - 1] = '\0';
        r = place_file(&run->place, name, "", path);
        if (r == 0 && run->node == 0) {
                fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
                if (fd < 0)
                        r = why_errno(why, -errno, "%s", path);
                else
                        close(fd);
        }
        r = agree(run, r, why);
        if (r == 0 && run->node != 0)
                sees_it = sees(path);
        if (r == 0)
                all = run_gather(run, &sees_it, 1);
        if (run->node == 0 && fd >= 0)
                unlink(path);
        if (r < 0)
                return r;
        *ret_n_seeing = 0;
        for (uint32_t node = 0; node < run->n_nodes; node++)
                *ret_n_seeing += all[node] == 1;
        return 0;
}

static int decide_sharing(struct run *run, struct why *why) {
        const char *sharing = run->dataset->sharing;
        uint32_t n_seeing;
        int r;

        run->is_shared = strcmp(sharing, "shared") == 0 && run->n_nodes > 1;
        if (run->n_nodes == 1 || strcmp(sharing, "auto") != 0)
                return 0;
        r = look_for_file(run, &n_seeing, why);
        if (r < 0)
                return r;
        if (n_seeing > 1 && n_seeing < run->n_nodes)
                return why_set(why, -EINVAL,
                               "%s is shared by %u of %u nodes: all or none may share it; or say sharing = \"shared\"",
                               run->place.path, n_seeing, run->n_nodes);
        run->is_shared = n_seeing > 1;
        return 0;
}

/* run_stage() sees to what will be made. This is for what an earlier run made, when `allow` was not set yet. */
static int close_folder(const struct run *run, struct why *why) {
        if (!run->dataset->allow[0] || chmod(run->place.folder, 0700) == 0 || errno == ENOENT)
                return 0;
        return why_errno(why, -errno, "%s: others cannot be kept out of it, as allow asks", run->place.folder);
}

int find_place(struct run *run, struct why *why) {
        int r = place_init(&run->place, run->dataset->path, why);

        r = agree(run, r, why);
        if (r == 0 && !run->options->dry_run)
                r = decide_sharing(run, why);
        if (r < 0)
                return r;
        run->is_writer = !run->is_shared || run->node == 0;
        if (run->is_writer && !run->options->dry_run)
                report_set_place(run->report, &run->place); /* without it the daemon says less, and nothing is amiss */
        if (run->is_shared && run->node == 0)
                run_say(run, "info", "the folder is shared by all nodes: the first one writes for all");
        if (run->is_writer && !run->options->dry_run) {
                r = close_folder(run, why);
                if (r == 0)
                        r = tree_lock(&run->place, why);
                if (r >= 0)
                        run->lock_fd = r;
        }
        r = agree(run, r < 0 ? r : 0, why);
        if (r < 0)
                return r;
        r = stamp_read(&run->place, &run->stamp, why);
        if (r != 0) { /* absent, or damaged: then it is made anew */
                if (r < 0)
                        run_say(run, "warning", why->text);
                run->stamp = (struct stamp){ 0 };
        }
        return 0;
}
