#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "daemon/data/format.h"
#include "daemon/data/formats/shard.h"
#include "daemon/staging/prepare/prepare.h"
#include "daemon/staging/run/stage_made.h"
#include "proto/base/cleanup.h"
#include "proto/base/shown/shorten.h"

/* The source's samples in order: an index that is used here and thrown away. */
static int index_source(struct run *run, const struct version *version, struct source **ret_index, struct why *why) {
        const struct format *format;
        char path[PATH_MAX];
        _cleanup_(closep) int fd = -1;
        int r = format_of_version(run, version, run->dataset->format, &format, why);

        if (r == 0 && !format->build)
                r = why_set(why, -ENOTSUP,
                            "format %s is served as it is, there is nothing to prepare: leave `prepare` out",
                            format->name);
        if (r < 0)
                return r;
        r = place_file(&run->place, "source", ".index", path);
        if (r < 0)
                return why_errno(why, r, "%s", run->place.folder);
        fd = index_files(run, version, format, path, why);
        if (fd < 0)
                return fd;
        r = index_open_fd(fd, path, NULL, ret_index, why);
        unlink(path); /* it lives as long as it is open */
        return r;
}

static void stage_shards_on_progress(void *userdata, uint64_t n_samples, uint64_t n_total) {
        struct run *run = userdata;

        atomic_store(&run->n_steps_done, n_samples);
}

static void name_shard(const struct making *making, uint64_t idx, char ret_name[MADE_NAME_SIZE]) {
        shard_name(idx, ret_name);
}

static void path_of_shard(const struct making *making, uint64_t idx, char ret_path[PATH_MAX]) {
        shard_name(idx, ret_path);
}

static void say_kept(struct run *run, const struct prepare_report *report) {
        char text[DLP_TEXT_MAX];

        if (report->n_kept_as_is == 0)
                return;
        shorten(text, sizeof(text), "%llu samples could not be prepared and are packed as they are; the first: %s",
                (unsigned long long)report->n_kept_as_is, report->first_kept.text);
        run_say(run, "warning", text);
}

static int stage_shards_make_shards(struct run *run, void *argument, struct why *why) {
        struct making *making = argument;
        _cleanup_(source_closep) struct source *index = NULL;
        struct prepare_report report;
        struct prepare_options options = {
                .root_fd = tree_root_fd(making->source->tree),
                .steps = run->dataset->prepare,
                .shard_bytes = run->dataset->shard_size,
                .node = run->node,
                .n_nodes = made_n_makers(run),
                .out_fd = making->folder_fd,
                .progress = stage_shards_on_progress,
                .userdata = run,
                .cancel = run->cancel,
        };
        int r = index_source(run, making->source, &index, why);

        if (r == 0)
                r = made_alloc(making, prepare_n_shards(index, run->dataset->shard_size), why);
        if (r < 0)
                return r;
        options.index = index;
        r = prepare_run(&options, &report, why);
        if (r < 0)
                return r;
        say_kept(run, &report);
        for (uint64_t i = 0; i < making->n_files; i++)
                making->files[i].kind = 1; /* a shard holds one sample at least */
        return 0;
}

int version_prepare(struct run *run, struct version *version, struct why *why) {
        struct making making = {
                .phase = "preparing",
                .suffix = ".shards",
                .make = stage_shards_make_shards,
                .name = name_shard,
                .path = path_of_shard,
        };

        return version_make(run, version, &making, why);
}
