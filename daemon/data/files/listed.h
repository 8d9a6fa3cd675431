/* data/files/listed.h: the files of a folder, by name, for formats that index files one after the other. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "daemon/data/files/files.h"
#include "daemon/data/growing.h"
#include "daemon/data/index/index_builder.h"
#include "proto/base/why.h"

#define LISTED_DEPTH_MAX 4u /* of a part */

struct listed {
        const char **names; /* relative to the root, in the dataset's order */
        size_t n;
        char part[PATH_MAX]; /* the folder that has them, relative to the root; "" for the root itself */
        struct stat folders[1 + LISTED_DEPTH_MAX]; /* the root, and from there to the part, from before each was read */
        struct growing memory;                     /* of the names, each with a NUL */
};

/* Lists the files of the folder `part`, "" for the root, that is_taken() takes, sorted by bytes; none if there is no
 * such folder. Waits until the folders have rested: `settled_ns` as in index_stamp.h. Returns 0, also for no file at
 * all, or an errno with `why`, which names the root. What was listed before is given back, and this is to be given back
 * in either case. Blocks for the folder. */
int listed_folder(struct listed *listed, int root_fd, const char *root, const char *part,
                  bool (*is_taken)(const char *name), int64_t *settled_ns, struct why *why);

/* The same without its files. Positive outcome: there is no such folder. */
#define LISTED_NOT_THERE 1
int listed_note(struct listed *listed, int root_fd, const char *root, const char *part, int64_t *settled_ns,
                struct why *why);

/* The files that the path names, in its order; if it names none, those of the root. Returns as listed_folder(). */
int listed_find(struct listed *listed, int root_fd, const struct files *files, bool (*is_taken)(const char *name),
                int64_t *settled_ns, struct why *why);

/* Adds a name to a list that is made by hand; and when all are there, makes the array of them. -ENOMEM. */
int listed_add(struct listed *listed, const char *name);
int listed_end(struct listed *listed);

/* Adds the folders to an index, so that it notices what comes or goes there; nothing of that concerns a path that names
 * files. Returns 0 or an errno. */
int listed_give_root(const struct listed *listed, const struct files *files, struct index_builder *builder);

/* Takes a struct of zeroes. */
void listed_fini(struct listed *listed);

/* Opens a regular file of the root for reading, and waits until it has rested, as above. Returns the descriptor, which
 * is the caller's, or an errno with `why`, which names root and file. Blocks for the file system. */
int listed_open(int root_fd, const char *root, const char *name, int64_t *settled_ns, struct stat *ret_status,
                struct why *why);

/* Reads n_bytes at an offset that the file had when it was opened. Returns 0; -EBADMSG if it has become shorter; or
 * another errno; `why` names the byte, but not the file. Blocks for the file system. */
int listed_read(int fd, void *into, size_t n_bytes, uint64_t offset, struct why *why);
