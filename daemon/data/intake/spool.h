/* data/intake/spool.h: a folder in which the compressed shards of a stream lie unpacked, as files that samples are read from.
 *
 * What is unpacked stays until the stream is closed: later epochs and runs that begin anew need it again, and a shuffle
 * buffer may hold a sample back for as long as it likes. So the whole stream must fit; the limit says how much that may
 * be. One thread. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "proto/base/why.h"

struct spool {
        char *folder; /* NULL: nothing was unpacked yet */
        int fd;       /* of the folder, locked; -1: none */
        uint64_t limit_bytes, used_bytes;
        uint64_t n_files;
};

/* What came of unpacking. */
enum unpacked {
        UNPACKED_WHOLE,
        UNPACKED_CUT,     /* the file ends before the compressed data do: perhaps it is still being written */
        UNPACKED_DAMAGED, /* `why` says where; what came before it is there */
};

/* Is the file compressed in a way that can be unpacked: gzip or zstd? Told by its first bytes: 1, 0, or what reading
 * returned. Blocks for a read. */
int spool_wants(int fd);

/* Makes a folder of its own from `path` on (path.0, path.1, ... if another stream has it), and removes what a killed
 * daemon left there. Returns 0 or an errno with `why`. */
int spool_open(struct spool *spool, const char *path, uint64_t limit_bytes, struct why *why);

/* Makes an empty file. `ret_path` has PATH_MAX bytes; the descriptor is the caller's, who also counts in used_bytes
 * what is written. Returns 0 or an errno with `why`. */
int spool_new_file(struct spool *spool, char *ret_path, int *ret_fd, struct why *why);

/* Unpacks a file. Returns an enum unpacked with the path of the new file, of PATH_MAX bytes, and its descriptor, which
 * is the caller's; or an errno with `why`: -ENOSPC, also if the limit is reached; -ECANCELED by `stop`. */
int spool_unpack(struct spool *spool, int fd, const atomic_bool *stop, char *ret_path, int *ret_fd, struct why *why);

/* Removes the file that was unpacked last; `n_bytes` are those that it has. */
void spool_drop_last(struct spool *spool, uint64_t n_bytes);

/* Removes everything. Takes a struct of zeroes with fd = -1. */
void spool_close(struct spool *spool);
