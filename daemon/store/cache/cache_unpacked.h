/* store/cache/cache_unpacked.h: compressed files, as a folder of this node with plain ones.
 *
 * NAME.jsonl.zst becomes NAME.jsonl in a folder of the cache; what lies beside it and is not compressed (an index, a
 * card) is copied. All CPUs unpack, a file each. The journal of the folder has a record for each file that is complete
 * (its number is a digest of the path, its digest one of the compressed file's state), so after a kill only the rest is
 * unpacked. What is unpacked counts in cache_limit, stays while a dataset has it open, and goes after that, when others
 * need the room. The compressed files are never touched. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/store/cache/cache.h"
#include "proto/base/why.h"

struct unpacked;

struct unpacked_terms {
        const char *root;         /* the folder that has the files; */
        int root_fd;              /* opened (base/machine/beneath.h) */
        const char *const *names; /* of the files, relative to it; */
        size_t n_names;           /* 0: all below it, four levels deep */
        struct cached *cached;    /* whose files they are; NULL: they are what they are */
        uint32_t n_threads;
        const atomic_bool *cancel;                                                         /* may be NULL */
        void (*part)(void *userdata, uint64_t n_done, uint64_t n_total, const char *unit); /* may be NULL */
        void *userdata;
};

/* By its name: .gz, .zst (or .zstd), .xz, .bz2, .lz4 after another ending. */
bool unpacked_is_compressed(const char *name);

/* Blocks until all is unpacked. Returns 0; -ENOENT: none of them is compressed; -EFBIG: cache_limit is too small, with
 * both numbers; -EBADMSG: a file is damaged; -ECANCELED; ... with `why`, which names the file. */
int cache_unpacked_open(struct cache *cache, const struct unpacked_terms *terms, struct unpacked **ret_unpacked,
                        struct why *why);

/* The folder; or the one file, if the terms have one name. */
const char *unpacked_path(const struct unpacked *unpacked);

/* Are the compressed files what they were? Blocks for a stat of each. */
bool unpacked_is_current(const struct unpacked *unpacked);

void unpacked_unref(struct unpacked *unpacked); /* NULL is fine */
