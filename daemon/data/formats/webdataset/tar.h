/* data/formats/webdataset/tar.h: which files lie where in a tar archive.
 *
 * Only headers are read; the members' bytes are skipped. This understands what GNU tar, Python's tarfile and libarchive
 * write: ustar with its prefix, GNU's long names, names and sizes of pax headers, sizes in base 256. An archive that
 * would be served wrongly is refused: one with sparse members, whose bytes are not those of the file; one that is cut,
 * has a damaged header, or continues after its end mark. */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/why.h"

/* A regular file of the archive. */
struct tar_member {
        const char *name; /* as in the archive; valid until the next one. Shorter than PATH_MAX */
        uint64_t header;  /* where its header begins, for messages */
        uint64_t offset;  /* of its first byte */
        uint64_t n_bytes;
};

struct tar;

/* Positive outcome of tar_next(): the archive has ended as it should. */
#define TAR_END 1

/* Reads from `fd`, a regular file of n_bytes, which stays the caller's. Returns 0; -ENOTSUP with `why` if it is
 * compressed; another errno. Blocks as the file system does. */
int tar_open(int fd, uint64_t n_bytes, struct tar **ret_tar, struct why *why);

/* Both take NULL. */
void tar_close(struct tar *tar);
void tar_closep(struct tar **tar);

/* The next regular file; directories, links and devices are skipped. Returns 0; TAR_END; -EBADMSG or -ENOTSUP with
 * `why`, which names the byte; or another errno of reading. Blocks as the file system does. */
int tar_next(struct tar *tar, struct tar_member *ret_member, struct why *why);

/* Did tar_next() fail because the file ends before the archive does: perhaps it is still being written? */
bool tar_is_cut(const struct tar *tar);
