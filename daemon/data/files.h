/* data/files.h: which files a dataset's path means.
 *
 * A path is a folder, one file, or a pattern with braces (data/braces.h), which names files in the sequence in which it
 * expands. Formats see a folder to open and the names of files in it; where they came from does not matter to them.
 *
 * A path that exists as it is written is not a pattern, whatever braces it has. The root of a pattern is the folder
 * before its first brace. */
#pragma once

#include <stddef.h>

#include "proto/base/why.h"

struct files {
        const char *root;         /* the folder that holds all files; it is the one that is opened */
        const char *const *names; /* of the files, relative to the root, in the dataset's order. Never lead out of it */
        size_t n_names;           /* 0: the whole folder, and the format says what it takes of it */
        void *memory[2];          /* of the above. A caller that only says a root leaves it NULL */
};

/* Finds out what `path` means. Symbolic links are followed. Returns 0; -ENOENT or another errno with `why`, which names
 * the path; of a pattern -EINVAL if it is wrong, names a file twice or leads out of its root, -E2BIG if it names too
 * many. Whether its files are there is not looked at. Blocks for a stat(). */
int files_find(const char *path, struct files *ret_files, struct why *why);

/* Of zeroes: nothing. */
void files_fini(struct files *files);

/* Are the files that were named there? One that is missing or not a regular file is an error that names it. Blocks for
 * a stat() a file. Returns 0 or an errno with `why`. */
int files_check(const struct files *files, int root_fd, struct why *why);
