/* data/formats/parquet/folder.h: which Parquet files a dataset consists of, in which sequence.
 *
 *      DIR/NAME.parquet                        all of a folder, in the order of their names
 *      DIR/data/NAME.parquet                   the same, as the Hugging Face hub has them
 *      DIR/[data/]train-00000-of-00005.parquet of several splits, split = "train" chooses
 *      DIR/[data/]train/NAME.parquet           the same, as folders
 *      DIR/.../NAME.parquet                    the one folder below that has any: a dataset's only configuration
 *
 * Where there are several such folders, one has to be named. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "daemon/data/files/files.h"
#include "daemon/data/growing.h"
#include "proto/base/why.h"

struct parquet_folder {
        struct growing names; /* of the files, relative to the root, each with a NUL */
        uint64_t n_files;
        char part[PATH_MAX];           /* the folder that has them, relative to the root; "" for the root itself */
        struct stat root, part_status; /* from before they were read */
        bool is_named;                 /* the path names the files: other files may come and go */
};

/* Finds the files. `split` is the name of one of the splits, or NULL. `settled_ns` as in index_stamp.h. Returns 0 or an
 * errno with `why`, which names the folder or file. Blocks for reading the folder. */
int parquet_folder_find(struct parquet_folder *folder, int root_fd, const struct files *files, const char *split,
                        int64_t *settled_ns, struct why *why);

/* Are these Parquet files? As `is_it` of struct format. */
int parquet_folder_is_it(int root_fd, const struct files *files);

/* Takes a struct of zeroes. */
void parquet_folder_fini(struct parquet_folder *folder);
