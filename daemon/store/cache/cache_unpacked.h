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

/* For who serves files while others are still unpacked. Files are numbered as in the terms, or by their plain paths,
 * and one thread at a time is at a file. Called by the threads that unpack. */
struct unpacked_arrival {
        /* The file that is needed next, of those that are not in `taken` (a bit each). False: none is. */
        bool (*next)(void *userdata, const _Atomic uint64_t *taken, size_t *ret_file);
        /* A file has n_bytes so far, of which *whole were whole records before: sets how far these go now. Returns how
         * many zeros have to follow them. */
        uint32_t (*cut)(void *userdata, size_t file, int fd, uint64_t n_bytes, uint64_t *whole);
        /* What lies at its plain path are whole records, and no more (`is_whole`: and none will follow). */
        void (*grown)(void *userdata, size_t file, bool is_whole);
        /* Reading it from its origin has failed for the n_failed-th time in a row: returns, after a pause, whether to
         * try again. Error 0: it has not failed any more. NULL: nobody waits. */
        bool (*waits)(void *userdata, size_t file, int error, uint32_t n_failed);
        /* It is damaged, and ends with what has come out of it. */
        void (*failed)(void *userdata, size_t file, const struct why *why);
        void *userdata;
};

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
        const struct unpacked_arrival *arrival; /* copied. NULL: all is there before anything is served */
};

/* By its name: .gz, .zst (or .zstd), .xz, .bz2, .lz4 after another ending. */
bool unpacked_is_compressed(const char *name);

/* Blocks until all is unpacked; with an arrival nothing is yet, and `cached` is needed until unpacked_stop(). Returns
 * 0; -ENOENT: none of them is compressed; -EFBIG: cache_limit is too small, with both numbers; -EBADMSG: a file is
 * damaged; -ECANCELED; ... with `why`, which names the file. */
int cache_unpacked_open(struct cache *cache, const struct unpacked_terms *terms, struct unpacked **ret_unpacked,
                        struct why *why);

/* The folder; or the one file, if the terms have one name. */
const char *unpacked_path(const struct unpacked *unpacked);

/* The folder; how many files there are; the path of each below it, which is the caller's to free (NULL: no memory), and
 * its bytes while it is compressed, if it is. */
const char *unpacked_folder(const struct unpacked *unpacked);
size_t unpacked_n_files(const struct unpacked *unpacked);
char *unpacked_file(const struct unpacked *unpacked, size_t file);
uint64_t unpacked_file_bytes(const struct unpacked *unpacked, size_t file);
bool unpacked_was_packed(const struct unpacked *unpacked, size_t file); /* else it is copied */

/* Of an arrival: begins, with threads that go on until all is unpacked. */
int unpacked_start(struct unpacked *unpacked, struct why *why);

/* Of an arrival: more is needed of some file. Any thread; quick. */
void unpacked_hurry(struct unpacked *unpacked);

/* Of an arrival: nothing of it is called from now on. Blocks for what it is at. */
void unpacked_stop(struct unpacked *unpacked);

/* Are the compressed files what they were? Blocks for a stat of each. Those of an origin are: it is listed when it is
 * opened anew, and their times are those of filling. */
bool unpacked_is_current(const struct unpacked *unpacked);

void unpacked_unref(struct unpacked *unpacked); /* NULL is fine */
