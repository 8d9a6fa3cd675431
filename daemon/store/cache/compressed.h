/* store/cache/compressed.h: the files of a dataset of which some are compressed, and what they are called when they are
 * not. Private to this folder. */
#pragma once

#include <limits.h>

#include "daemon/base/machine/file_stamp.h"
#include "daemon/store/cache/cache_unpacked.h"

struct compressed_file {
        char *path;     /* relative to the root */
        size_t n_plain; /* of the path without its last ending; 0: it is not compressed */
        struct file_stamp stamp;
        uint64_t number, state; /* digests of the plain path, and of what the file is */
        bool is_there;          /* unpacked already, as it is now; */
        uint64_t n_bytes;       /* then: of what has come out of it */
        bool has_failed;
};

struct compressed {
        struct compressed_file *list;
        size_t n, n_room;
        uint64_t n_bytes; /* of all */
};

/* Of a name: the length without .gz, .zst (or .zstd), .xz, .bz2 or .lz4; 0: it has no such ending, or nothing else. */
size_t compressed_plain_length(const char *name);

/* The files of these terms. -ENOENT with `why`: none is compressed; -EEXIST: two would have one name. */
int compressed_find(const struct unpacked_terms *terms, struct compressed *ret_files, struct why *why);
void compressed_fini(struct compressed *files);

void compressed_plain_path(const struct compressed_file *file, char ret_path[PATH_MAX]);

/* A file with this number was unpacked, into n_bytes, or has gone, when it was in this state. */
void compressed_mark(struct compressed *files, uint64_t number, uint64_t state, uint64_t n_bytes, bool is_there);

/* Removes what lies in the folder and came out of none of these files: it came out of others that have gone. */
void compressed_remove_others(const struct compressed *files, int fd);

bool compressed_is_current(const struct compressed *files, int root_fd);
