/* base/machine/own_file.h: files whose bytes nobody else can change. Only these may be mapped.
 *
 * A mapped file that is cut ends the process with SIGBUS, and one that is written over changes what was checked
 * before. So whatever others may write, or may cut on a server, is copied first. */
#pragma once

#include <stdint.h>

#include "proto/base/why.h"

enum own_file {
        OWN_FILE_NOT,    /* others may write it, or it lies on a network or FUSE file system */
        OWN_FILE_DISK,   /* only this user and root may write it, on a local file system */
        OWN_FILE_MEMORY, /* a sealed memfd: nobody may write it */
};

/* Which of them an open file is. What cannot be found out is OWN_FILE_NOT. Folders on the way do not matter: whoever
 * may write them can replace the name, not the file that is open. Any thread; blocks for an fstat. */
enum own_file own_file_kind(int fd);

/* Makes an empty memfd that can be sealed. The descriptor is the caller's. Returns 0 or an errno. */
int own_file_make(const char *name, int *ret_fd);

/* Seals a memfd: size and content stay as they are. No writable mapping may be left. Returns 0 or an errno. */
int own_file_seal(int fd);

/* Copies the first n_bytes of `from` into the empty file `into`; by reference where the file system can. Blocks for
 * the disk. Returns 0; -ENODATA if `from` ends before that; another errno. */
int own_file_copy(int from, uint64_t n_bytes, int into);
