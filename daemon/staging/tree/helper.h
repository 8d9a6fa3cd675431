/* staging/tree/helper.h: the two threads beside the one that writes: one hashes what it writes, one keeps the disk
 * busy.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- a thread that runs one thing while the caller does another -------------------------------------------------- */

struct helper {
        pthread_t thread;
        pthread_mutex_t lock; /* covers what follows; held for a few instructions */
        pthread_cond_t changed;
        void (*run)(void *userdata); /* NULL: nothing to do */
        void *userdata;
        bool is_started;
        bool is_stopped;
};

int helper_start(struct helper *helper); /* 0 or an errno */
void helper_stop(struct helper *helper); /* one that was never started ({ 0 }) is fine */

/* run(userdata) begins on the helper's thread; helper_wait() must come before the next. */
void helper_begin(struct helper *helper, void (*run)(void *userdata), void *userdata);
void helper_wait(struct helper *helper);

/* ---- a thread that syncs a file system now and then ---------------------------------------------------------------
 */

/* syncfs() and not fsync() of each file: that is a commit of the file system's journal a file, a thousand a second at
 * best, and a dataset has a million. It flushes strangers' data, too, and tells us of strangers' errors. */
struct syncer {
        pthread_t thread;
        pthread_mutex_t lock; /* covers what follows; not held while syncing */
        pthread_cond_t changed;
        int fd; /* somewhere on the file system; the caller's. Opened before the first write: tells of errors since */
        uint64_t n_bytes;       /* written since the last sync began */
        uint64_t n_due, n_done; /* syncs asked for; the last of them that was begun later than asked for, and is over */
        uint64_t last_ns;       /* when the last one began */
        int result;             /* of the first that failed: what was lost is lost, so it stays */
        bool is_started;
        bool is_stopped;
};

int syncer_start(struct syncer *syncer, int fd);

/* Returns once a sync that is under way is over. { 0 } is fine. */
void syncer_stop(struct syncer *syncer);

/* So much more was written; a sync begins when it is time. Never blocks. */
void syncer_add(struct syncer *syncer, uint64_t n_bytes);

/* Syncs all that was written until now. Blocks; calls idle(userdata) about twice a second (not NULL). 0 or an errno:
 * something that was written has not reached the disk. */
int syncer_wait(struct syncer *syncer, void (*idle)(void *userdata), void *userdata);
