/* store/plan/lookup.h: names below a folder, looked up part by part and never through a link.
 *
 * Somebody may swap a folder for a link while we work: what is opened here lies below the root all the same, or is an
 * error (-ELOOP, -ENOTDIR). A plan's files are sorted, so the folder that was looked up last is kept open. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

struct lookup {
        int root_fd; /* the owner's */
        int dir_fd;  /* of `dir`; -1: none */
        char dir[PATH_MAX];
};

#define LOOKUP_OF(fd) ((struct lookup){ .root_fd = (fd), .dir_fd = -1 })

/* Closes the folder that is kept, not the root. */
void lookup_fini(struct lookup *lookup);

/* Opens the folder that `path` lies in; missing ones are made if `make` is true. Returns its descriptor, which stays
 * the lookup's and is valid until the next call, and where the last part of the path begins; or an errno. */
int lookup_folder_of(struct lookup *lookup, const char *path, bool make, const char **ret_name);

/* openat() of a regular file, which may be waited for by nobody (a FIFO is -EBADMSG). Descriptor: the caller's. */
int lookup_open(struct lookup *lookup, const char *path, int flags);

/* lstat() of it. */
int lookup_stat(struct lookup *lookup, const char *path, struct stat *ret_status);
