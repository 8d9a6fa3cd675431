#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "daemon/staging/run/run.h"
#include "proto/base/cleanup.h"

void version_fini(struct version *version) {
        tree_close(version->tree);
        chunks_free(version->chunks);
        plan_free(version->plan);
        *version = (struct version){ 0 };
}

/* ---- opening ---- */

static void on_event(void *userdata, enum tree_event event, uint64_t n_bytes, const char *text) {
        struct run *run = userdata;
        struct why why;

        if (event == TREE_BAD) {
                atomic_fetch_add(&run->counts.n_errors, 1);
                run_say(run, "warning", text);
        } else if (event != TREE_WAITING) {
                atomic_fetch_add(&run->n_bytes_before, n_bytes);
        } else if (pthread_equal(pthread_self(), run->main_thread)) {
                run_look(run, &why); /* a slow disk must not look like a dead node; what is wrong, the next look says */
        }
}

static int stage_source_open_tree(struct run *run, void *argument, struct why *why) {
        struct version *version = argument;
        struct tree_options options = {
                .dataset = run->dataset->name,
                .event = on_event,
                .userdata = run,
                .cancel = run->cancel,
                .read_only = run->options->dry_run,
                .lock_fd = run->lock_fd,
        };
        int64_t n_bad = 0;
        int r = tree_open(&run->place, version->plan, version->chunks, &options, &version->tree, why);

        if (r == 0 && run->options->verify) {
                n_bad = tree_verify(version->tree, why);
                r = n_bad < 0 ? (int)n_bad : 0;
        }
        return r;
}

int version_open(struct run *run, struct plan *plan, struct version *ret_version, struct why *why) {
        struct version version = { .plan = plan };
        int r = chunks_new(plan, &version.chunks);

        if (r < 0)
                why_errno(why, r, "the chunks of a plan");
        run_phase(run, "checking");
        run->n_bytes_total = plan_n_bytes(plan);
        run->n_files_total = plan_n_files(plan);
        atomic_store(&run->n_bytes_before, 0);
        atomic_store(&run->counts.n_bytes_done, 0);
        atomic_store(&run->counts.n_files_done, 0);
        if (r == 0 && run->is_writer)
                r = run_aside(run, stage_source_open_tree, &version, why);
        r = agree(run, r, why);
        if (r < 0) {
                version_fini(&version);
                return r;
        }
        if (version.tree) /* what counts as there is what is not missing, however it came to be there */
                atomic_store(&run->n_bytes_before, run->n_bytes_total - tree_n_missing_bytes(version.tree));
        *ret_version = version;
        return 0;
}

int version_folder(const struct run *run, const struct version *version, const char *suffix, char ret_path[PATH_MAX],
                   int *ret_fd, struct why *why) {
        char name[PLACE_VERSION_SIZE];
        int r;

        place_version(plan_digest(version->plan), name);
        r = place_file(&run->place, name, suffix, ret_path);
        if (r < 0)
                return why_errno(why, r, "%s", run->place.folder);
        if (mkdir(ret_path, 0755) < 0 && errno != EEXIST)
                return why_errno(why, -errno, "%s", ret_path);
        *ret_fd = open(ret_path, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        return *ret_fd < 0 ? why_errno(why, -errno, "%s", ret_path) : 0;
}

/* ---- bringing what is missing ---- */

static void say_warning(void *userdata, const char *text) {
        run_say(userdata, "warning", text);
}

/* Is anything missing on any node? */
static bool is_incomplete(struct run *run, const struct version *version) {
        _cleanup_(freep) uint8_t *all = NULL;
        uint8_t lacks = version->tree && !tree_is_complete(version->tree);

        all = run_gather(run, &lacks, 1);
        for (uint32_t node = 0; node < run->n_nodes; node++)
                if (all[node])
                        return true;
        return false;
}

int version_complete(struct run *run, struct version *version, bool has_origin, void (*written)(void *, uint64_t),
                     void *userdata, struct why *why) {
        struct transfer_options options = {
                .cluster = run->cluster,
                .plan = version->plan,
                .chunks = version->chunks,
                .tree = version->tree,
                .http = has_origin ? run->http : NULL,
                .n_connections = (uint32_t)run->dataset->connections,
                .silence_s = 3 * (uint32_t)run->dataset->stall_timeout, /* more than servers ask us to wait */
                .cancel = run->cancel,
                .counts = &run->counts,
                .look = run_look,
                .written = written,
                .written_userdata = userdata,
                .say = say_warning,
                .userdata = run,
        };
        int r;

        if (!is_incomplete(run, version))
                return 0;
        r = version->tree ? tree_check_space(version->tree, why) : 0;
        r = agree(run, r, why);
        if (r < 0)
                return r;
        run_phase(run, "transferring");
        r = transfer_run(&options, why);
        if (r == TRANSFER_LOST)
                run_lost(run, why);
        return agree(run, r, why);
}
