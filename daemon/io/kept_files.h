/* io/kept_files.h: files that many requests read parts of, opened once.
 *
 * A shard is read a hundred times a second, so its descriptor stays open until the owner forgets its files, or until
 * another file needs the place: the number of places is bounded. If more files are in use than there are places, those
 * that have a place keep it: with reads in random order it does not matter which. A file is never closed during a read.
 * Closing a file asks the file system, which may not answer: only kept_files_close() closes files.
 *
 * Threads: any. No other lock is taken under this lock, and it is held for some tens of nanoseconds. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/threads/queue.h"
#include "daemon/io/reader.h"

#define KEPT_FILES_MAX 4096u /* never more than a quarter of RLIMIT_NOFILE, either */

struct kept_file {
        int fd;
        _Atomic bool is_direct;     /* open with O_DIRECT; becomes false if reads show that O_DIRECT does not work */
        _Atomic uint64_t looked_ns; /* when it was last looked at whether it has changed */

        /* Guarded by the lock, from here to the end. */
        TAILQ_ENTRY(kept_file) entry; /* in by_use, free or unwanted */
        struct kept_file *next;       /* in its bucket */
        const void *owner;
        uint32_t idx_file;
        bool past_cache;
        bool is_forgotten; /* no longer in a bucket: its last user has it closed */
        uint32_t n_users;
        uint64_t used_ns;
};

struct kept_files {
        pthread_mutex_t lock;
        TAILQ_HEAD(, kept_file) by_use; /* files in a bucket; the least recently used one first */
        TAILQ_HEAD(, kept_file) free;
        TAILQ_HEAD(, kept_file) unwanted; /* files to be closed; they have no users and cannot be found */
        struct kept_file *files;
        struct kept_file **buckets;
        uint32_t n_max, n_buckets;
};

/* Makes as many places as RLIMIT_NOFILE allows. Returns 0 or -ENOMEM. */
int kept_files_init(struct kept_files *files);

/* Closes all files; none may be in use. Takes one whose init has failed. */
void kept_files_fini(struct kept_files *files);

/* The request's file (by owner, idx_file, past_cache) with one more user, or NULL if it is not open. */
struct kept_file *kept_files_find(struct kept_files *files, const struct read_request *request);

/* Is there room for one more file, or one that has not been used for a while and can be closed? Only a guess: other
 * threads may take the place first. */
bool kept_files_have_room(struct kept_files *files);

/* Takes over `fd` as the request's file. If another thread was faster, closes `fd` and returns that thread's file. One
 * more user. Returns NULL if there is no room: then `fd` stays the caller's. */
struct kept_file *kept_files_add(struct kept_files *files, const struct read_request *request, int fd, bool is_direct);

/* One user less. Returns true if a file must now be closed. Does not block. */
bool kept_files_put(struct kept_files *files, struct kept_file *file);

/* The owner's files will be closed, those in use after their last read. Returns true if a file must now be closed. Does
 * not block; closing may block, on a disk that does not answer. */
bool kept_files_forget(struct kept_files *files, const void *owner);

/* Closes the files that must be closed; blocks as closing does. */
void kept_files_close(struct kept_files *files);
