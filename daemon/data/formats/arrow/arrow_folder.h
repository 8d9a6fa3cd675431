/* data/formats/arrow/arrow_folder.h: which Arrow files a dataset consists of, in which sequence.
 *
 *      DIR/state.json          what save_to_disk() wrote: it lists the files
 *      DIR/dataset_dict.json   the same in a folder for each split: DIR/train/state.json, ...
 *      NAME.arrow, NAME.feather   any files, as data/files/shards.h finds them; without those whose names begin with
 *                              "cache-", which "datasets" leaves there, if there are others */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "daemon/data/files/shards.h"
#include "daemon/data/growing.h"
#include "daemon/data/index/indexing_json.h"
#include "proto/base/why.h"

struct arrow_folder {
        struct listed listed;
        struct listed indices;     /* files that say which rows there are, in which sequence */
        struct indexing_json info; /* dataset_info.json */
};

/* Finds the files. `split` is the name of one of the splits, or NULL. `settled_ns` as in index_stamp.h. Returns 0 or an
 * errno with `why`, which names the folder or file. Blocks for a few reads. */
int arrow_folder_find(struct arrow_folder *folder, int root_fd, const struct files *files, const char *split,
                      int64_t *settled_ns, struct why *why);

/* Are these Arrow files? As `is_it` of struct format. */
int arrow_folder_is_it(int root_fd, const struct files *files);

/* Takes a struct of zeroes. */
void arrow_folder_fini(struct arrow_folder *folder);
