/* store/tree/syncer.h: a thread that keeps the disk busy while others write: it syncs the file system now and then.
 */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

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
