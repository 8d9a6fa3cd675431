#include "daemon/base/machine/beneath.h"
#include "daemon/data/format.h"
#include "daemon/data/format_tell.h"

/* packed: a folder of shards, as packing a dataset leaves it: shard-000000.shard, shard-000001.shard, ...
 *
 * The samples are those of the shards one after the other, with the paths and labels that they had before, and the
 * digest is that of the folder that was packed. Only headers and tables are read. Other files in the folder are
 * ignored, but a missing number is an error: without that shard it would silently be a different dataset. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/data/formats/shard_layout.h"
#include "daemon/data/index/index_stamp.h"
#include "daemon/data/index/indexing.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

#define LOOK_UP_SAMPLES 4096u /* between two checks of the cancel flag */

struct gathering {
        int root_fd;
        const char *root;
        const struct index_watch *watch;
        struct index_builder *builder;
        struct why *why;
        int64_t settled_ns; /* time waited so far */
        uint64_t n_samples;
        char **classes; /* of the first shard; all others must have the same */
        uint64_t n_classes;
        char source[INDEX_FORMAT_NAME_MAX]; /* likewise */
};

/* The table of a shard while its samples are added. */
struct loaded {
        const char *name;
        struct shard_header header;
        struct growing table;
        struct stat status;
        struct shard shard;
};

static void gathering_fini(struct gathering *gathering) {
        for (uint64_t i = 0; i < gathering->n_classes; i++)
                free(gathering->classes[i]);
        free(gathering->classes);
        index_builder_free(gathering->builder);
}

static void loaded_fini(struct loaded *loaded) {
        growing_fini(&loaded->table);
}

/* ---- one shard ----------------------------------------------------------------------------------------------- */

static int packed_open_shard(const struct gathering *gathering, const char *name, int *ret_fd) {
        /* O_NONBLOCK: opening a FIFO must not block. */
        int fd = beneath_open(gathering->root_fd, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

        if (fd < 0 && errno == ENOENT)
                return why_set(gathering->why, -ENOENT,
                               "%s/%s is missing: shards are numbered without a gap; stage or pack the dataset again",
                               gathering->root, name);
        if (fd < 0)
                return why_errno(gathering->why, -errno, "%s/%s", gathering->root, name);
        *ret_fd = fd;
        return 0;
}

static int load_checked(struct gathering *gathering, int fd, struct loaded *loaded, struct why *why) {
        int r;

        r = index_settle(fd, &gathering->settled_ns, &loaded->status);
        if (r < 0)
                return why_errno(why, r, "it cannot be looked at");
        if (!S_ISREG(loaded->status.st_mode) || loaded->status.st_size < (off_t)SHARD_ALIGN)
                return why_set(why, -EBADMSG, "it is not a shard");
        r = indexing_read_at(fd, &loaded->header, sizeof(loaded->header), 0);
        if (r < 0)
                return why_errno(why, r, "its header cannot be read");
        r = shard_check_header(&loaded->header, (uint64_t)loaded->status.st_size, why);
        if (r < 0)
                return r;
        if (growing_reserve(&loaded->table, loaded->header.table_bytes) < 0)
                return why_set(why, -ENOMEM, "no memory for its table of %" PRIu64 " bytes",
                               loaded->header.table_bytes);
        r = indexing_read_at(fd, loaded->table.bytes, loaded->header.table_bytes, loaded->header.table);
        if (r < 0)
                return why_errno(why, r, "its table cannot be read");
        return shard_check_table(&loaded->header, loaded->table.bytes, &loaded->shard, why);
}

static int load_shard(struct gathering *gathering, const char *name, struct loaded *loaded) {
        _cleanup_(closep) int fd = -1;
        struct why detail = { 0 };
        int r;

        loaded->name = name;
        r = packed_open_shard(gathering, name, &fd);
        if (r < 0)
                return r;
        r = load_checked(gathering, fd, loaded, &detail);
        return r < 0 ? why_set(gathering->why, r, "%s/%s: %s", gathering->root, name, detail.text) : 0;
}

/* ---- what a shard says about the dataset --------------------------------------------------------------------- */

/* The first shard defines the classes, */
static int packed_take_classes(struct gathering *gathering, const struct loaded *loaded) {
        const struct shard *shard = &loaded->shard;
        int r = 0;

        gathering->classes = calloc(shard->header->n_classes ? shard->header->n_classes : 1, sizeof(char *));
        if (!gathering->classes)
                return index_builder_refused(-ENOMEM, gathering->root, gathering->why);
        strcpy(gathering->source, shard->header->source);
        index_builder_set_source(gathering->builder, gathering->source);
        for (uint64_t i = 0; i < shard->header->n_classes && r >= 0; i++) {
                gathering->classes[i] = strdup(shard->names + shard->classes[i]);
                gathering->n_classes = i + 1;
                r = gathering->classes[i] ? index_builder_add_class(gathering->builder, gathering->classes[i])
                                          : -ENOMEM;
        }
        return r < 0 ? index_builder_refused(r, gathering->root, gathering->why) : 0;
}

/* and the others must have the same, because labels would have a different meaning in each. */
static int packed_check_classes(const struct gathering *gathering, const struct loaded *loaded) {
        const struct shard *shard = &loaded->shard;
        char first[32];

        shard_name(0, first);
        if (strcmp(shard->header->source, gathering->source) != 0)
                return why_set(gathering->why, -EBADMSG, "%s/%s holds samples of the format %s, %s of %s",
                               gathering->root, loaded->name, shard->header->source, first, gathering->source);
        if (shard->header->n_classes != gathering->n_classes)
                return why_set(gathering->why, -EBADMSG, "%s/%s is of a dataset of %" PRIu64 " classes, %s of %" PRIu64,
                               gathering->root, loaded->name, shard->header->n_classes, first, gathering->n_classes);
        for (uint64_t i = 0; i < gathering->n_classes; i++)
                if (strcmp(shard->names + shard->classes[i], gathering->classes[i]) != 0)
                        return why_set(gathering->why, -EBADMSG,
                                       "%s/%s is of another dataset than %s: class %" PRIu64 " is %s, not %s",
                                       gathering->root, loaded->name, first, i, shard->names + shard->classes[i],
                                       gathering->classes[i]);
        return 0;
}

static int packed_take_sample(struct gathering *gathering, const struct shard *shard, const struct shard_entry *entry) {
        struct index_row row = { .offset = entry->offset, .length = entry->length };
        int r = index_builder_add_path(gathering->builder, shard->names + entry->path, 0, &row.file);

        return r < 0 ? r : index_builder_add_sample(gathering->builder, &row, entry->label);
}

static int packed_look_up(const struct gathering *gathering) {
        return gathering->n_samples % LOOK_UP_SAMPLES != 0
                       ? 0
                       : format_look_up(gathering->watch, gathering->n_samples, gathering->root, gathering->why);
}

static int take_samples(struct gathering *gathering, const struct loaded *loaded) {
        int r;

        r = index_builder_add_shard(gathering->builder, loaded->name, &loaded->status);
        if (r < 0)
                return index_builder_refused(r, gathering->root, gathering->why);
        for (uint64_t i = 0; i < loaded->header.n_samples; i++, gathering->n_samples++) {
                r = packed_look_up(gathering);
                if (r < 0)
                        return r;
                r = packed_take_sample(gathering, &loaded->shard, &loaded->shard.entries[i]);
                if (r < 0)
                        return index_builder_refused(r, gathering->root, gathering->why);
        }
        return 0;
}

static int packed_take_shard(struct gathering *gathering, uint64_t idx) {
        _cleanup_(loaded_fini) struct loaded loaded = { 0 };
        char name[32];
        int r;

        shard_name(idx, name);
        r = load_shard(gathering, name, &loaded);
        if (r < 0)
                return r;
        r = idx == 0 ? packed_take_classes(gathering, &loaded) : packed_check_classes(gathering, &loaded);
        if (r < 0)
                return r;
        return take_samples(gathering, &loaded);
}

/* ---- the folder ---------------------------------------------------------------------------------------------- */

static bool packed_is_shard(const char *name) {
        return name[0] != '.' && text_ends_with(name, SHARD_SUFFIX);
}

/* Counts the shards, whatever their numbers are. The folder becomes the root of the index. */
static int count_shards(struct gathering *gathering, uint64_t *ret_n) {
        struct dirent *entry;
        struct stat status;
        uint32_t idx_dir;
        uint64_t n = 0;
        DIR *dir;
        int fd, r;

        fd = beneath_open(gathering->root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        r = fd < 0 ? -errno : index_settle(fd, &gathering->settled_ns, &status);
        if (r < 0) {
                closep(&fd);
                return why_errno(gathering->why, r, "%s: the folder cannot be read", gathering->root);
        }
        dir = fdopendir(fd);
        if (!dir) {
                close(fd);
                return index_builder_refused(-ENOMEM, gathering->root, gathering->why);
        }
        for (errno = 0; (entry = readdir(dir)); errno = 0)
                n += packed_is_shard(entry->d_name);
        r = errno;
        closedir(dir);
        if (r != 0)
                return why_errno(gathering->why, -r, "%s: the folder cannot be read to its end", gathering->root);
        if (n == 0)
                return why_set(gathering->why, -ENOENT,
                               "%s: there is no shard in it; a packed dataset has files shard-000000" SHARD_SUFFIX
                               " and so on",
                               gathering->root);
        r = index_builder_add_dir(gathering->builder, "", &status, &idx_dir);
        *ret_n = n;
        return r < 0 ? index_builder_refused(r, gathering->root, gathering->why) : 0;
}

static int packed_build(int root_fd, const struct files *files, const struct format_options *options,
                        const struct index_watch *watch, struct index_builder **ret_builder, struct why *why) {
        _cleanup_(gathering_fini) struct gathering gathering = {
                .root_fd = root_fd, .root = files->root, .watch = watch, .why = why
        };
        uint64_t n_shards = 0;
        int r;

        (void)options;
        r = index_builder_new(format_packed.name, 1, &gathering.builder);
        if (r < 0)
                return index_builder_refused(r, gathering.root, gathering.why);
        r = count_shards(&gathering, &n_shards);
        if (r < 0)
                return r;
        for (uint64_t i = 0; i < n_shards; i++) {
                r = packed_take_shard(&gathering, i);
                if (r < 0)
                        return r;
        }
        if (gathering.n_samples == 0)
                return why_set(why, -ENOENT, "%s: there is no sample in its shards", files->root);

        if (watch && watch->progress)
                watch->progress(watch->userdata, gathering.n_samples);
        *ret_builder = TAKE_PTR(gathering.builder);
        return 0;
}

static int packed_is_it(int root_fd, const struct files *files) {
        return format_names_files(root_fd, files, packed_is_shard);
}

const struct format format_packed = {
        .name = "packed",
        .doc = "A folder of shards (`shard-000000.shard` and so on), which staging makes from an image folder with "
               "`pack`. It has the same samples in the same order with the same labels.",
        .example = "path = \"/data/shards\"",
        .is_prepared = true,
        .is_it = packed_is_it,
        .build = packed_build,
};
