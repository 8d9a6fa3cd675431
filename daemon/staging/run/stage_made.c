#include "daemon/staging/run/stage_made.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/staging/run/stage_files.h"
#include "proto/base/cleanup.h"

uint32_t made_n_makers(const struct run *run) {
        return run->is_shared ? 1 : run->n_nodes;
}

int made_alloc(struct making *making, uint64_t n_files, struct why *why) {
        making->n_files = n_files;
        making->files = calloc(n_files + 1, sizeof(*making->files));
        return making->files ? 0 : why_errno(why, -ENOMEM, "%llu files", (unsigned long long)n_files);
}

/* The source stays for the next difference: its manifest has to be there, also if nothing of it was fetched. */
static int sync_source(struct run *run, void *argument, struct why *why) {
        struct version *source = argument;

        return tree_sync(source->tree, why);
}

static int hash_mine(struct run *run, struct making *making, struct why *why) {
        for (uint64_t i = run->node; i < making->n_files; i += made_n_makers(run)) {
                char name[MADE_NAME_SIZE];
                int r;

                if (making->files[i].kind == 0)
                        continue;
                making->name(making, i, name);
                r = hash_file_at(making->folder_fd, name, making->files[i].sha256, &making->files[i].n_bytes);
                if (r < 0)
                        return why_errno(why, r, "%s/%s", making->folder, name);
        }
        return 0;
}

static int stage_made_make(struct run *run, void *argument, struct why *why) {
        struct making *making = argument;
        int r = version_folder(run, making->source, making->suffix, making->folder, &making->folder_fd, why);

        if (r == 0)
                r = making->make(run, making, why);
        return r < 0 ? r : hash_mine(run, making, why);
}

/* All nodes have the same source, so they agree on the number; each says what its files are. */
static int share_made(struct run *run, struct making *making, struct plan **ret_plan, struct why *why) {
        _cleanup_(plan_freep) struct plan *begun = NULL;
        _cleanup_(freep) struct made *all = NULL; /* of every node, one after the other */
        uint64_t n = making->n_files;
        const char *origin = run->dataset->origin;
        int r = 0;

        run_share(run, 0, &n, sizeof(n));
        if (run->is_writer && n != making->n_files)
                r = why_set(why, -EBADMSG, "this node would make %llu files, the first one %llu",
                            (unsigned long long)making->n_files, (unsigned long long)n);
        r = agree(run, r, why);
        if (r < 0)
                return r;
        if (!making->files && made_alloc(making, n, why) < 0)
                run_lost(run, why);
        all = run_gather(run, making->files, n * sizeof(*all));
        for (uint64_t i = 0; i < n && r == 0; i++) {
                char path[PATH_MAX];
                struct plan_file file = { .path = path, .urls = &origin, .n_urls = 1 };

                making->files[i] = all[(i % made_n_makers(run)) * n + i];
                if (making->files[i].kind == 0)
                        continue;
                making->path(making, i, path);
                file.n_bytes = making->files[i].n_bytes;
                file.sha256 = making->files[i].sha256;
                r = plan_add(&begun, &file, why);
        }
        if (r == 0 && making->check)
                r = making->check(making, why);
        if (r == 0)
                r = plan_finish(&begun, ret_plan, why);
        return agree(run, r, why);
}

/* Small files share chunks, of which no node would have all: they go round by themselves, and lie everywhere as if each
 * node had made them. */
static int share_small(struct run *run, struct making *making, struct why *why) {
        _cleanup_(freep) uint8_t *bytes = malloc(CHUNK_BYTES);
        int r = agree(run, bytes ? 0 : why_errno(why, -ENOMEM, "a file"), why);

        for (uint64_t i = 0; i < making->n_files && r == 0 && made_n_makers(run) > 1; i++) {
                const struct made *file = &making->files[i];
                uint32_t maker = (uint32_t)(i % made_n_makers(run));
                char name[MADE_NAME_SIZE];

                if (file->kind == 0 || file->n_bytes > CHUNK_BYTES)
                        continue;
                making->name(making, i, name);
                if (run->node == maker)
                        r = read_file_at(making->folder_fd, name, bytes, file->n_bytes);
                r = agree(run, r < 0 ? why_errno(why, r, "%s/%s", making->folder, name) : 0, why);
                if (r < 0)
                        break;
                run_share(run, maker, bytes, file->n_bytes);
                if (run->node != maker)
                        r = write_file_at(making->folder_fd, name, bytes, file->n_bytes);
                r = agree(run, r < 0 ? why_errno(why, r, "%s/%s", making->folder, name) : 0, why);
        }
        return r;
}

struct adopting {
        const struct making *making;
        struct version *result;
};

static int adopt_mine(struct run *run, void *argument, struct why *why) {
        const struct adopting *adopting = argument;
        const struct making *making = adopting->making;

        for (uint64_t i = 0; i < making->n_files; i++) {
                const struct made *file = &making->files[i];
                char name[MADE_NAME_SIZE], path[PATH_MAX], from[PATH_MAX + MADE_NAME_SIZE];
                uint64_t idx;
                int r;

                if (file->kind == 0 || (i % made_n_makers(run) != run->node && file->n_bytes > CHUNK_BYTES))
                        continue;
                making->path(making, i, path);
                idx = (uint64_t)plan_find(adopting->result->plan, path);
                if (tree_file_is_whole(adopting->result->tree, idx))
                        continue;
                making->name(making, i, name);
                snprintf(from, sizeof(from), "%s/%s", making->folder, name);
                r = tree_adopt(adopting->result->tree, idx, from, why);
                if (r < 0)
                        return r;
                atomic_fetch_add(&run->counts.n_files_done, 1);
        }
        return 0;
}

/* Files of which nothing was made have left a note of that, for a run that goes on; and what the version had already
 * was not taken over. */
static void remove_rest(const struct making *making) {
        for (uint64_t i = 0; i < making->n_files; i++) {
                char name[MADE_NAME_SIZE];

                making->name(making, i, name);
                unlinkat(making->folder_fd, name, 0);
        }
}

static void making_fini(struct making *making) {
        if (making->folder_fd >= 0)
                close(making->folder_fd);
        rmdir(making->folder); /* empty once its files were taken over */
        free(making->files);
}

int version_make(struct run *run, struct version *version, struct making *making, struct why *why) {
        struct version result = { 0 };
        struct adopting adopting = { .making = making, .result = &result };
        struct plan *plan = NULL;
        int r = 0;

        making->source = version;
        making->folder_fd = -1;
        run_phase(run, making->phase);
        if (run->is_writer)
                r = run_aside(run, sync_source, version, why);
        if (r == 0 && run->is_writer)
                r = run_aside(run, stage_made_make, making, why);
        r = agree(run, r, why);
        atomic_store(&run->n_steps_done, 0);
        if (r == 0)
                r = share_made(run, making, &plan, why);
        if (r == 0)
                r = share_small(run, making, why);
        if (r == 0)
                r = version_open(run, plan, &result, why);
        else
                plan_free(plan);
        if (r == 0 && run->is_writer)
                r = run_aside(run, adopt_mine, &adopting, why);
        if (r == 0 && run->is_writer)
                remove_rest(making);
        making_fini(making);
        r = agree(run, r, why);
        if (r == 0)
                r = version_complete(run, &result, false, NULL, NULL, why);
        if (r < 0) {
                version_fini(&result);
                return r;
        }
        place_version(plan_digest(version->plan), run->next.source_version);
        version_fini(version);
        *version = result;
        return 0;
}
