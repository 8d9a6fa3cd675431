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

struct unpack_stream;

/* Tells by the bytes what it is compressed with: gzip, zstd, xz, bzip2, lz4; several members or frames after each other
 * are one file. -EBADMSG with `why`, which names the file: it is damaged, or not compressed. `file` is copied. Blocks.
 */
int unpack_begin(const struct unpack_file *file, struct unpack_stream **ret_stream, struct why *why);

/* Goes on until n_bytes or a little more have come out. Returns 0; UNPACK_END; -EBADMSG; -EFBIG; -ECANCELED; ... with
 * `why`, which names the file, and then only unpack_end() may follow. Blocks. */
#define UNPACK_END 1
int unpack_go_on(struct unpack_stream *stream, uint64_t n_bytes, struct why *why);

/* How many have come out. */
uint64_t unpack_n_bytes(const struct unpack_stream *stream);

void unpack_end(struct unpack_stream *stream); /* NULL is fine */
