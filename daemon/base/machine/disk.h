/* base/machine/disk.h: the few things that are done to files again and again, whole or with an error. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "proto/base/why.h"

/* Writes all of it at an offset. 0 or an errno; how much of it is there then is unknown. */
int disk_write_at(int fd, const void *bytes, size_t n_bytes, uint64_t offset);

/* Reads all of it. 0; -ENODATA if the file ends before; another errno. */
int disk_read_at(int fd, void *into, size_t n_bytes, uint64_t offset);

/* Reads a small text of another program into `text`, with a NUL at its end. Follows no link and waits for no FIFO.
 * -EBADMSG: it is not a regular file, has `size` bytes or more, or a NUL in it; another errno. ret_status may be NULL.
 */
int disk_read_text(const char *path, char *text, size_t size, struct stat *ret_status);

/* Makes or replaces a small file, so that at every moment the old or the new one is there in full, also after a power
 * cut: another name (PATH.new), fsync, rename, fsync of the folder. One at a time a path. Blocks for the disk. */
int disk_replace(const char *path, const void *bytes, size_t n_bytes, struct why *why);

/* The same for what is written piece by piece. disk_begin_new() makes PATH.new; its descriptor is the caller's, or an
 * errno. disk_end_new() puts it in place, if `error` is 0; else, an errno of what was done in between, it removes it.
 * Returns 0 or the errno with `why`. */
int disk_begin_new(const char *path, char ret_temporary[PATH_MAX]);
int disk_end_new(int fd, const char *temporary, const char *path, int error, struct why *why);

/* May whoever asks the file system of this file wait without end, because a server or a program answers for it? False
 * for those that are known to be this machine's own. Asks it, so it may wait itself. */
bool disk_may_hang(int fd);

/* fsync of the folder that the path lies in: names that were made or renamed there are on the disk then. */
int disk_sync_folder_of(const char *path, struct why *why);
