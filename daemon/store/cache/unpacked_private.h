/* store/cache/unpacked_private.h: what cache_unpacked.c, which has the folder, and filling.c, which fills it, share. */
#pragma once

#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>

#include "daemon/base/work/crew.h"
#include "daemon/store/cache/cache_private.h"
#include "daemon/store/cache/compressed.h"

struct filling;

struct unpacked {
        struct cache *cache;
        struct cache_opened opened; /* keeps its folder from being removed */
        char path[PATH_MAX], folder[PATH_MAX];
        int files_fd;
        int root_fd; /* the folder that has the compressed files */
        char *root;
        struct cached *cached; /* whose files they are; NULL */
        struct compressed files;

        pthread_mutex_t lock; /* a leaf; of the journal, of the files' states, and of what follows */
        pthread_cond_t changed;
        struct cache_journal journal;
        uint64_t n_bytes;        /* of plain files, complete */
        _Atomic uint64_t n_room; /* for more; changed under the lock, read without it */
        size_t n_over;           /* files that are complete, or have failed */
        size_t next;             /* of the files, for whoever is free */
        uint64_t n_changes;
        int result; /* of the first file that has failed */
        struct why why;

        _Atomic uint64_t *taken;   /* files at which a thread is: a bit each */
        struct filling **begun;    /* of each file; NULL: it is not begun, or over. Of whoever has taken it */
        _Atomic uint64_t n_read;   /* of compressed files */
        atomic_bool is_over;       /* nobody wants more, or one has failed */
        const atomic_bool *cancel; /* may be NULL */
        struct unpacked_arrival arrival;
        pthread_t threads[CREW_MAX];
        uint32_t n_threads, n_wanted;
};

/* How much room there is, and how much is there. Before the next ones. */
void filling_prepare(struct unpacked *unpacked, const struct unpacked_terms *terms);

/* Unpacks what is not there, with as many threads as the terms say; returns when all is done. Errors as of
 * cache_unpacked_open(). */
int filling_run(struct unpacked *unpacked, const struct unpacked_terms *terms, struct why *why);

/* Begins to, with threads that go on; and ends them, which takes as long as what they are at. */
int filling_start(struct unpacked *unpacked, struct why *why);
void filling_stop(struct unpacked *unpacked);
