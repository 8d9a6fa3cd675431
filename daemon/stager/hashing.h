/* stager/hashing.h: SHA-256 of a file that was made here. */
#pragma once

#include <stdint.h>

/* Reads all of a regular file below `folder_fd`. Blocks at the disk's and the hash's pace. Returns 0 or an errno. */
int hash_file_at(int folder_fd, const char *path, uint8_t ret_sha256[32], uint64_t *ret_n_bytes);
