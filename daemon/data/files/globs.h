/* data/files/globs.h: paths with *, ? and ** (base/patterns/glob_match.h): the files that are there when the path is
 * opened. The members "._x" that macOS leaves are hidden names, too. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/patterns/glob_match.h"
#include "daemon/data/growing.h"
#include "proto/base/why.h"

/* Appends the regular files below the folder `root` whose paths match, each with a NUL, in the order of their names,
 * and adds their number to *n_names; to *n_hidden, that of files that would match if hidden ones did. ** follows no
 * link to a folder. Returns 0; -ENOENT with `why` if there is none, -E2BIG if there are too many; or another errno.
 * Blocks while folders are read. */
int globs_expand(int root_fd, const char *root, const char *pattern, struct growing *texts, size_t *n_names,
                 uint32_t *n_hidden, struct why *why);
