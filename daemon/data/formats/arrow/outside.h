/* data/formats/arrow/outside.h: files that rows name instead of holding their bytes. */
#pragma once

#include <limits.h>

#include "daemon/data/formats/arrow/cells.h"
#include "daemon/data/index/index_builder.h"

struct arrow_outside {
        int root_fd;
        const char *root;
        struct index_builder *builder;
        char dir[PATH_MAX]; /* of the file before, which is usually that of the next one */
        uint32_t idx_dir;
};

/* Files are looked for in the dataset's folder `root`, and added to the builder. Both must outlive this. */
void arrow_outside_init(struct arrow_outside *outside, int root_fd, const char *root, struct index_builder *builder);

/* The row of the file whose path is the text in a cell: relative to the dataset's folder, or absolute and within it.
 * Returns 0; -EINVAL with `why` for a path that leads elsewhere; or another errno. Blocks for a read and a stat. */
int arrow_outside_find(struct arrow_outside *outside, int fd, const struct arrow_cell *cell, struct index_row *ret_row,
                       struct why *why);

/* Does nothing for zeroes. */
void arrow_outside_fini(struct arrow_outside *outside);
