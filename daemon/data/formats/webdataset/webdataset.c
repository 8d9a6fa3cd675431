#include "daemon/data/format.h"

/* webdataset: tar archives, either all of a folder or those that the path names. Files that follow each other and
 * differ only after the first dot of their names are the fields of one sample: "a/000.jpg", "a/000.cls" -> sample
 * "a/000" with the fields jpg and cls.
 *
 * The rules are those of the webdataset library. Where the library silently skips data because an archive is damaged,
 * this reports an error with archive and byte: a dataset that ends early would be a different one. Archives are taken
 * in the order of their names, or in the order in which the path or a list of wids names them. Only headers are read,
 * also where DALI has left an index beside an archive: to trust it, one would have to compare it with them. After that,
 * any order and any resume is as exact as for a folder of files. */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/data/format_tell.h"
#include "daemon/data/formats/npy_survey.h"
#include "daemon/data/formats/webdataset/member_name.h"
#include "daemon/data/formats/webdataset/shard_list.h"
#include "daemon/data/formats/webdataset/tar.h"
#include "daemon/data/growing.h"
#include "daemon/data/listed.h"
#include "proto/base/cleanup.h"

#define LOOK_UP_MEMBERS 4096u /* between two checks of the cancel flag */

/* A file as found, before the number of fields is known. */
struct member {
        uint64_t offset, n_bytes;
        uint32_t idx_field;
        uint32_t idx_sample; /* within its shard */
};

struct found_shard {
        uint64_t name; /* offset into names */
        struct stat status;
        uint64_t first_member, n_members;
        uint64_t first_key, n_keys; /* the keys of its samples */
};

struct found_field {
        char name[SCHEMA_NAME_MAX];
        uint64_t n_samples; /* that have this field */
        bool is_npy;        /* by its name */
        struct npy_survey npy;
};

struct walk {
        int root_fd;
        const struct files *files;
        const char *root;
        const struct index_watch *watch;
        struct why *why;
        struct growing shards, members, keys, names; /* keys: offsets into names */
        struct found_field fields[INDEX_FIELDS_MAX];
        uint32_t n_fields;
        uint64_t n_samples, n_members;
        int64_t settled_ns;
        struct stat folder; /* the root */
};

static void walk_fini(struct walk *walk) {
        growing_fini(&walk->shards);
        growing_fini(&walk->members);
        growing_fini(&walk->keys);
        growing_fini(&walk->names);
}

static int no_memory(const struct walk *walk, int error) {
        if (error == -E2BIG)
                return why_set(walk->why, error, "%s: more samples than an index can hold", walk->root);
        return why_set(walk->why, error, "%s: no memory for its index, after %" PRIu64 " samples", walk->root,
                       walk->n_samples);
}

static int add_name(struct walk *walk, const char *name, size_t n, uint64_t *ret_at) {
        uint64_t at = walk->names.n_bytes;
        int r = growing_append(&walk->names, name, n);

        if (r >= 0)
                r = growing_append(&walk->names, "", 1);
        if (r < 0)
                return r;
        *ret_at = at;
        return 0;
}

/* ---- names ----------------------------------------------------------------------------------------------------- */

static int refuse(const struct walk *walk, const char *shard, const struct tar_member *member, const char *what) {
        return why_set(walk->why, -EBADMSG, "%s/%s: at byte %" PRIu64 ": \"%.100s\": %s", walk->root, shard,
                       member->header, member->name, what);
}

/* Finds the number of a field. A field that is met for the first time gets a new number. */
static int find_field(struct walk *walk, const char *shard, const struct tar_member *member, const char *extension,
                      uint32_t *ret_idx) {
        char name[SCHEMA_NAME_MAX];
        size_t n = strlen(extension);

        if (n == 0 || n >= sizeof(name))
                return refuse(walk, shard, member,
                              "the part after the first dot names a field: it must have 1 to 31 bytes");
        for (size_t i = 0; i <= n; i++)
                name[i] = (char)(extension[i] >= 'A' && extension[i] <= 'Z' ? extension[i] + 'a' - 'A' : extension[i]);
        for (uint32_t i = 0; i < walk->n_fields; i++)
                if (strcmp(walk->fields[i].name, name) == 0) {
                        *ret_idx = i;
                        return 0;
                }
        if (walk->n_fields == INDEX_FIELDS_MAX)
                return refuse(walk, shard, member, "too many fields, a dataset has 128 at most");
        _Static_assert(INDEX_FIELDS_MAX == 128, "as the message says");
        strcpy(walk->fields[walk->n_fields].name, name);
        walk->fields[walk->n_fields].is_npy = member_is_npy(name);
        *ret_idx = walk->n_fields++;
        return 0;
}

/* ---- one archive ----------------------------------------------------------------------------------------------- */

static int look_up(const struct walk *walk) {
        if (walk->n_members % LOOK_UP_MEMBERS != 0 || !walk->watch)
                return 0;
        if (walk->watch->cancel && atomic_load_explicit(walk->watch->cancel, memory_order_relaxed))
                return why_set(walk->why, -ECANCELED, "%s: indexing was cancelled", walk->root);
        if (walk->watch->progress)
                walk->watch->progress(walk->watch->userdata, walk->n_samples);
        return 0;
}

/* Does the file belong to the same sample as the one before? */
static bool is_same_key(const struct walk *walk, const struct found_shard *shard, const char *name, size_t n_key) {
        const uint64_t *keys = (const void *)walk->keys.bytes;
        const char *last;

        if (shard->n_keys == 0)
                return false;
        last = (const char *)walk->names.bytes + keys[shard->first_key + shard->n_keys - 1];
        return strncmp(last, name, n_key) == 0 && last[n_key] == '\0';
}

static bool has_field(const struct walk *walk, const struct found_shard *shard, uint32_t idx_field) {
        const struct member *members = (const void *)walk->members.bytes;

        for (uint64_t i = shard->first_member + shard->n_members; i > shard->first_member; i--) {
                if (members[i - 1].idx_sample != shard->n_keys - 1)
                        return false;
                if (members[i - 1].idx_field == idx_field)
                        return true;
        }
        return false;
}

static int survey_member(struct walk *walk, int fd, const char *shard, const struct tar_member *member,
                         struct found_field *field) {
        struct why detail;
        int r = field->is_npy ? npy_survey_take(&field->npy, fd, member->offset, member->n_bytes, &detail) : 0;

        return r < 0 ? refuse(walk, shard, member, detail.text) : 0;
}

static int take_member(struct walk *walk, int fd, struct found_shard *shard, const char *shard_name,
                       const struct tar_member *member) {
        struct member taken = { .offset = member->offset, .n_bytes = member->n_bytes };
        const char *name, *extension;
        size_t n_key;
        uint64_t at;
        int r;

        switch (member_name_split(member->name, &name, &n_key, &extension)) {
        case MEMBER_IS_FIELD:
                break;
        case MEMBER_IS_HIDDEN:
                return refuse(walk, shard_name, member, "a hidden file in a folder; rename or remove it");
        default:
                return 0;
        }
        r = find_field(walk, shard_name, member, extension, &taken.idx_field);
        if (r < 0)
                return r;
        if (!is_same_key(walk, shard, name, n_key)) {
                char key[PATH_MAX];

                memcpy(key, name, n_key);
                key[n_key] = '\0';
                if (!index_is_inner_path(key) || n_key + 1 >= PATH_MAX)
                        return refuse(walk, shard_name, member, "the name of a sample may not leave its folder");
                r = add_name(walk, key, n_key, &at);
                if (r >= 0)
                        r = growing_append(&walk->keys, &at, sizeof(at));
                if (r < 0)
                        return no_memory(walk, r);
                shard->n_keys++;
                walk->n_samples++;
        } else if (has_field(walk, shard, taken.idx_field)) {
                return refuse(walk, shard_name, member, "the sample has this field twice");
        }
        r = survey_member(walk, fd, shard_name, member, &walk->fields[taken.idx_field]);
        if (r < 0)
                return r;
        taken.idx_sample = (uint32_t)(shard->n_keys - 1);
        r = growing_append(&walk->members, &taken, sizeof(taken));
        if (r < 0)
                return no_memory(walk, r);
        walk->fields[taken.idx_field].n_samples++;
        shard->n_members++;
        walk->n_members++;
        return look_up(walk);
}

static int walk_archive(struct walk *walk, int fd, struct found_shard *shard, const char *name) {
        _cleanup_(tar_closep) struct tar *tar = NULL;
        struct tar_member member;
        struct why detail;
        int r = tar_open(fd, (uint64_t)shard->status.st_size, &tar, &detail);

        while (r == 0 && (r = tar_next(tar, &member, &detail)) == 0) {
                r = take_member(walk, fd, shard, name, &member);
                if (r < 0)
                        return r;
        }
        return r == TAR_END ? 0 : why_set(walk->why, r, "%s/%s: %.350s", walk->root, name, detail.text);
}

static int walk_shard(struct walk *walk, const char *name) {
        struct found_shard shard = {
                .first_member = walk->members.n_bytes / sizeof(struct member),
                .first_key = walk->keys.n_bytes / sizeof(uint64_t),
        };
        _cleanup_(closep) int fd = listed_open(walk->root_fd, walk->root, name, &walk->settled_ns, &shard.status,
                                               walk->why);
        int r;

        if (fd < 0)
                return fd;
        r = add_name(walk, name, strlen(name), &shard.name);
        if (r < 0)
                return no_memory(walk, r);
        r = walk_archive(walk, fd, &shard, name);
        if (r < 0)
                return r;
        r = growing_append(&walk->shards, &shard, sizeof(shard));
        return r < 0 ? no_memory(walk, r) : 0;
}

/* ---- the folder ------------------------------------------------------------------------------------------------ */

/* Includes compressed archives, which are refused when they are opened: without them it would be a different
 * dataset. */
static bool is_archive(const char *name) {
        static const char *const ENDINGS[] = { ".tar",    ".tar.gz", ".tgz",     ".tar.bz2", ".tbz",     ".tbz2",
                                               ".tar.xz", ".txz",    ".tar.zst", ".tzst",    ".tar.lz4", ".tar.Z" };
        size_t n = strlen(name);

        for (size_t i = 0; i < ARRAY_SIZE(ENDINGS) && name[0] != '.'; i++) {
                size_t n_ending = strlen(ENDINGS[i]);

                if (n > n_ending && strcmp(name + n - n_ending, ENDINGS[i]) == 0)
                        return true;
        }
        return false;
}

/* The list is an archive without samples: when it changes, the index is made anew. */
static int add_list(struct walk *walk, const char *name, const struct stat *status) {
        struct found_shard shard = { .status = *status };
        int r = add_name(walk, name, strlen(name), &shard.name);

        if (r >= 0)
                r = growing_append(&walk->shards, &shard, sizeof(shard));
        return r < 0 ? no_memory(walk, r) : 0;
}

/* What the list says of an archive must be so: it may be of another version of the dataset. */
static int check_listed(const struct walk *walk, const struct listed_shard *listed, const char *list,
                        const char *name) {
        const struct found_shard *found = (const void *)(walk->shards.bytes + walk->shards.n_bytes - sizeof(*found));
        uint64_t n_bytes = (uint64_t)found->status.st_size;

        if (listed->n_bytes != SHARD_LIST_UNKNOWN && listed->n_bytes != n_bytes)
                return why_set(walk->why, -EBADMSG,
                               "%s/%s: has %" PRIu64 " bytes, and %s says %" PRIu64
                               ": one of them is of another version; make the list anew with wids-index",
                               walk->root, name, n_bytes, list, listed->n_bytes);
        if (listed->n_samples != SHARD_LIST_UNKNOWN && listed->n_samples != found->n_keys)
                return why_set(walk->why, -EBADMSG,
                               "%s/%s: has %" PRIu64 " samples, and %s says %" PRIu64
                               ": one of them is of another version; make the list anew with wids-index",
                               walk->root, name, found->n_keys, list, listed->n_samples);
        return 0;
}

/* Reads the archives that a list names. */
static int walk_list(struct walk *walk, const char *file) {
        _cleanup_(shard_list_fini) struct shard_list list = { .names = { 0 } };
        const struct listed_shard *shards;
        int r = shard_list_read(&list, walk->root_fd, walk->root, file, &walk->settled_ns, walk->why);

        if (r == 0)
                r = add_list(walk, file, &list.status);
        shards = (const void *)list.shards.bytes;
        for (size_t i = 0; i < list.shards.n_bytes / sizeof(*shards) && r == 0; i++) {
                const char *name = (const char *)list.names.bytes + shards[i].name;

                r = walk_shard(walk, name);
                if (r == 0)
                        r = check_listed(walk, &shards[i], file, name);
        }
        return r;
}

static bool is_list(const struct files *files) {
        size_t n = files->n_names == 1 ? strlen(files->names[0]) : 0;

        return n > 5 && strcmp(files->names[0] + n - 5, ".json") == 0;
}

/* Reads the archives in the order of their names, or in the order in which the path or a list names them. */
static int walk_all(struct walk *walk) {
        struct listed listed = { 0 };
        int r = listed_find(&listed, walk->root_fd, walk->files, is_archive, &walk->settled_ns, walk->why);

        if (r == 0 && listed.n == 0)
                r = why_set(
                        walk->why, -ENOENT,
                        "%s: there is no archive in it; the path of a webdataset is a folder of .tar files, one of them, "
                        "a pattern such as DIR/{a,b}/x-{000..127}.tar, or a list of them as wids-index writes it",
                        walk->root);
        if (r == 0 && is_list(walk->files))
                r = walk_list(walk, listed.names[0]);
        for (size_t i = 0; i < listed.n && r == 0 && !is_list(walk->files); i++)
                r = walk_shard(walk, listed.names[i]);
        if (r == 0 && walk->n_samples == 0)
                r = why_set(walk->why, -ENOENT, "%s: there is no sample in its archives: no file whose name has a dot",
                            walk->root);
        walk->folder = listed.folder;
        listed_fini(&listed);
        return r;
}

/* ---- the index ------------------------------------------------------------------------------------------------- */

/* Arrays of one dtype and shape are known as arrays; others are bytes. */
static void describe_field(const struct walk *walk, const struct found_field *found, struct index_builder *builder,
                           uint32_t idx) {
        struct schema_field field = { .kind = member_kind(found->name),
                                      .may_be_absent = found->n_samples < walk->n_samples };

        strcpy(field.name, found->name);
        if (found->is_npy)
                npy_survey_describe(&found->npy, &field);
        index_builder_describe(builder, idx, &field);
}

/* Finds the folder of a key, which is usually that of the sample before. */
struct placing {
        struct index_builder *builder;
        char dir[PATH_MAX];
        uint32_t idx_dir;
};

static int place_key(struct placing *placing, const char *key, uint64_t *ret_file) {
        const char *slash = strrchr(key, '/');
        size_t n_dir = slash ? (size_t)(slash - key) : 0;

        if (n_dir == 0) {
                placing->dir[0] = '\0';
                placing->idx_dir = 0;
        } else if (strncmp(placing->dir, key, n_dir) != 0 || placing->dir[n_dir] != '\0') {
                int r;

                memcpy(placing->dir, key, n_dir);
                placing->dir[n_dir] = '\0';
                r = index_builder_add_dir(placing->builder, placing->dir, NULL, &placing->idx_dir);
                if (r < 0)
                        return r;
        }
        return index_builder_add_file(placing->builder, placing->idx_dir, slash ? slash + 1 : key, 0, ret_file);
}

static int give_shard(const struct walk *walk, const struct found_shard *shard, struct placing *placing) {
        const struct member *members = (const struct member *)walk->members.bytes + shard->first_member;
        const uint64_t *keys = (const uint64_t *)walk->keys.bytes + shard->first_key;
        const char *names = (const char *)walk->names.bytes;
        uint64_t at = 0;
        int r = index_builder_add_shard(placing->builder, names + shard->name, &shard->status);

        for (uint64_t i = 0; i < shard->n_keys && r >= 0; i++) {
                struct index_row rows[INDEX_FIELDS_MAX];
                uint64_t file = 0;

                r = place_key(placing, names + keys[i], &file);
                for (uint32_t k = 0; k < walk->n_fields; k++)
                        rows[k] = (struct index_row){ .file = file, .offset = INDEX_ROW_ABSENT };
                for (; at < shard->n_members && members[at].idx_sample == i; at++)
                        rows[members[at].idx_field] = (struct index_row){ .file = file,
                                                                          .offset = members[at].offset,
                                                                          .length = members[at].n_bytes };
                if (r >= 0)
                        r = index_builder_add_sample(placing->builder, rows, 0);
        }
        return r;
}

static int make_index(const struct walk *walk, struct index_builder **ret_builder) {
        const struct found_shard *shards = (const void *)walk->shards.bytes;
        _cleanup_(index_builder_freep) struct index_builder *builder = NULL;
        _cleanup_(freep) struct placing *placing = calloc(1, sizeof(*placing));
        uint32_t idx_root;
        int r = placing ? index_builder_new(FORMAT_WEBDATASET.name, walk->n_fields, &builder) : -ENOMEM;

        if (r < 0)
                return r;
        placing->builder = builder;
        for (uint32_t i = 0; i < walk->n_fields; i++)
                describe_field(walk, &walk->fields[i], builder, i);
        r = index_builder_add_dir(builder, "", &walk->folder, &idx_root);
        if (r >= 0 && walk->files->n_names > 0)
                index_builder_set_named(builder);
        for (uint64_t i = 0; i < walk->shards.n_bytes / sizeof(*shards) && r >= 0; i++)
                r = give_shard(walk, &shards[i], placing);
        if (r >= 0)
                *ret_builder = TAKE_PTR(builder);
        return r;
}

static int webdataset_build(int root_fd, const struct files *files, const struct format_options *options,
                            const struct index_watch *watch, struct index_builder **ret_builder, struct why *why) {
        _cleanup_(walk_fini) struct walk walk = {
                .root_fd = root_fd, .files = files, .root = files->root, .watch = watch, .why = why
        };
        int r = walk_all(&walk);

        (void)options;
        if (r < 0)
                return r;
        r = make_index(&walk, ret_builder);
        if (r < 0)
                return no_memory(&walk, r);
        if (watch && watch->progress)
                watch->progress(watch->userdata, walk.n_samples);
        return 0;
}

static bool webdataset_is_it(int root_fd, const struct files *files) {
        return shard_list_is_it(root_fd, files) || format_names_files(root_fd, files, is_archive);
}

static const char *const OPTIONS[] = { FORMAT_STREAM, "field_limit", "spool", "spool_limit", NULL };

const struct format FORMAT_WEBDATASET = {
        .name = "webdataset",
        .takes_files = true,
        .options = OPTIONS,
        .is_it = webdataset_is_it,
        .build = webdataset_build,
};
