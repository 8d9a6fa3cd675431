#include "daemon/base/machine/beneath.h"
#include "daemon/data/format.h"

/* folder: files of a folder that fit a pattern, one a sample. What the pattern has in braces becomes columns, as if a
 * table listed the files: {class}/{name}.jpg gives each picture a class and a name. Samples have the order of their
 * paths, as Python sorts them. Names that begin with a dot are passed over, as a shell does. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/data/formats/listing/csv/csv_cell.h"
#include "daemon/data/formats/listing/listing_table.h"
#include "daemon/data/formats/listing/pattern.h"
#include "daemon/data/formats/name_order.h"
#include "daemon/data/index/index_stamp.h"
#include "daemon/data/index/indexing.h"
#include "daemon/data/index/indexing_sort.h"
#include "daemon/data/looks_like.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

#define NO_PARENT       UINT32_MAX
#define LOOK_UP_ENTRIES 4096u /* directory entries between two words about progress */

struct folder_dir {
        uint64_t path; /* offset into folder.texts: relative to the root */
        uint32_t parent;
        uint32_t depth;     /* slashes that a file in it has in its path */
        uint32_t idx_dir;   /* in the index */
        struct stat status; /* from before it was read */
};

struct folder_file {
        uint64_t path; /* offset into folder.texts */
        uint64_t length;
        uint32_t dir;
        uint32_t flags; /* INDEX_FILE_... */
};

struct folder {
        struct record_table table;
        struct pattern pattern;
        struct table_column *columns[PATTERN_PARTS_MAX]; /* NULL: a part without a name */
        struct table_samples samples;
        struct growing texts, dirs, files;
        int64_t settled_ns;
        uint64_t n_entries;
        uint64_t passed; /* offset into texts of a file that does not fit, plus 1; 0: there is none */
};

static void folder_free(struct folder **folder) {
        if (!*folder)
                return;
        table_fini(&(*folder)->table);
        growing_fini(&(*folder)->texts);
        growing_fini(&(*folder)->dirs);
        growing_fini(&(*folder)->files);
        free(*folder);
}

static const char *folder_text_at(const struct folder *folder, uint64_t offset) {
        return (const char *)folder->texts.bytes + offset;
}

static struct folder_dir *folder_dir_at(const struct folder *folder, size_t idx) {
        return (struct folder_dir *)(void *)folder->dirs.bytes + idx;
}

static struct folder_file *folder_file_at(const struct folder *folder, size_t idx) {
        return (struct folder_file *)(void *)folder->files.bytes + idx;
}

static size_t folder_n_files(const struct folder *folder) {
        return folder->files.n_bytes / sizeof(struct folder_file);
}

static const char *folder_root_of(const struct folder *folder) {
        return folder->table.listing.files->root;
}

static struct why *why_of(const struct folder *folder) {
        return folder->table.listing.why;
}

/* ---- walking --------------------------------------------------------------------------------------------------- */

static int folder_add_text(struct folder *folder, const char *path, uint64_t *ret_at) {
        *ret_at = folder->texts.n_bytes;
        return growing_append(&folder->texts, path, strlen(path) + 1);
}

static int folder_add_dir(struct folder *folder, uint32_t parent, const char *path) {
        struct folder_dir dir = { .parent = parent };
        int r = folder->dirs.n_bytes / sizeof(dir) < INDEX_DIRS_MAX ? folder_add_text(folder, path, &dir.path) : -E2BIG;

        if (parent != NO_PARENT)
                dir.depth = folder_dir_at(folder, parent)->depth + 1;
        if (r == 0)
                r = growing_append(&folder->dirs, &dir, sizeof(dir));
        return r < 0 ? index_builder_refused(r, folder->table.listing.files->root, folder->table.listing.why) : 0;
}

/* Without a status, `error` says why. */
static int folder_add_file(struct folder *folder, uint32_t dir, const char *path, const struct stat *status,
                           int error) {
        struct pattern_found found[PATTERN_PARTS_MAX];
        struct folder_file file = { .dir = dir };
        int r = pattern_match(&folder->pattern, path, found);

        if (r < 0)
                return why_set(why_of(folder), r, "%s/%s: there are too many ways to read it with the pattern",
                               folder_root_of(folder), path);
        if (r == 0 && error == -EXDEV) /* it may be a folder of samples, which would be left out */
                return why_errno(why_of(folder), error, "%s/%s", folder_root_of(folder), path);
        if (r == 0 && folder->passed > 0)
                return 0;
        if (!status)
                file.flags = INDEX_FILE_UNREACHABLE;
        else
                file.length = (uint64_t)status->st_size;
        if (folder_add_text(folder, path, &file.path) < 0)
                return index_builder_refused(-ENOMEM, folder->table.listing.files->root, folder->table.listing.why);
        if (r == 0)
                folder->passed = file.path + 1;
        else if (growing_append(&folder->files, &file, sizeof(file)) < 0)
                return index_builder_refused(-ENOMEM, folder->table.listing.files->root, folder->table.listing.why);
        return 0;
}

static int folder_add_entry(struct folder *folder, uint32_t idx_dir, int fd, const struct dirent *entry) {
        const struct folder_dir *dir = folder_dir_at(folder, idx_dir);
        bool may_be_dir = entry->d_type == DT_DIR || entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN;
        const char *above = folder_text_at(folder, dir->path);
        char path[PATH_MAX];
        struct stat status;
        bool is_there;
        int error, n = snprintf(path, sizeof(path), "%s%s%s", above, above[0] ? "/" : "", entry->d_name);

        if (n < 0 || (size_t)n >= sizeof(path))
                return why_set(why_of(folder), -ENAMETOOLONG, "%s/%s...: the path has more than %d bytes",
                               folder_root_of(folder), path, PATH_MAX - 1);
        if (!may_be_dir && entry->d_type != DT_REG)
                return 0;
        is_there = beneath_stat_entry(folder->table.listing.root_fd, path, fd, entry->d_name, &status) == 0;
        error = is_there ? 0 : -errno;
        if (is_there && S_ISDIR(status.st_mode)) {
                bool is_too_deep = dir->depth >= folder->pattern.n_slashes && !folder->pattern.has_slashes;

                return is_too_deep ? 0 : folder_add_dir(folder, idx_dir, path);
        }
        if (is_there && !S_ISREG(status.st_mode))
                return 0;
        return folder_add_file(folder, idx_dir, path, is_there ? &status : NULL, error);
}

/* Is this directory also one of its own parents? Then a link leads back to it, and following it would never end. */
static int folder_check_loop(const struct folder *folder, uint32_t idx) {
        const struct folder_dir *dir = folder_dir_at(folder, idx);

        for (uint32_t above = dir->parent; above != NO_PARENT; above = folder_dir_at(folder, above)->parent)
                if (folder_dir_at(folder, above)->status.st_dev == dir->status.st_dev &&
                    folder_dir_at(folder, above)->status.st_ino == dir->status.st_ino)
                        return why_set(why_of(folder), -ELOOP,
                                       "%s/%s: this link leads back to a folder that contains it; remove the link",
                                       folder_root_of(folder), folder_text_at(folder, dir->path));
        return 0;
}

static int folder_look_up(struct folder *folder) {
        const struct index_watch *watch = folder->table.listing.watch;

        if (indexing_is_over())
                return why_set(why_of(folder), -ECANCELED, "%s: indexing was cancelled", folder_root_of(folder));
        if (folder->n_entries++ % LOOK_UP_ENTRIES != 0 || !watch)
                return 0;
        if (watch->progress)
                watch->progress(watch->userdata, folder_n_files(folder));
        if (watch->part) /* how many there are in all is known at the end */
                watch->part(watch->userdata, folder_n_files(folder), 0, "files");
        return 0;
}

/* A hidden file that fits the pattern is counted; hidden folders are not entered. */
static int folder_pass_over(const struct folder *folder, uint32_t idx_dir, const struct dirent *entry) {
        const char *above = folder_text_at(folder, folder_dir_at(folder, idx_dir)->path);
        struct pattern_found found[PATTERN_PARTS_MAX];
        char path[PATH_MAX];
        int n = snprintf(path, sizeof(path), "%s%s%s", above, above[0] ? "/" : "", entry->d_name);

        if ((entry->d_type == DT_REG || entry->d_type == DT_LNK) && n > 0 && (size_t)n < sizeof(path) &&
            pattern_match(&folder->pattern, path, found) > 0)
                indexing_count_hidden();
        return 0;
}

static int read_entries(struct folder *folder, uint32_t idx, DIR *dir) {
        for (;;) {
                const struct dirent *entry;
                int r = folder_look_up(folder);

                if (r < 0)
                        return r;
                errno = 0;
                entry = readdir(dir);
                if (!entry)
                        return errno == 0 ? 0
                                          : why_errno(why_of(folder), -errno,
                                                      "%s/%s: the folder cannot be read to its end",
                                                      folder_root_of(folder),
                                                      folder_text_at(folder, folder_dir_at(folder, idx)->path));
                r = entry->d_name[0] == '.' ? folder_pass_over(folder, idx, entry)
                                            : folder_add_entry(folder, idx, dirfd(dir), entry);
                if (r < 0)
                        return r;
        }
}

static int folder_read_dir(struct folder *folder, uint32_t idx) {
        const char *path = folder_text_at(folder, folder_dir_at(folder, idx)->path);
        int fd = beneath_open(folder->table.listing.root_fd, path[0] ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        int r = fd < 0 ? -errno : index_settle(fd, &folder->settled_ns, &folder_dir_at(folder, idx)->status);
        DIR *dir = r == 0 ? fdopendir(fd) : NULL;

        if (r == 0 && !dir)
                r = -errno;
        if (r < 0) {
                closep(&fd);
                return why_errno(why_of(folder), r, "%s/%s: the folder cannot be read", folder_root_of(folder), path);
        }
        r = folder_check_loop(folder, idx);
        if (r == 0)
                r = read_entries(folder, idx, dir);
        closedir(dir);
        return r;
}

static int folder_compare_files(const void *a, const void *b, void *texts) {
        return name_compare((const char *)texts + ((const struct folder_file *)a)->path,
                            (const char *)texts + ((const struct folder_file *)b)->path);
}

static int folder_walk(struct folder *folder) {
        int r = folder_add_dir(folder, NO_PARENT, "");

        for (uint32_t i = 0; r == 0 && i < folder->dirs.n_bytes / sizeof(struct folder_dir); i++)
                r = folder_read_dir(folder, i);
        if (r < 0)
                return r;
        if (folder_n_files(folder) == 0)
                return why_set(why_of(folder), -ENOENT, "%s: no file in it fits the pattern%s%s",
                               folder_root_of(folder), folder->passed ? "; there is, for example, " : "",
                               folder->passed ? folder_text_at(folder, folder->passed - 1) : "");
        r = indexing_sort(folder_file_at(folder, 0), folder_n_files(folder), sizeof(struct folder_file),
                          folder_compare_files, folder->texts.bytes);
        return r < 0 ? index_builder_refused(r, folder->table.listing.files->root, folder->table.listing.why) : 0;
}

/* ---- columns --------------------------------------------------------------------------------------------------- */

static int add_columns(struct folder *folder) {
        struct why detail;

        for (size_t i = 0; i < folder->pattern.n; i++) {
                const char *name = folder->pattern.parts[i].name;
                int r = name[0] ? table_find_column(&folder->table, name, strlen(name), &folder->columns[i], &detail)
                                : 0;

                if (r < 0)
                        return why_set(why_of(folder), r, "%s: pattern: %s", folder_root_of(folder), detail.text);
        }
        return 0;
}

static int folder_take_file(struct folder *folder, size_t idx) {
        struct pattern_found found[PATTERN_PARTS_MAX];
        const char *path = folder_text_at(folder, folder_file_at(folder, idx)->path);
        struct why detail;
        int r;

        if (columns_begin_row(&folder->table.columns, 0) < 0)
                return index_builder_refused(-ENOMEM, folder->table.listing.files->root, folder->table.listing.why);
        folder->table.listing.n_samples++;
        r = pattern_match(&folder->pattern, path, found) > 0 ? 0 : -EINVAL; /* it did before */
        for (size_t i = 0; i < folder->pattern.n && r == 0; i++)
                if (folder->columns[i])
                        r = table_keep_text(&folder->table, folder->columns[i], found[i].at, found[i].n, &detail);
        if (r == 0)
                r = table_end_record(&folder->table, &detail);
        return r < 0 ? why_set(why_of(folder), r, "%s/%s: %s", folder_root_of(folder), path, detail.text) : 0;
}

/* ---- the index ------------------------------------------------------------------------------------------------- */

static int give_dirs(void *userdata, struct index_builder *builder) {
        struct folder *folder = userdata;
        int r = 0;

        for (size_t i = 0; i < folder->dirs.n_bytes / sizeof(struct folder_dir) && r == 0; i++) {
                struct folder_dir *dir = folder_dir_at(folder, i);

                r = index_builder_add_dir(builder, folder_text_at(folder, dir->path), &dir->status, &dir->idx_dir);
        }
        return r;
}

static int folder_give_file(void *userdata, uint64_t row, struct index_builder *builder, struct index_row *ret_row) {
        const struct folder *folder = userdata;
        const struct folder_file *file = folder_file_at(folder, row);
        const char *path = folder_text_at(folder, file->path);

        *ret_row = (struct index_row){ .length = file->length };
        return index_builder_add_file(builder, folder_dir_at(folder, file->dir)->idx_dir, text_after_slash(path),
                                      file->flags, &ret_row->file);
}

/* What all of them are, by their names. */
static enum field_kind kind_of_files(const struct folder *folder) {
        enum field_kind kind = kind_of_file(folder_text_at(folder, folder_file_at(folder, 0)->path));

        for (size_t i = 1; i < folder_n_files(folder); i++)
                if (kind_of_file(folder_text_at(folder, folder_file_at(folder, i)->path)) != kind)
                        return FIELD_BYTES;
        return kind;
}

static int folder_read_options(struct folder *folder, const struct format_options *options) {
        const char *text = format_option(options, "pattern"), *label = format_option(options, "label");
        struct why detail;
        int r;

        if (!text)
                return why_set(why_of(folder), -EINVAL,
                               "%s: the format folder needs pattern, which says which files are samples, as in "
                               "pattern = \"{class}/{name}.jpg\"",
                               folder_root_of(folder));
        r = pattern_parse(text, &folder->pattern, &detail);
        if (r < 0)
                return why_set(why_of(folder), r, "%s: %s", folder_root_of(folder), detail.text);
        for (size_t i = 0; i < folder->pattern.n && !label; i++)
                if (strcmp(folder->pattern.parts[i].name, "class") == 0)
                        label = "class";
        r = table_init(&folder->table, format_option(options, "files"), NULL, label);
        if (r == 0 && !format_option(options, "files"))
                folder->table.files.n = 0; /* no guesses */
        return r;
}

static int folder_build(int root_fd, const struct files *files, const struct format_options *options,
                        const struct index_watch *watch, struct index_builder **ret_builder, struct why *why) {
        _cleanup_(folder_free) struct folder *folder = calloc(1, sizeof(*folder));
        int r;

        if (!folder)
                return why_set(why, -ENOMEM, "%s: no memory for its columns", files->root);
        folder->table.listing = (struct text_listing){
                .root_fd = root_fd, .files = files, .watch = watch, .why = why, .format = "folder"
        };
        folder->table.syntax = COLUMNS_CSV;
        r = folder_read_options(folder, options);
        if (r == 0)
                r = folder_walk(folder);
        if (r == 0)
                r = add_columns(folder);
        for (size_t i = 0; r == 0 && i < folder_n_files(folder); i++)
                r = folder_take_file(folder, i);
        if (r < 0)
                return r;
        folder->samples = (struct table_samples){

                .kind = kind_of_files(folder), .begin = give_dirs, .give = folder_give_file, .userdata = folder
        };
        folder->table.samples = &folder->samples;
        return table_make_index(&folder->table, ret_builder);
}

static const struct setting OPTIONS[] = {
        OPTION_FILES,
        { .name = "pattern",
          .kind = SETTING_OPTIONAL,
          .max = 1023,
          .prose = "The files that are samples, as in \"{class}/{name}.jpg\". The format needs it." },
        OPTION_LABEL,
        { 0 },
};

/* Told by its option, never by files alone: a pattern cannot be guessed. */
const struct format format_folder = {
        .name = "folder",
        .doc = "A folder of files whose paths fit the `pattern`. Each such file is a sample, in the order of their "
               "paths, as Python sorts them; other files have no effect.",
        .example = "path = \"/data/faces\" pattern = \"{age}_{gender}_{name}.jpg\"",
        .options = OPTIONS,
        .build = folder_build,
};
