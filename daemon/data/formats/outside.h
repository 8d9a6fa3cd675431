/* data/formats/outside.h: files that the rows of a table name instead of holding their bytes. */
#pragma once

#include <limits.h>

#include "daemon/data/index/index_builder.h"

struct outside_files {
        int root_fd;
        const char *root;
        struct index_builder *builder;
};

/* Files are looked for in the dataset's folder `root`, and added to the builder. Both must outlive this. */
void outside_init(struct outside_files *outside, int root_fd, const char *root, struct index_builder *builder);

/* May a path have this many bytes? Returns 0, or -ENAMETOOLONG with `why`. */
int outside_check_length(uint64_t n_bytes, struct why *why);

/* The row of the file with this path of n_bytes: relative to the dataset's folder, or absolute and within it. The byte
 * after it is NUL. Returns 0; -EINVAL with `why` for a path that leads elsewhere; or another errno. Blocks for a
 * stat. */
int outside_find(struct outside_files *outside, const char *path, uint64_t n_bytes, struct index_row *ret_row,
                 struct why *why);
