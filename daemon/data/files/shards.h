/* data/files/shards.h: which files a dataset consists of, in which sequence; one way for all formats of several files.
 *
 *      DIR/NAME.ENDING                         all of a folder, in the order of their names
 *      DIR/data/NAME.ENDING                    the same, as the Hugging Face hub has them
 *      DIR/[data/]train-00000-of-00005.ENDING  of several splits (splits.h), split = "train" chooses
 *      DIR/[data/]train/NAME.ENDING            the same, as folders
 *      DIR/.../NAME.ENDING                     the one folder below that has any: a dataset's only configuration
 *
 * Where there are several such folders, one has to be named. */
#pragma once

#include "daemon/data/files/listed.h"

struct shards_kind {
        const char *what;    /* for messages: "tar archive" */
        const char *pattern; /* of their names: "*.tar" */
        const char *path;    /* what the path of a dataset is */
        bool (*is_taken)(const char *name);
        bool (*is_else_taken)(const char *name); /* in a folder that has none of those; NULL: nothing */
        bool is_common;      /* other data have such names, too: auto looks in the folder itself, not below it */
        bool begins_so;      /* their first bytes prove what they are, whatever lies beside them */
        bool numbers_splits; /* numbered sets are splits, whatever they are called (splits.h) */
        bool is_of_several;  /* without a chosen split, files of all splits are taken: each file is a sample */
};

/* Finds the files. `split` is the name of one of the splits, or NULL; where the path names the files, it must be NULL.
 * Returns as listed_folder(); with `why`, -ENOENT if there is no file, or none of the split, and -EINVAL if one of the
 * splits or folders has to be chosen. */
int shards_find(struct listed *listed, int root_fd, const struct files *files, const struct shards_kind *kind,
                const char *split, int64_t *settled_ns, struct why *why);

/* For is_it() of struct format: the first file, to look into. Of those in folders below, other data must not lie beside
 * them, unless begins_so is set. Returns 1 or 0, or an errno with which nothing can be told. */
int shards_first(int root_fd, const struct files *files, const struct shards_kind *kind, char ret_path[PATH_MAX]);
