/* store/cache/unpack_file.h: the plain bytes of one compressed file. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/base/why.h"

struct unpack_file {
        const char *name; /* for messages */
        int into_fd;
        uint64_t limit_bytes; /* more that come out end it with -EFBIG */

        /* The next bytes of the compressed file, n at most, at `offset`; 0: its end; a negative errno ends it. */
        ssize_t (*read)(void *userdata, void *into, size_t n, uint64_t offset);
        /* How far it is in the compressed file. True: nobody wants it any more. */
        bool (*progress)(void *userdata, uint64_t n_read);
        void *userdata;
};

/* Tells by the bytes what it is compressed with: gzip, zstd, xz, bzip2, lz4; several members or frames after each other
 * are one file. Returns 0 and how many bytes there were; -EBADMSG with `why`, which names the file: it is damaged, or
 * not compressed; -EFBIG; -ECANCELED; ... Blocks. */
int unpack_file_run(const struct unpack_file *file, uint64_t *ret_n_bytes, struct why *why);
