/* staging/run/stage_files.h: whole files that were made here: hashed, read, written. */
#pragma once

#include <stdint.h>

/* SHA-256 of all of a regular file below `folder_fd`. Blocks at the disk's and the hash's pace. Returns 0 or an errno.
 */
int hash_file_at(int folder_fd, const char *path, uint8_t ret_sha256[32], uint64_t *ret_n_bytes);

/* Reads the first n_bytes. -ENODATA if there are fewer; another errno. */
int read_file_at(int folder_fd, const char *path, void *into, uint64_t n_bytes);

/* Makes the file, in the place of one that may be there. Errno. */
int write_file_at(int folder_fd, const char *path, const void *bytes, uint64_t n_bytes);
