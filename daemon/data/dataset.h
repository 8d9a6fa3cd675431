/* data/dataset.h: a named folder of samples, or some files of it, and its index, ready to be read.
 *
 * Opening takes the index file of an earlier time if the folder still looks the same, and else builds one
 * (data/format.h) and puts it in the old one's place. Several processes may do so at once: each writes a file of its
 * own and renames it; the last one stays, all of them are whole.
 *
 * An open dataset never changes; any number of threads may use it. It is counted: the last dataset_unref() closes it,
 * so a job can outlive the configuration that named its dataset. */
#pragma once

#include <stdint.h>

#include "daemon/data/format.h"
#include "daemon/data/source.h"
#include "proto/base/why.h"

struct dataset;

struct dataset_spec {
        const char *name;   /* becomes part of a file name: no '/', not beginning with '.' */
        const char *path;   /* a folder, or files (data/files.h) where the format takes them */
        const char *format; /* name of one that there is (data/format.h) */

        /* Counts an index that must lie in memory (data/index/index.h). Outlives the dataset. NULL: nobody counts. */
        struct budget *budget;

        /* An index that was made with the folder, which never changes: a copy of it is taken if it has this digest and
         * the format, without a look at the folder. NULL: none. */
        const char *given_index; /* its path */
        const char *given_digest;
};

enum dataset_how {
        DATASET_LOADED,  /* the index file was there and is current */
        DATASET_BUILT,   /* there was none */
        DATASET_REBUILT, /* it was damaged, of another version or format, or the folder has changed */
        DATASET_GIVEN,   /* the one that came with the folder */
        DATASET_LIVE,    /* its format needs none */
};

/* How an open came about; for the log and for `dlctl status`. */
struct dataset_report {
        enum dataset_how how;
        bool saved;           /* false: the index lives in memory, and is built again next time */
        uint64_t duration_ns; /* of the whole open */
        struct why reason;    /* rebuilt: why; "" otherwise */
        struct why not_saved; /* why it could not be saved; "" otherwise */
        struct why not_taken; /* why the given index was not; "" otherwise */
};

/* Where the index file of a dataset is: INDEX_DIR/NAME.index. Returns 0, -EINVAL for a name that cannot be one, or
 * -ENAMETOOLONG. */
int dataset_index_path(const char *index_dir, const char *name, char ret_path[PATH_MAX], struct why *why);

/* Removes what a killed indexing left behind in the folder: half an index, or a ledger, under its temporary name,
 * untouched for an hour (another process may be at work on a younger one). */
void dataset_sweep(const char *index_dir);

/* Opens a dataset. `index_dir` is made if it alone is missing. `watch` may be NULL. `ret_report` (may be NULL) is
 * filled on success. Returns 0 or an errno with `why`: a folder that is missing or no imagefolder, a format that does
 * not exist, -ECANCELED. Blocks: a moment if the index is current, else about 2 s a million files and what the disk
 * adds. */
int dataset_open(const struct dataset_spec *spec, const char *index_dir, const struct index_watch *watch,
                 struct dataset **ret_dataset, struct dataset_report *ret_report, struct why *why);

struct dataset *dataset_ref(struct dataset *dataset);

/* NULL is fine. */
void dataset_unref(struct dataset *dataset);
void dataset_unrefp(struct dataset **dataset);

/* Holds the folder's descriptor open, or not. A dataset from which nobody is served needs none, and a daemon may have
 * thousands: dataset_open() returns one that is held, once. Each hold ends with a dataset_leave(); any thread.
 * dataset_hold() opens the folder again where nobody held it: -ESTALE if another one lies at its path now, or what
 * open() says. It may block then, as the file system does. */
int dataset_hold(struct dataset *dataset, struct why *why);
void dataset_leave(struct dataset *dataset);

/* Does the folder still look as it did? As source_is_current(); blocks for a stat a directory. */
int dataset_is_current(const struct dataset *dataset, struct why *why);

/* Its folder's mount is gone: opens the path again, and from then on dataset_root_fd() is what lies there, if that is
 * the same folder: all directories and shards of the index with their times and sizes, inodes aside; of a version that
 * was staged their being there. 0 or an errno. Blocks as dataset_is_current(). One thread at a time, which holds the
 * dataset; the others may use the descriptor meanwhile. */
int dataset_reopen(struct dataset *dataset);

const char *dataset_name(const struct dataset *dataset);

/* The folder that its files lie in. */
const char *dataset_root(const struct dataset *dataset);

const struct source *dataset_source(const struct dataset *dataset);

/* Descriptor of the folder (O_PATH), for openat() with the paths of the index. It stays the dataset's, and is there as
 * long as the caller holds it. */
int dataset_root_fd(const struct dataset *dataset);
