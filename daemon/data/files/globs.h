/* data/files/globs.h: paths with *, ? and **, as the shell has them: the files that are there when the path is opened.
 *
 * * and ? stand for anything within a name, ** as a whole name for any number of folders. Hidden names, and the members
 * "._x" that macOS leaves, match only where the pattern itself begins with a dot. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/data/growing.h"
#include "proto/base/why.h"

#define GLOB_CHARACTERS "*?"

/* Appends the regular files below the folder `root` whose paths match, each with a NUL, in the order of their names,
 * and adds their number to *n_names; to *n_hidden, that of files that would match if hidden ones did. ** follows no
 * link to a folder. Returns 0; -ENOENT with `why` if there is none, -E2BIG if there are too many; or another errno.
 * Blocks while folders are read. */
int globs_expand(int root_fd, const char *root, const char *pattern, struct growing *texts, size_t *n_names,
                 uint32_t *n_hidden, struct why *why);
