#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/data/format.h"
#include "daemon/data/formats/shard.h"
#include "daemon/staging/prepare/prepare.h"
#include "daemon/staging/run/files.h"
#include "daemon/staging/run/run.h"
#include "proto/base/cleanup.h"

/* What a node says of a shard that it made. */
struct made {
        uint64_t n_bytes;
        uint8_t sha256[32];
};

struct preparing {
        struct version *source;
        struct source *index; /* of the source, for the order and labels of samples */
        char folder[PATH_MAX];
        int folder_fd;
        uint64_t n_shards;
        struct made *mine; /* n_shards */
        struct version *result;
};

/* The source's samples in order: an index that is used here and thrown away. */
static int index_source(struct run *run, struct preparing *preparing, struct why *why) {
        const struct format *format;
        char path[PATH_MAX];
        _cleanup_(closep) int fd = -1;
        int r = format_of_version(run, preparing->source, run->dataset->format, &format, why);

        if (r == 0 && !format->build)
                r = why_set(why, -ENOTSUP,
                            "format %s is served as it is, there is nothing to prepare: leave `prepare` out",
                            format->name);
        if (r < 0)
                return r;
        r = place_file(&run->place, "source", ".index", path);
        if (r < 0)
                return why_errno(why, r, "%s", run->place.folder);
        fd = index_files(run, preparing->source, format, path, why);
        if (fd < 0)
                return fd;
        r = index_open_fd(fd, path, NULL, &preparing->index, why);
        unlink(path); /* it lives as long as it is open */
        return r;
}

static void on_progress(void *userdata, uint64_t n_samples, uint64_t n_total) {
        struct run *run = userdata;

        atomic_store(&run->n_steps_done, n_samples);
}

static int hash_mine(struct run *run, struct preparing *preparing, uint32_t n_makers, struct why *why) {
        for (uint64_t i = run->node; i < preparing->n_shards; i += n_makers) {
                char name[32];
                int r;

                shard_name(i, name);
                r = hash_file_at(preparing->folder_fd, name, preparing->mine[i].sha256, &preparing->mine[i].n_bytes);
                if (r < 0)
                        return why_errno(why, r, "%s/%s", preparing->folder, name);
        }
        return 0;
}

static int make_shards(struct run *run, void *argument, struct why *why) {
        struct preparing *preparing = argument;
        uint32_t n_makers = run->is_shared ? 1 : run->n_nodes;
        struct prepare_report report;
        struct prepare_options options = {
                .root_fd = tree_root_fd(preparing->source->tree),
                .steps = run->dataset->prepare,
                .shard_bytes = run->dataset->shard_size,
                .node = run->node,
                .n_nodes = n_makers,
                .progress = on_progress,
                .userdata = run,
                .cancel = run->cancel,
        };
        int r = index_source(run, preparing, why);

        if (r == 0)
                r = version_folder(run, preparing->source, ".shards", preparing->folder, &preparing->folder_fd, why);
        if (r < 0)
                return r;
        options.index = preparing->index;
        options.out_fd = preparing->folder_fd;
        preparing->n_shards = prepare_n_shards(preparing->index, run->dataset->shard_size);
        preparing->mine = calloc(preparing->n_shards + 1, sizeof(*preparing->mine));
        if (!preparing->mine)
                return why_errno(why, -ENOMEM, "%llu shards", (unsigned long long)preparing->n_shards);
        r = prepare_run(&options, &report, why);
        if (r < 0)
                return r;
        if (report.n_kept_as_is > 0) {
                char text[DLP_TEXT_MAX];

                snprintf(text, sizeof(text),
                         "%llu samples could not be decoded and are packed as they are; the first: %.300s",
                         (unsigned long long)report.n_kept_as_is, report.first_kept.text);
                run_say(run, "warning", text);
        }
        return hash_mine(run, preparing, n_makers, why);
}

/* All nodes have the same source, so they agree on the number; each says what its shards are. */
static int share_made(struct run *run, struct preparing *preparing, struct plan **ret_plan, struct why *why) {
        _cleanup_(plan_freep) struct plan *begun = NULL;
        _cleanup_(freep) struct made *all = NULL; /* of every node, one after the other */
        uint64_t n = preparing->n_shards;
        uint32_t n_makers = run->is_shared ? 1 : run->n_nodes;
        const char *origin = run->dataset->origin;
        int r = 0;

        run_share(run, 0, &n, sizeof(n));
        if (run->is_writer && n != preparing->n_shards)
                r = why_set(why, -EBADMSG, "this node would make %llu shards, the first one %llu",
                            (unsigned long long)preparing->n_shards, (unsigned long long)n);
        r = agree(run, r, why);
        if (r < 0)
                return r;
        if (!preparing->mine)
                preparing->mine = calloc(n + 1, sizeof(*preparing->mine));
        if (!preparing->mine) {
                why_errno(why, -ENOMEM, "%llu shards", (unsigned long long)n);
                run_lost(run, why);
        }
        all = run_gather(run, preparing->mine, n * sizeof(*preparing->mine));
        for (uint64_t i = 0; i < n && r == 0; i++) {
                const struct made *made = &all[(i % n_makers) * n + i];
                char name[32];
                struct plan_file file = {
                        .path = name, .n_bytes = made->n_bytes, .sha256 = made->sha256, .urls = &origin, .n_urls = 1
                };

                shard_name(i, name);
                r = plan_add(&begun, &file, why);
        }
        if (r == 0)
                r = plan_finish(&begun, ret_plan, why);
        return agree(run, r, why);
}

/* Small shards share chunks, of which no node would have all: they go round by themselves, and lie everywhere as if
 * each node had made them. */
static int share_small(struct run *run, struct preparing *preparing, const struct plan *plan, struct why *why) {
        _cleanup_(freep) uint8_t *bytes = malloc(CHUNK_BYTES);
        uint32_t n_makers = run->is_shared ? 1 : run->n_nodes;
        int r = agree(run, bytes ? 0 : why_errno(why, -ENOMEM, "a shard"), why);

        for (uint64_t i = 0; i < plan_n_files(plan) && r == 0 && n_makers > 1; i++) {
                const struct plan_file *file = plan_file(plan, i); /* shards sort by name as they are numbered */
                uint32_t maker = (uint32_t)(i % n_makers);

                if (file->n_bytes > CHUNK_BYTES)
                        continue;
                if (run->node == maker)
                        r = read_file_at(preparing->folder_fd, file->path, bytes, file->n_bytes);
                r = agree(run, r < 0 ? why_errno(why, r, "%s/%s", preparing->folder, file->path) : 0, why);
                if (r < 0)
                        break;
                run_share(run, maker, bytes, file->n_bytes);
                if (run->node != maker)
                        r = write_file_at(preparing->folder_fd, file->path, bytes, file->n_bytes);
                r = agree(run, r < 0 ? why_errno(why, r, "%s/%s", preparing->folder, file->path) : 0, why);
        }
        return r;
}

static int adopt_mine(struct run *run, void *argument, struct why *why) {
        const struct preparing *preparing = argument;
        const struct plan *plan = preparing->result->plan;
        uint32_t n_makers = run->is_shared ? 1 : run->n_nodes;

        for (uint64_t i = 0; i < plan_n_files(plan); i++) {
                const struct plan_file *file = plan_file(plan, i);
                char from[PATH_MAX + 40];
                int r;

                if ((i % n_makers != run->node && file->n_bytes > CHUNK_BYTES) ||
                    tree_file_is_whole(preparing->result->tree, i))
                        continue;
                snprintf(from, sizeof(from), "%s/%s", preparing->folder, file->path);
                r = tree_adopt(preparing->result->tree, i, from, why);
                if (r < 0)
                        return r;
                atomic_fetch_add(&run->counts.n_files_done, 1);
        }
        return 0;
}

/* The source stays for the next difference: its manifest has to be there, also if nothing of it was fetched. */
static int sync_source(struct run *run, void *argument, struct why *why) {
        struct version *source = argument;

        return tree_sync(source->tree, why);
}

static void preparing_fini(struct preparing *preparing) {
        source_close(preparing->index);
        if (preparing->folder_fd >= 0)
                close(preparing->folder_fd);
        rmdir(preparing->folder); /* empty once its shards were taken over */
        free(preparing->mine);
}

int version_prepare(struct run *run, struct version *version, struct why *why) {
        struct version result = { 0 };
        struct preparing preparing = { .source = version, .result = &result, .folder_fd = -1 };
        struct plan *plan = NULL;
        int r = 0;

        run_phase(run, "preparing");
        if (run->is_writer)
                r = run_aside(run, sync_source, version, why);
        if (r == 0 && run->is_writer)
                r = run_aside(run, make_shards, &preparing, why);
        r = agree(run, r, why);
        atomic_store(&run->n_steps_done, 0);
        if (r == 0)
                r = share_made(run, &preparing, &plan, why);
        if (r == 0)
                r = share_small(run, &preparing, plan, why);
        if (r == 0)
                r = version_open(run, plan, &result, why);
        else
                plan_free(plan);
        if (r == 0 && run->is_writer)
                r = run_aside(run, adopt_mine, &preparing, why);
        preparing_fini(&preparing);
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
