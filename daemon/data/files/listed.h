/* data/files/listed.h: the files that a dataset is made of, by name, for formats that index files one after the other. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "daemon/data/files/files.h"
#include "daemon/data/growing.h"
#include "proto/base/why.h"

struct listed {
        const char **names; /* relative to the root, in the dataset's order */
        size_t n;
        struct stat folder; /* the root; of a whole folder from before it was read */
        struct growing memory;
};

/* Lists the named files in their order; or, if none is named, those of the root that is_taken() takes, sorted by bytes.
 * Waits until the folder has rested: `settled_ns` as in index_stamp.h. Returns 0, also for no file at all, or an errno
 * with `why`, which names the root. What was listed is to be given back in either case. Blocks for the folder. */
int listed_find(struct listed *listed, int root_fd, const struct files *files, bool (*is_taken)(const char *name),
                int64_t *settled_ns, struct why *why);

/* Leaves the files of one split (data/files/splits.h), if the path is a folder; where it names the files, `split` must
 * be NULL. Returns 0 or -EINVAL with `why`. */
int listed_choose(struct listed *listed, const struct files *files, const char *split, struct why *why);

/* Takes a struct of zeroes. */
void listed_fini(struct listed *listed);

/* Opens a regular file of the root for reading, and waits until it has rested, as above. Returns the descriptor, which
 * is the caller's, or an errno with `why`, which names root and file. Blocks for the file system. */
int listed_open(int root_fd, const char *root, const char *name, int64_t *settled_ns, struct stat *ret_status,
                struct why *why);

/* Reads n_bytes at an offset that the file had when it was opened. Returns 0; -EBADMSG if it has become shorter; or
 * another errno; `why` names the byte, but not the file. Blocks for the file system. */
int listed_read(int fd, void *into, size_t n_bytes, uint64_t offset, struct why *why);
