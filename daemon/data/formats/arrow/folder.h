/* data/formats/arrow/folder.h: which Arrow files a dataset consists of, in which sequence.
 *
 *      DIR/state.json          what save_to_disk() wrote: it lists the files
 *      DIR/dataset_dict.json   the same in a folder for each split: DIR/train/state.json, ...
 *      DIR/NAME.arrow          any files, also NAME.feather, in the order of their names; without those whose names
 * begin with "cache-", which "datasets" leaves there, if there are others */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "daemon/data/files/files.h"
#include "daemon/data/growing.h"
#include "daemon/data/index/indexing_json.h"
#include "proto/base/why.h"

struct arrow_folder {
        struct growing names; /* of the files, relative to the root, each with a NUL */
        uint64_t n_files;
        struct growing indices; /* files that say which rows there are, in which sequence; like `names` */
        uint64_t n_indices;
        char *part;                    /* the folder of the split, relative to the root; "" for the root itself */
        struct stat root, part_status; /* from before they were read */
        struct indexing_json info;     /* dataset_info.json */
        bool is_named;                 /* the path names the files: other files may come and go */
};

/* Finds the files. `split` is the name of one of the splits, or NULL. `settled_ns` as in index_stamp.h. Returns 0 or an
 * errno with `why`, which names the folder or file. Blocks for a few reads. */
int arrow_folder_find(struct arrow_folder *folder, int root_fd, const struct files *files, const char *split,
                      int64_t *settled_ns, struct why *why);

/* Are these Arrow files? As `is_it` of struct format. */
int arrow_folder_is_it(int root_fd, const struct files *files);

/* Takes a struct of zeroes. */
void arrow_folder_fini(struct arrow_folder *folder);
