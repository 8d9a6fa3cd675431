/* pipeline/catalog/catalog.h: the datasets of the configuration, opened in the background and shared by all jobs that
 * use them. Main thread, except references.
 *
 * A dataset with an origin is served when it has a stamp, as the stamp says (store/record/stamp.h). Once a second
 * catalog_look() reads stamp and progress of each, on a thread of its own, because a shared file system may hang. When
 * a stamp is new, its version is opened; after that, ranks that attach are served from it. The version before stays
 * with the jobs that have it, including their late ranks. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/machine/groups.h"
#include "daemon/base/threads/queue.h"
#include "daemon/base/work/background.h"
#include "daemon/base/work/errand.h"
#include "daemon/base/work/work.h"
#include "daemon/data/dataset.h"
#include "daemon/data/ledger/ledger.h"
#include "daemon/pipeline/catalog/catalog_remote.h"
#include "daemon/pipeline/failure/outage.h"
#include "daemon/store/record/record_progress.h"
#include "daemon/store/record/stamp.h"
#include "daemon/store/record/version_lock.h"
#include "proto/base/why.h"

enum catalog_state {
        CATALOG_CLOSED,   /* not looked at yet */
        CATALOG_STAGING,  /* it has an origin and no stamp: ranks that attach wait */
        CATALOG_INDEXING, /* its index is being opened or built */
        CATALOG_READY,
        CATALOG_FAILED, /* `text` says why; the next attach tries again */
};

/* An open dataset; lives until its last reference is released. */
struct catalog_dataset {
        struct dataset *dataset;
        struct ledger *ledger; /* of its damaged samples */
        struct outage *outage; /* whether it can be read */

        struct remote *remote; /* it lies elsewhere (catalog_remote.h); NULL: its files are here */

        struct unpacked *unpacked; /* its files were compressed (catalog_unpacked.c); NULL: they are read as they are */

        struct remote *feeding;  /* what they are unpacked from, if that lies elsewhere */
        struct arrival *arrival; /* they are served while they are unpacked (catalog_arriving.c); NULL: all are there */

        struct version_lock *lock;          /* of a staged version, against its removal; NULL: not staged */
        TAILQ_ENTRY(catalog_dataset) older; /* in catalog_staged.older; main thread */
        uint64_t kept_until_ns;             /* stays in that list until then, even if unused; main thread */
        char name[DLP_DATASET_MAX];
        _Atomic uint32_t refs;

        /* Of a joined dataset: a reference to each part. Ledger, outage, lock and errors are those of the parts. */
        struct catalog_dataset **parts;
        uint32_t n_parts;                    /* 0: it is not joined */
        TAILQ_ENTRY(catalog_dataset) joined; /* in catalog.joined; main thread */

        struct why doubt; /* files that can probably not be decoded (data/doubts.h); "": none is known */

        /* Errors of samples since it was opened; each time counts. Any worker. */
        pthread_mutex_t error_lock; /* guards last_error; a leaf */
        _Atomic uint64_t n_errors;
        struct why last_error;
};

#define CATALOG_FORMAT_MAX 256u /* bytes with NUL of a format's name, or of a plug-in's with its arguments */

struct catalog_entry {
        TAILQ_ENTRY(catalog_entry) entry;
        char *name;       /* of the configuration; or of a path: as in catalog_paths.c */
        bool is_path;     /* an attach named it by its path: it goes when it has not been used for a while */
        uint64_t used_ns; /* of a path: when it was last asked for, or served from */
        char *path;
        char *options;                /* of the dataset (struct dataset_spec) */
        bool follows_links;           /* as there; never changes */
        char *remote[N_REMOTE_TEXTS]; /* never change, as the next */
        uint32_t n_connections;
        char format[CATALOG_FORMAT_MAX];
        struct groups allow; /* who may use it; no group: everybody */
        uint32_t weight;     /* of each of its jobs */
        enum catalog_state state;
        struct catalog_dataset *open;     /* READY: one reference */
        struct catalog_dataset *arriving; /* for the order of blocks; one reference, or NULL */
        bool cannot_arrive;               /* they have that order as any other: the files need not be unpacked */
        struct why text;                  /* how it was opened, or why it was not */
        struct work work;                 /* how far the opening is */
        bool has_parts;                   /* its format says how much of all it has seen; the opening's thread */
        _Atomic bool cancelled;           /* INDEXING: stop */
        _Atomic bool could_arrive;        /* INDEXING: a job of blocks would not wait for it */
        uint64_t failed_at_ns;            /* FAILED */
        bool was_told;                    /* FAILED: a client has been told; the next attach begins a new attempt */
        bool is_opening;                  /* a background thread is opening it */
        bool is_wanted; /* false: no longer in the configuration; freed when the index thread has ended */
        struct catalog *catalog;

        bool is_checking; /* a look at its folder is running: another one would only hang with it */
        TAILQ_HEAD(, catalog_waiter) waiters;

        struct catalog_staged *staged; /* of a dataset with an origin, else NULL */
};

/* The state of a dataset with an origin. */
struct catalog_staged {
        char *origin; /* without its query, so that it may be shown */
        struct place place;
        struct stamp stamp;                  /* of what is open */
        struct stamp next;                   /* of what is being opened */
        uint64_t mark;                       /* of the stamp that was read last; 0: there was no stamp */
        bool is_looked_at;                   /* at least once */
        bool is_looking;                     /* a look is running: another one would only hang with it */
        TAILQ_HEAD(, catalog_dataset) older; /* older versions, while jobs are served from them */
        char sought[INDEX_DIGEST_SIZE];      /* of the version that was searched for last, */
        uint64_t sought_ns;                  /* and when */
        uint64_t renewed_ns;                 /* when the leases of versions were renewed */
        struct why told;                     /* what was logged last, so that it is logged once */

        struct progress progress;     /* as the staging reported it last */
        uint64_t progress_mark;       /* of the file; 0: there is no file */
        uint64_t progress_changed_ns; /* when the mark last changed: a run whose mark stays the same is dead */
};

/* An attach that waits for a look at a folder. Its memory belongs to the caller. */
struct catalog_waiter {
        TAILQ_ENTRY(catalog_waiter) entry;
        uint64_t since_ns;
        /* The look has ended; or it takes long (`late`), and continues without the waiter. Main thread, called once. */
        void (*done)(struct catalog_waiter *waiter, bool late);
};

struct catalog {
        TAILQ_HEAD(, catalog_entry) entries;
        TAILQ_HEAD(, catalog_dataset) joined; /* while jobs are served from them */
        struct background *background;
        struct ledgers *ledgers;
        char *index_dir;
        struct budget *budget;   /* of memory_limit; NULL: memory is not counted */
        struct cache *cache;     /* of what lies elsewhere; NULL: no URL is a path. Set before the first dataset */
        struct plugins *plugins; /* whose formats datasets may have; NULL: none. Set before the first dataset */
        bool is_ending;          /* starts no new work */
        struct errands *asker;   /* who asks for a path now; NULL: nobody. Set while a request is handled */
        struct errands shared;   /* what the configuration names is opened for all, and nobody is charged */
};

struct catalog_wish {
        const char *name, *path, *format;
        const char *origin;         /* URL; "" or NULL: the dataset is at its path */
        const struct groups *allow; /* who may use it; NULL: everybody */
        uint32_t weight;            /* of each of its jobs (base/threads/fair_queue.h); 0: 1 */
        const char *options;        /* as in struct dataset_spec; NULL: none */
        bool follows_links;         /* as there */
        const char *remote[N_REMOTE_TEXTS];
        uint32_t n_connections; /* to the origin; 0: the cache's own number */
        bool in_blocks;         /* it is asked for in this order: whether it can arrive is looked at first */
};

/* `budget` outlives every dataset that is opened; NULL: memory is not counted. */
int catalog_init(struct catalog *catalog, struct background *background, const char *index_dir, struct budget *budget);

/* Cancels index building. background_stop() must follow. */
void catalog_cancel(struct catalog *catalog);

/* Frees everything and writes the ledgers. The background must have been stopped, and no reference may be left. */
void catalog_fini(struct catalog *catalog);

/* Makes the entries equal to the wishes. New ones are opened; removed or changed ones are released (attached ranks are
 * still served from them, even if `allow` no longer names their user). For all others it checks whether the folder has
 * changed. */
int catalog_configure(struct catalog *catalog, const struct catalog_wish *wishes, size_t n_wishes, struct why *why);

/* Checks in the background whether stamps have changed, and how far stagings are. Call it once a second. */
void catalog_look(struct catalog *catalog);

/* Call it before catalog_get() for a new rank. If no rank is served from the dataset, its folder may have changed and
 * is looked at in the background (one look at a time for each dataset, for all waiters). Returns 1 if there is such a
 * look: done() follows. Returns 0 if there is nothing to wait for. */
int catalog_check(struct catalog *catalog, const char *name, struct catalog_waiter *waiter);

/* A reference to an open dataset. Does not ask any file system. -ENOENT: unknown dataset (`why` lists the known ones).
 * -EAGAIN: it is being staged or indexed (says how far it is). -EIO: it could not be opened (says why; the next call
 * tries again). */
int catalog_get(struct catalog *catalog, const char *name, struct catalog_dataset **ret_dataset, struct why *why);

/* A dataset of compressed files for the order of blocks, which is there once the first file has begun. -ENOTSUP: any
 * order is served as catalog_get() says; -EAGAIN. */
int catalog_get_blocks(struct catalog *catalog, const char *name, struct catalog_dataset **ret_dataset,
                       struct why *why);

/* The same for a job that runs with the content `digest` (may be NULL, or ""): it gets the version with this content,
 * as long as that is on disk; -EAGAIN while it is being searched for. */
int catalog_get_again(struct catalog *catalog, const char *name, const char *digest,
                      struct catalog_dataset **ret_dataset, struct why *why);

/* ---- several datasets as one (catalog_joined.c) ----------------------------------------------------------------- */

/* "a + b" names two datasets, unless the configuration has one of this name. Writes the names, in their one normal
 * spelling, to ret_text: one name, or several with " + " between them. -EINVAL if a name is empty or comes twice, if
 * there are too many, or if the text is too long. */
int catalog_normal_text(struct catalog *catalog, const char *text, char ret_text[DLP_DATASET_MAX], struct why *why);

/* Does the text name several? */
bool catalog_is_joined(struct catalog *catalog, const char *text);

/* The names of such a text, one after the other: `*at` begins at NULL. Returns false after the last one. */
bool catalog_next_name(struct catalog *catalog, const char *text, const char **at, char ret_name[DLP_DATASET_MAX]);

/* As catalog_get_again() for one name; for several, an open dataset that joins them. `digests` are those of the parts
 * that a job was served from before the daemon restarted, as many as there are names; NULL: none. */
int catalog_get_joined(struct catalog *catalog, const char *text, const char *digest, char *const *digests,
                       size_t n_digests, struct catalog_dataset **ret_dataset, struct why *why);

/* The part that has the sample, whose number becomes the part's; the dataset itself if it is not joined. Any thread. */
struct catalog_dataset *catalog_dataset_with(struct catalog_dataset *dataset, uint64_t *sample);

/* outage_is_held() of any part, outage_poke() of each part, and the sum of their outage_n_ended(). Any thread. */
bool catalog_dataset_is_held(struct catalog_dataset *dataset, struct why *ret_why);
void catalog_dataset_poke(struct catalog_dataset *dataset);
uint64_t catalog_dataset_n_ended(struct catalog_dataset *dataset);

/* ---- datasets that are named by their paths (catalog_paths.c) ------------------------------------------------- */

/* The name of a dataset at an absolute path with these options ("KEY=VALUE" lines): equal for the same path and
 * options, and different otherwise. It is the path, and after it the options in braces: "/data/photos
 * {split=\"0:90%\"}"; long options are cut, and a digest of them follows. A " + " in a path is written " \+ ". -EINVAL:
 * the path has characters that cannot be shown, or is too long. */
int catalog_path_name(const char *path, const char *options, char ret_name[DLP_DATASET_MAX], struct why *why);

/* An entry for a path: the one that is there, or a new one, which begins to open. wish->name is that of
 * catalog_path_name(). -ENOSPC: too many are in use; -ENOMEM. */
int catalog_add_path(struct catalog *catalog, const struct catalog_wish *wish, struct why *why);

/* ------------------------------------------------------------------------------------------------------------------ */

struct catalog_dataset *catalog_dataset_ref(struct catalog_dataset *dataset);
void catalog_dataset_unref(struct catalog_dataset *dataset);

/* Records and counts an error of a sample. Returns how many there were before. Any thread. */
uint64_t catalog_dataset_error(struct catalog_dataset *dataset, const char *text);

/* Returns an entry by its name; or NULL, and `why` lists the names. */
struct catalog_entry *catalog_find(struct catalog *catalog, const char *name, struct why *why);

/* A person asks about this dataset: if it could not be opened a while ago, it is tried again, as attaching does. */
void catalog_try_again(struct catalog_entry *entry);

/* What helps who waits for the index, after what is said of it; "": nothing. */
const char *catalog_advice(const struct catalog_entry *entry);

/* What people are shown of it: what is open, or else what is served while it is unpacked; NULL: neither. */
struct catalog_dataset *catalog_shown(const struct catalog_entry *entry);

const char *catalog_state_name(enum catalog_state state);

/* Does the configuration say that it is served while it is being written? */
bool catalog_is_stream(const struct catalog_entry *entry);

/* Is a staging of it running, as far as this node can see? */
bool catalog_is_being_staged(const struct catalog_entry *entry);

/* How far the indexing is, or the staging that this node waits for. Returns false if there is neither. */
bool catalog_progress(struct catalog_entry *entry, struct dlp_progress *ret_progress);

/* A sentence: what a dataset with an origin waits for, or what its staging does. Returns `buffer`. */
const char *catalog_staging_text(const struct catalog_entry *entry, char buffer[DLP_TEXT_MAX]);
