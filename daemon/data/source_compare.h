/* data/source_compare.h: has a file changed since a source was opened? For sources without an index. */
#pragma once

#include <sys/stat.h>

#include "daemon/data/source_type.h"

/* Compares the file or folder `name` of the root (or an absolute path) with what it was. Returns 0, SOURCE_STALE with
 * `why`, or an errno. Blocks for a stat. */
int source_compare_file(int root_fd, const char *name, const struct stat *was, enum source_compare compare,
                        struct why *why);
