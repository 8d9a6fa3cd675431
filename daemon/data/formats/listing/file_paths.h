/* data/formats/listing/file_paths.h: files that the records of a listing name, which become a field of their own.
 *
 * A path is relative to the folder of its listing and stays within the dataset's root: others could read any file of
 * the daemon's otherwise. Symbolic links in the folder are followed, as everywhere. One thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/data/growing.h"
#include "daemon/data/index/index_builder.h"
#include "proto/base/why.h"

struct file_paths {
        struct growing texts; /* each with its NUL, relative to the root */
        struct growing dirs;  /* struct file_paths_dir, an open-addressed table */
        size_t n_dirs;
        enum field_kind kind;     /* FIELD_PICTURE or FIELD_SOUND if every path that was added ends so */
        enum field_coding coding; /* CODING_NPY if every path ends so */
        bool has_any;
};

void file_paths_fini(struct file_paths *paths);

/* Checks a path and adds it. `listing` is the path of the file that names it, relative to the root. Returns 0 and where
 * it is; -EINVAL with `why` if it is absolute, leads out of the root or is none; -ENOMEM. */
int file_paths_add(struct file_paths *paths, const char *listing, const char *path, size_t n, uint64_t *ret_at,
                   struct why *why);

/* Is there a regular file? */
bool file_paths_exists(const struct file_paths *paths, uint64_t at, int root_fd);

/* Is there nothing at this path? Then its folder is added to the index, so that it notices when the file comes.
 * -ENOMEM, -E2BIG. Blocks for a stat(). */
int file_paths_miss(struct file_paths *paths, uint64_t at, int root_fd, struct index_builder *builder,
                    bool *ret_is_missing);

/* Adds the file of a path to an index, and its folder if it is new there, and writes its row. A file that cannot be
 * looked at, or is not regular, is marked as such; reading it will be that sample's error. -ENOMEM, -E2BIG. Blocks for
 * a stat(). */
int file_paths_give(struct file_paths *paths, uint64_t at, int root_fd, struct index_builder *builder,
                    struct index_row *ret_row);
