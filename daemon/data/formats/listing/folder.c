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

#include "daemon/data/files/walked.h"
#include "daemon/data/formats/listing/csv/csv_cell.h"
#include "daemon/data/formats/listing/listing_table.h"
#include "daemon/data/formats/listing/pattern.h"
#include "daemon/data/index/indexing.h"
#include "daemon/data/looks_like.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

struct folder {
        struct record_table table;
        struct pattern pattern;
        struct table_column *columns[PATTERN_PARTS_MAX]; /* NULL: a part without a name */
        struct table_samples samples;
        struct walked walked;  /* a file's name is its path */
        char passed[PATH_MAX]; /* a file that does not fit; "": there is none */
};

static void folder_free(struct folder **folder) {
        if (!*folder)
                return;
        table_fini(&(*folder)->table);
        walked_fini(&(*folder)->walked);
        free(*folder);
}

static const char *folder_path(const struct folder *folder, size_t idx) {
        return walked_text(&folder->walked, walked_file(&folder->walked, idx)->name);
}

static const char *folder_root_of(const struct folder *folder) {
        return folder->table.listing.files->root;
}

static struct why *why_of(const struct folder *folder) {
        return folder->table.listing.why;
}

/* ---- walking --------------------------------------------------------------------------------------------------- */

/* Without a status, `error` says why. */
static int folder_add_file(struct folder *folder, uint32_t dir, const char *path, const struct stat *status,
                           int error) {
        struct pattern_found found[PATTERN_PARTS_MAX];
        int r = pattern_match(&folder->pattern, path, found);

        if (r < 0)
                return why_set(why_of(folder), r, "%s/%s: there are too many ways to read it with the pattern",
                               folder_root_of(folder), path);
        if (r == 0 && error == -EXDEV) /* it may be a folder of samples, which would be left out */
                return why_errno(why_of(folder), error, "%s/%s", folder_root_of(folder), path);
        if (r > 0)
                return walked_add_file(&folder->walked, dir, path, status);
        if (!folder->passed[0])
                strcpy(folder->passed, path);
        return 0;
}

static int folder_add_entry(struct folder *folder, uint32_t idx_dir, int fd, const struct dirent *entry) {
        bool may_be_dir = entry->d_type == DT_DIR || entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN;
        char path[PATH_MAX];
        struct stat status;
        bool is_there;
        int error = walked_path(&folder->walked, idx_dir, entry->d_name, path);

        if (error < 0)
                return error;
        if (!may_be_dir && entry->d_type != DT_REG)
                return 0;
        is_there = beneath_stat_entry(folder->table.listing.root_fd, path, fd, entry->d_name, &status) == 0;
        error = is_there ? 0 : -errno;
        if (is_there && S_ISDIR(status.st_mode)) {
                bool is_too_deep = walked_dir(&folder->walked, idx_dir)->depth >= folder->pattern.n_slashes &&
                                   !folder->pattern.has_slashes;

                return is_too_deep ? 0 : walked_add_dir(&folder->walked, idx_dir, path);
        }
        if (is_there && !S_ISREG(status.st_mode))
                return 0;
        return folder_add_file(folder, idx_dir, path, is_there ? &status : NULL, error);
}

/* A hidden file that fits the pattern is counted; hidden folders are not entered. */
static int folder_pass_over(const struct folder *folder, uint32_t idx_dir, const struct dirent *entry) {
        struct pattern_found found[PATTERN_PARTS_MAX];
        char path[PATH_MAX];

        if ((entry->d_type == DT_REG || entry->d_type == DT_LNK) &&
            walked_path(&folder->walked, idx_dir, entry->d_name, path) == 0 &&
            pattern_match(&folder->pattern, path, found) > 0)
                indexing_count_hidden();
        return 0;
}

static int folder_take(void *userdata, uint32_t idx_dir, int dir_fd, const struct dirent *entry) {
        struct folder *folder = userdata;

        return entry->d_name[0] == '.' ? folder_pass_over(folder, idx_dir, entry)
                                       : folder_add_entry(folder, idx_dir, dir_fd, entry);
}

static int folder_walk(struct folder *folder) {
        struct walked *walked = &folder->walked;
        int r = walked_read_root(walked);

        if (r == 0)
                r = walked_read(walked, 1);
        if (r < 0)
                return r;
        if (walked_n_files(walked) == 0)
                return why_set(why_of(folder), -ENOENT, "%s: no file in it fits the pattern%s%s",
                               folder_root_of(folder), folder->passed[0] ? "; there is, for example, " : "",
                               folder->passed);
        r = walked_sort_files(walked, 0, walked_n_files(walked));
        return r < 0 ? index_builder_refused(r, folder_root_of(folder), why_of(folder)) : 0;
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
        const char *path = folder_path(folder, idx);
        struct why detail;
        int r;

        if (columns_begin_row(&folder->table.columns, 0) < 0)
                return index_builder_refused(-ENOMEM, folder_root_of(folder), why_of(folder));
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

        for (size_t i = 0; i < walked_n_dirs(&folder->walked) && r == 0; i++) {
                struct walked_dir *dir = walked_dir(&folder->walked, i);

                r = index_builder_add_dir(builder, walked_text(&folder->walked, dir->path), &dir->status,
                                          &dir->idx_dir);
        }
        return r;
}

static int folder_give_file(void *userdata, uint64_t row, struct index_builder *builder, struct index_row *ret_row) {
        const struct folder *folder = userdata;
        const struct walked_file *file = walked_file(&folder->walked, row);

        *ret_row = (struct index_row){ .length = file->length };
        return index_builder_add_file(builder, walked_dir(&folder->walked, file->dir)->idx_dir,
                                      text_after_slash(folder_path(folder, row)), file->flags, &ret_row->file);
}

/* What all of them are, by their names. */
static enum field_kind kind_of_files(const struct folder *folder) {
        enum field_kind kind = kind_of_file(folder_path(folder, 0));

        for (size_t i = 1; i < walked_n_files(&folder->walked); i++)
                if (kind_of_file(folder_path(folder, i)) != kind)
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
        folder->walked = (struct walked){ .root_fd = root_fd,
                                          .root = files->root,
                                          .watch = watch,
                                          .why = why,
                                          .take = folder_take,
                                          .userdata = folder };
        r = folder_read_options(folder, options);
        if (r == 0)
                r = folder_walk(folder);
        if (r == 0)
                r = add_columns(folder);
        for (size_t i = 0; r == 0 && i < walked_n_files(&folder->walked); i++)
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
