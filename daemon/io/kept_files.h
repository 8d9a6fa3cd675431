/* io/kept_files.h: files that many requests read parts of, opened once.
 *
 * A shard is read a hundred times a second, so its descriptor stays open until somebody says that the dataset is done
 * with, or until another file needs the place: there is room for a bounded number. Where more files are in use than
 * have room, those that have it keep it: with reads in random order it does not matter which. A file that is read at
 * this moment is never closed. Closing asks the file system, which may not answer: only kept_files_close() does it.
 *
 * Threads: any; the lock is a leaf and is held for some tens of nanoseconds. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/queue.h"
#include "daemon/io/reader.h"

#define KEPT_FILES_MAX 4096u /* and never more than a quarter of RLIMIT_NOFILE */

struct kept_file {
        int fd;
        _Atomic bool is_direct; /* open with O_DIRECT; becomes false if that turns out not to work */

        /* The lock's, from here to the end. */
        TAILQ_ENTRY(kept_file) entry; /* by_use, free or unwanted */
        struct kept_file *next;       /* in its bucket */
        const void *owner;
        uint32_t idx_file;
        bool past_cache;
        bool is_forgotten; /* in no bucket any more: the last user closes it */
        uint32_t n_users;
        uint64_t used_ns;
};

struct kept_files {
        pthread_mutex_t lock;
        TAILQ_HEAD(, kept_file) by_use; /* in a bucket; the least recently used first */
        TAILQ_HEAD(, kept_file) free;
        TAILQ_HEAD(, kept_file) unwanted; /* to be closed; nobody uses or finds them */
        struct kept_file *files;
        struct kept_file **buckets;
        uint32_t n_max, n_buckets;
};

/* Room for as many as RLIMIT_NOFILE lets us. 0 or -ENOMEM. */
int kept_files_init(struct kept_files *files);

/* Closes all; nobody may use one. Takes one whose init failed. */
void kept_files_fini(struct kept_files *files);

/* The request's file (by owner, idx_file, past_cache) with one user more, or NULL if it is not open. */
struct kept_file *kept_files_find(struct kept_files *files, const struct read_request *request);

/* Is there room for one more, or something that was not used for a while to make room of? A guess: others may be
 * faster.
 */
bool kept_files_have_room(struct kept_files *files);

/* Takes over `fd` as the request's file; if somebody was faster, closes it and hands out theirs. One user more. NULL if
 * there is no room: `fd` stays the caller's then. */
struct kept_file *kept_files_add(struct kept_files *files, const struct read_request *request, int fd, bool is_direct);

/* One user less. Returns true if there is something to be closed now. Does not block. */
bool kept_files_put(struct kept_files *files, struct kept_file *file);

/* The owner's are to be closed, those in use as soon as they are not. Returns true if there is something to be closed
 * now. Does not block: closing may, on a disk that does not answer. */
bool kept_files_forget(struct kept_files *files, const void *owner);

/* Closes what is to be closed; blocks as closing does. */
void kept_files_close(struct kept_files *files);
