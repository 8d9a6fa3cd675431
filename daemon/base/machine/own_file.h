/* base/machine/own_file.h: files whose bytes nobody else can change. Only these may be mapped.
 *
 * If a mapped file is cut, the process ends with SIGBUS; if it is overwritten, data that were checked change. So a file
 * that others may write, or may cut on a server, is copied first. */
#pragma once

#include <stdint.h>

#include "proto/base/why.h"

enum own_file {
        OWN_FILE_NOT,    /* others may write it, or it lies on a network or FUSE file system */
        OWN_FILE_DISK,   /* only this user and root may write it, on a local file system */
        OWN_FILE_MEMORY, /* a sealed memfd: nobody may write it */
};

/* Classifies an open file. If that is not possible, OWN_FILE_NOT. Folders on the way do not matter: a user who may
 * write them can replace the name, but not the file that is open. Any thread; blocks for an fstat. */
enum own_file own_file_kind(int fd);

/* Makes an empty memfd that can be sealed. The descriptor is the caller's. Returns 0 or an errno. */
int own_file_make(const char *name, int *ret_fd);

/* Seals a memfd: its size and content cannot change any more. No writable mapping may be left. Blocks while the kernel
 * works on its pages, for some seconds at most. Returns 0 or an errno; -EBUSY after that time. */
int own_file_seal(int fd);

/* Copies the first n_bytes of `from` into the empty file `into`; shares blocks if the file system can. Blocks for the
 * disk. Returns 0; -ENODATA if `from` ends before that; another errno. */
int own_file_copy(int from, uint64_t n_bytes, int into);
