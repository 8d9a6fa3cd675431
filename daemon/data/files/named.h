/* data/files/named.h: the files that a path names, if it is not a folder. Private to this folder. */
#pragma once

#include <stdbool.h>

#include "daemon/data/files/files.h"

/* The file of this path, if `is_exact`; else those of its parts and patterns. The rest as in files_find(), and returns
 * as that. Blocks for a stat() of each part that may be a pattern. */
int named_find(const char *path, bool is_exact, const char *merge, bool follows_links, struct files *ret_files,
               struct why *why);
