/* fetch/origin/origin_unpack.h: an archive's files onto the disk, while the archive still arrives. libarchive reads tar
 * (plain, gzip, zstd, xz, bzip2) and zip.
 *
 * What is in an archive is a stranger's word: each name must be one that plan_path_check() allows (a leading "./" is
 * taken off); links must stay in the folder, devices and FIFOs are refused; two entries of one name, or of names that
 * differ in case alone, are refused. Bounded are the bytes that come out, the files and folders, how deep they lie,
 * what is decompressed without anything coming of it, the free inodes that are taken, and that one compression lies
 * around a tar: one in another would multiply memory and CPU. Every file is written under a name of its own, then
 * renamed, and never through a link that the archive made. Owners, modes (but for the user's), times, ACLs and extended
 * attributes are not taken over. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/base/why.h"

struct unpack_entry {
        const char *path; /* relative to the folder */
        uint64_t n_bytes;
        const uint8_t *sha256; /* 32 bytes; NULL for a link */
        const char *link;      /* what it points to; NULL: a regular file */
};

struct unpack_options {
        const char *archive;  /* its name, for messages */
        int root_fd;          /* the folder; stays the caller's */
        uint64_t limit_bytes; /* of all files together; what is above ends it with -EFBIG */
        uint64_t limit_files; /* files, links, and the folders that they lie in */

        /* The next bytes of the archive, at most n. Blocks until there are some. 0: the end. A negative errno ends it.
         */
        ssize_t (*read)(void *userdata, uint8_t *into, size_t n);
        /* A file is complete. A negative errno ends it. */
        int (*entry)(void *userdata, const struct unpack_entry *entry);
        void *userdata;
        const _Atomic bool *cancel; /* may be NULL */

        /* Already there, as an earlier run left it, with this content? Then it is read past and not written. May be
         * NULL. */
        bool (*is_there)(void *userdata, const char *path, uint64_t n_bytes);
};

/* Blocks until the archive's end. Returns 0; -EBADMSG no archive, damaged or cut; -EINVAL an entry that may not be;
 * -EFBIG above a limit; -ENOSPC, also if few inodes are left; ...; `why` names archive and entry. */
int unpack_run(const struct unpack_options *options, struct why *why);
