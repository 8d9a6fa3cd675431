#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/data/format_tell.h"
#include "daemon/data/index/index.h"
#include "daemon/staging/run/run.h"
#include "proto/base/cleanup.h"
#include "proto/base/shown/shorten.h"

struct stage_indexing {
        struct version *version;
        const char *format;
        char path[PATH_MAX], new_path[PATH_MAX];
};

/* The files are what the origin has, whole and checked; that they are not a dataset of the configured format is for the
 * configuration to mend, and no reason to fetch them again. */
static int say_unservable(struct run *run, const char *text) {
        char line[DLP_TEXT_MAX];

        if (run->node != 0)
                return 0; /* it is the same everywhere */
        shorten(line, sizeof(line), "staged without an index, so the daemon cannot serve it as it is configured: %s",
                text);
        run_say(run, "warning", line);
        return 0;
}

int format_of_version(const struct run *run, const struct version *version, const char *name,
                      const struct format **ret_format, struct why *why) {
        const struct files files = { .root = tree_root(version->tree) };

        return format_tell(name, tree_root_fd(version->tree), &files, run->dataset->options, ret_format, why);
}

int index_files(struct run *run, const struct version *version, const struct format *format, const char *path,
                struct why *why) {
        struct index_watch watch = { .cancel = run->cancel };
        const struct files files = { .root = tree_root(version->tree) };
        struct index_builder *builder = NULL;
        struct format_options options = { 0 };
        int fd, r = format_options_parse(run->dataset->options, format, &options, why);

        if (r == 0)
                r = format_build(format, tree_root_fd(version->tree), &files, &options, &watch, &builder, why);
        if (r == 0)
                index_builder_set_options(builder, options.digest);
        format_options_fini(&options);
        if (r < 0)
                return r;
        fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
        r = fd < 0 ? why_errno(why, -errno, "%s", path) : index_builder_write(builder, fd, path, why);
        index_builder_free(builder);
        if (r == 0 || fd < 0)
                return r < 0 ? r : fd;
        close(fd);
        unlink(path);
        return r;
}

/* A format without an index: can it be opened? */
static int stage_indexing_look_at(struct run *run, const struct version *version, const struct format *format,
                                  struct why *why) {
        const struct files files = { .root = tree_root(version->tree) };
        struct source *source = NULL;
        struct format_options options = { 0 };
        int r = format_options_parse(run->dataset->options, format, &options, why);

        if (r == 0)
                r = format->open(tree_root_fd(version->tree), &files, &options, NULL, NULL, &source, why);
        format_options_fini(&options);
        source_close(source);
        return r == 0 || r == -ENOMEM ? r : say_unservable(run, why->text);
}

/* Opens it as the daemon will. */
static int stage_indexing_check(struct run *run, const struct stage_indexing *indexing, struct why *why) {
        struct source *index = NULL;
        int r = index_open(indexing->new_path, NULL, &index, why);

        if (r < 0)
                return r;
        snprintf(run->next.index, sizeof(run->next.index), "%s", index->digest);
        source_close(index);
        if (rename(indexing->new_path, indexing->path) < 0)
                return why_errno(why, -errno, "%s", indexing->path);
        return 0;
}

/* Every node looks at its own files: no slower than one for all. Files that cannot have an index, or need none, go
 * without. */
static int stage_indexing_build(struct run *run, void *argument, struct why *why) {
        struct stage_indexing *indexing = argument;
        const struct format *format;
        _cleanup_(closep) int fd = -1;
        int r = format_of_version(run, indexing->version, indexing->format, &format, why);

        if (r == 0 && !format->build)
                return stage_indexing_look_at(run, indexing->version, format, why);
        fd = r < 0 ? r : index_files(run, indexing->version, format, indexing->new_path, why);
        if (fd == -EINVAL || fd == -ENOENT)
                return say_unservable(run, why->text);
        return fd < 0 ? fd : stage_indexing_check(run, indexing, why);
}

/* The files are the same everywhere, and so the digest is. */
static int stage_indexing_compare(struct run *run, struct why *why) {
        char first[PLACE_DIGEST_SIZE];
        int r = 0;

        memcpy(first, run->next.index, sizeof(first));
        run_share(run, 0, first, sizeof(first));
        if (run->is_writer && strcmp(first, run->next.index) != 0)
                r = why_set(why, -EBADMSG, "the index has digest %.12s, on %s %.12s", run->next.index,
                            cluster_name(run->cluster, 0), first);
        return agree(run, r, why);
}

int version_index(struct run *run, struct version *version, struct why *why) {
        struct stage_indexing indexing = { .version = version, .format = run->next.format };
        char name[PLACE_VERSION_SIZE];
        int r;

        run_phase(run, "indexing");
        place_version(plan_digest(version->plan), name);
        r = place_file(&run->place, name, ".index", indexing.path);
        if (r == 0)
                r = place_file(&run->place, name, ".index.new", indexing.new_path);
        if (r < 0)
                why_errno(why, r, "%s", run->place.folder);
        if (r == 0 && run->is_writer)
                r = run_aside(run, stage_indexing_build, &indexing, why);
        r = agree(run, r, why);
        return r < 0 ? r : stage_indexing_compare(run, why);
}
