/* store/tree/sweep.h: removes versions that nobody needs any longer. */
#pragma once

#include <stddef.h>

/* Removes the versions in the folder that are none of these (n names, "" for none) and that nobody reads, and what lies
 * beside them. What cannot be removed is said in the log and stays. Blocks. */
void sweep_versions(int folder_fd, const char *const *keep, size_t n_keep);
