/* base/machine/disk.h: common file operations that either complete or return an error. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "proto/base/why.h"

/* Writes all bytes at an offset. 0 or an errno; after an error, an unknown part of them has been written. */
int disk_write_at(int fd, const void *bytes, size_t n_bytes, uint64_t offset);

/* Reads all bytes. 0; -ENODATA if the file ends before that; another errno. */
int disk_read_at(int fd, void *into, size_t n_bytes, uint64_t offset);

/* Reads a small text of another program into `text`, with a NUL at its end. Follows no link and waits for no FIFO.
 * -EBADMSG: it is not a regular file, has `size` bytes or more, or a NUL in it; another errno. ret_status may be NULL.
 */
int disk_read_text(const char *path, char *text, size_t size, struct stat *ret_status);

/* Makes or replaces a small file. At every moment, also after a power cut, the file is complete, old or new: writes
 * another name (PATH.new), fsync, rename, fsync of the folder. One call at a time for each path. Blocks for the
 * disk. */
int disk_replace(const char *path, const void *bytes, size_t n_bytes, struct why *why);

/* The same for a file that is written piece by piece. disk_begin_new() makes PATH.new and returns its descriptor, which
 * is the caller's, or an errno. disk_end_new() moves it into place if `error` is 0; otherwise, with an errno of what
 * was done in between, it removes the file. Returns 0 or the errno with `why`. */
int disk_begin_new(const char *path, char ret_temporary[PATH_MAX]);
int disk_end_new(int fd, const char *temporary, const char *path, int error, struct why *why);

/* May a call on this file's file system block for ever, because a server or another program answers it? False for file
 * systems that are known to be local. This function asks the file system too, so it may block itself. */
bool disk_may_hang(int fd);

/* fsync of the folder of this path: afterwards, names that were made or renamed there are on the disk. */
int disk_sync_folder_of(const char *path, struct why *why);
