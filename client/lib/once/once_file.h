/* lib/once/once_file.h: the small file of a piece of work: where it is, whether it can be trusted, and its lock. */
#pragma once

#include <limits.h>
#include <stdbool.h>

#include "client/lib/reason.h"

struct dli_once_file {
        int fd; /* the file; -1: not open */
        int folder_fd;
        char name[NAME_MAX + 1]; /* in the folder */
        char path[PATH_MAX];     /* for people */
        bool is_locked;
};

/* Opens folder and file, and creates them if they are missing. `dir` NULL: the scope's own. 0 or an errno. */
int dli_once_file_open(struct dli_once_file *file, const char *name, bool cluster, const char *dir, struct why *reason);

/* Closes both, and releases the lock if `unlock`: a fork's child must leave it to its parent. */
void dli_once_file_close(struct dli_once_file *file, bool unlock);

/* Takes the lock if it is free; never waits. If another file has been put in this one's place, switches to that file.
 * Returns 0 with is_locked set accordingly, or an errno. */
int dli_once_file_lock(struct dli_once_file *file, struct why *reason);

void dli_once_file_unlock(struct dli_once_file *file);
