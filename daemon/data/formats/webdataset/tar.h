/* data/formats/webdataset/tar.h: which files lie where in a tar archive.
 *
 * Only headers are read; the members' bytes are skipped. This understands what GNU tar, Python's tarfile and libarchive
 * write: ustar with its prefix, GNU's long names, names and sizes of pax headers, sizes in base 256, links, which
 * have the bytes of what they lead to (links.h). An archive that
 * would be served wrongly is refused: one with sparse members, whose bytes are not those of the file; one that is cut,
 * has a damaged header, or continues after its end mark. */
#pragma once

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/why.h"

enum tar_kind {
        TAR_FILE,
        TAR_HARD_LINK,
        TAR_SOFT_LINK,
};

/* A regular file of the archive. */
struct tar_member {
        const char *name;   /* as in the archive; valid until the next one. Shorter than PATH_MAX */
        const char *target; /* of a link; valid as long; "" of others */
        enum tar_kind kind;
        uint64_t header; /* where its header begins, for messages */
        uint64_t offset; /* of its first byte; of a link they are anywhere in the archive */
        uint64_t n_bytes;
        uint64_t end; /* where the next header begins */
};

struct tar;

/* Positive outcome of tar_next(): the archive has ended as it should. */
#define TAR_END 1

/* Reads from `fd`, a regular file of n_bytes, which stays the caller's. Returns 0; -ENOTSUP with `why` if it is
 * compressed; another errno. Blocks as the file system does. */
int tar_open(int fd, uint64_t n_bytes, struct tar **ret_tar, struct why *why);

/* Takes NULL. */
void tar_closep(struct tar **tar);

/* The next regular file, or link to one whose name is that of a sample's field; directories, devices and other links
 * are skipped. At the first such link, all headers are read once, which ends with -ECANCELED soon after *cancel (may be
 * NULL) is true. Returns 0; TAR_END; -EBADMSG or -ENOTSUP with `why`, which names the byte; or another errno of
 * reading. Blocks as the file system does. */
int tar_next(struct tar *tar, const atomic_bool *cancel, struct tar_member *ret_member, struct why *why);

/* The last symbolic link that tar_next() has passed over because the archive does not have what it leads to, as the
 * beginning of a sentence; "": none. */
const char *tar_passed_over(const struct tar *tar);

/* The same as tar_next(), but links come as they are. */
int tar_step(struct tar *tar, struct tar_member *ret_member, struct why *why);

/* A member's name without the "./" that `tar -C DIR .` gives it. */
const char *tar_plain_name(const char *name);

/* Did tar_next() fail because the file ends before the archive does: perhaps it is still being written? */
bool tar_is_cut(const struct tar *tar);
