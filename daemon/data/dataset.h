/* data/dataset.h: a named folder of samples, or some files of it, and its index, ready to be read.
 *
 * Opening takes the index file of an earlier time if the folder still looks the same. Otherwise it builds an index
 * (data/format.h) and replaces the old file. Several processes may do so at once: each writes its own file and renames
 * it. The last one stays, and each of them is complete.
 *
 * An open dataset never changes; any number of threads may use it. It is reference-counted: the last dataset_unref()
 * closes it, so a job can outlive the configuration that named its dataset. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/arriving/arriving.h"
#include "daemon/data/format.h"
#include "daemon/data/index/indexing.h"
#include "daemon/data/source.h"
#include "proto/base/why.h"

struct dataset;

struct dataset_spec {
        const char *name;        /* dataset_file_name() makes file names of it: not beginning with '.' */
        const char *path;        /* a folder, or files (data/files/files.h) where the format takes them */
        const char *format;      /* the name of an existing format (data/format.h), or "auto" */
        struct scanner *scanner; /* of the format of a plug-in (data/scanner.h), while it is opened; else NULL */

        /* What else the configuration says: lines "KEY=VALUE" (data/format_options.h). NULL: nothing. */
        const char *options;

        /* May links in the folder lead out of it (base/machine/beneath.h)? */
        bool follows_links;

        /* Counts an index that must be kept in memory (data/index/index.h). Outlives the dataset. NULL: memory is not
         * counted. */
        struct budget *budget;

        /* An index that was made together with the folder, which never changes. If the index has this digest and the
         * format, a copy of it is used, without a look at the folder. NULL: none. */
        const char *given_index;  /* its path */
        const char *given_digest; /* "": any; its options say of which listing it is */

        /* Where its files are filled from as they are read; outlives the dataset. NULL: they are what they are. */
        const struct indexing_origin *origin;

        /* Its files become whole while it is served; of them the first has begun. NULL: they are there. */
        struct arriving *arriving;

        /* Was it staged? Then who replaces a file there mends it, with the same bytes. */
        bool is_staged;
};

enum dataset_how {
        DATASET_LOADED,  /* the index file was there and is current */
        DATASET_BUILT,   /* there was no index file */
        DATASET_REBUILT, /* the file was damaged, of another version or format, or the folder has changed */
        DATASET_GIVEN,   /* the index that came with the folder */
        DATASET_LIVE,    /* its format needs no index */
};

/* How a dataset was opened; for the log and for `dlctl status`. */
struct dataset_report {
        enum dataset_how how;
        bool saved;           /* false: the index is in memory only, and is built again next time */
        uint64_t duration_ns; /* of the whole open */
        struct why reason;    /* if rebuilt: why; "" otherwise */
        struct why not_saved; /* why the index could not be saved; "" otherwise */
        struct why not_taken; /* why the given index was not used; "" otherwise */
};

/* What the names of its files in the folder of indices begin with: its name; or, if that has a '/', as the name of a
 * dataset does that is named by its path, the path's last word and a digest of the whole. -EINVAL: the name is empty or
 * begins with a dot. -ENOMEM. */
int dataset_file_name(const char *name, char ret_text[DLP_NAME_MAX], struct why *why);

/* The path of a dataset's index file: INDEX_DIR/dataset_file_name().index. Returns 0, -EINVAL if the name is not
 * allowed, -ENAMETOOLONG or -ENOMEM. */
int dataset_index_path(const char *index_dir, const char *name, char ret_path[PATH_MAX], struct why *why);

/* Opens a dataset. `index_dir` is made if only its last component is missing. `watch` may be NULL. `ret_report` (may be
 * NULL) is filled on success. Returns 0, or an errno with `why`: the folder is missing or not an imagefolder, the
 * format does not exist, -ECANCELED. Blocks: a moment if the index is current; otherwise about 2 s for a million files,
 * and the time of the disk. */
int dataset_open(const struct dataset_spec *spec, const char *index_dir, const struct index_watch *watch,
                 struct dataset **ret_dataset, struct dataset_report *ret_report, struct why *why);

struct dataset *dataset_ref(struct dataset *dataset);

/* Both take NULL. */
void dataset_unref(struct dataset *dataset);
void dataset_unrefp(struct dataset **dataset);

/* Holds the folder's descriptor open, or lets go of it. A dataset that no job uses needs no descriptor, and a daemon
 * may have thousands of datasets. dataset_open() returns a dataset that is held once. Each hold ends with a
 * dataset_leave(). Any thread. dataset_hold() opens the folder again if it was not held: -ESTALE if a different folder
 * is at its path now, or the error of open(). It may then block, as the file system does. */
int dataset_hold(struct dataset *dataset, struct why *why);
void dataset_leave(struct dataset *dataset);

/* Does the folder still look as it did? As source_is_current(); blocks for a stat of each directory. */
int dataset_is_current(const struct dataset *dataset, struct why *why);

/* A shard that is written to while jobs read from it has its samples elsewhere, or others. Readers notice that by the
 * stamp that it had when it was indexed (struct extent). Returns false if stamps say nothing, because a staging may
 * mend files or they have none; *ret_settled_ns is for the reader (io/reader.h). Any thread. */
bool dataset_has_stamps(const struct dataset *dataset, int64_t *ret_settled_ns);

/* Indexes its files again, in memory, to compare them: a file that was only touched, or has the same samples at the
 * same places, is read on (dataset_has_stamps() says so), and otherwise dataset_has_changed() is true from now on. What
 * has the digest of the dataset has its samples (data/index/index.h). Returns 0 if it is known now; -ECANCELED,
 * -ENOMEM. The dataset must be held. Blocks as opening without an index does. One thread at a time. */
int dataset_compare_bytes(struct dataset *dataset, const atomic_bool *cancel, struct why *why);
bool dataset_has_changed(const struct dataset *dataset);

/* For a folder whose mount is gone: opens the path again. From then on dataset_root_fd() is the folder at the path, if
 * it is the same one: all directories and shards of the index must be there with the same times and sizes (inodes may
 * differ); those of a staged version must only be there. Returns 0 or an errno. Blocks as dataset_is_current(). One
 * thread at a time, which must hold the dataset; the others may use the descriptor meanwhile. */
int dataset_reopen(struct dataset *dataset);

/* ---- several as one ------------------------------------------------------------------------------------------- */

/* A dataset that is made of others, in this sequence (data/joined/joined.h). Each part keeps its folder, its ledger and
 * whatever else is asked about files: that is asked of a part. For the joined one there are only name, source,
 * references, dataset_hold() and dataset_leave(), which are for all parts. 2 to DLP_PARTS_MAX parts, which are open
 * datasets that are not joined themselves; takes references. Errors as joined_open(). */
int dataset_join(struct dataset *const *parts, uint32_t n_parts, const char *name, struct dataset **ret_dataset,
                 struct why *why);

/* How many parts it has: 1, itself, if it is not joined. */
uint32_t dataset_n_parts(const struct dataset *dataset);
struct dataset *dataset_part(struct dataset *dataset, uint32_t idx);

/* The part that has the sample. */
struct dataset *dataset_with(struct dataset *dataset, uint64_t sample);

const char *dataset_name(const struct dataset *dataset);

/* The folder that its files lie in. */
const char *dataset_root(const struct dataset *dataset);

const struct source *dataset_source(const struct dataset *dataset);

/* Descriptor of the folder (O_PATH), for beneath_open() with the paths of the index. The dataset keeps ownership; the
 * descriptor is valid as long as the caller holds the dataset. */
int dataset_root_fd(const struct dataset *dataset);

/* How many hidden files its format has passed over, or its pattern, although they would be a part of it otherwise. Of a
 * stream it is not known: 0. */
uint32_t dataset_n_hidden(const struct dataset *dataset);

/* As in its spec. */
const struct indexing_origin *dataset_origin(const struct dataset *dataset);

/* What the dataset_spec said. */
bool dataset_follows_links(const struct dataset *dataset);
