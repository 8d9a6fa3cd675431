/* pipeline/catalog/catalog_private.h: what the files of the catalog share.
 *
 *   catalog.c         the list; opening in the background      catalog_staged.c    datasets with an origin
 *   catalog_check.c   has a folder changed?                    catalog_versions.c  versions of them
 *   catalog_joined.c  several as one                           catalog_paths.c     named by their paths
 *   catalog_doubts.c  files that cannot be decoded             catalog_progress.c  how far an opening is
 *   catalog_remote.c  datasets that lie elsewhere              catalog_unpacked.c  compressed files
 *   catalog_arriving.c  files that are served while they are unpacked, or read through */
#pragma once

#include "daemon/pipeline/catalog/catalog.h"
#include "daemon/pipeline/catalog/catalog_remote.h"
#include "daemon/store/cache/cache_unpacked.h"

/* What a background thread works on: a copy, because the entry may change in the meantime. */
struct opening {
        struct catalog_entry *entry;
        struct errands *errands; /* of the user who pays for it; NULL: nobody does */
        char path[PATH_MAX], index[PATH_MAX], digest[INDEX_DIGEST_SIZE], format[CATALOG_FORMAT_MAX];
        char *options; /* of the dataset */
        struct place place;
        char version[PLACE_VERSION_SIZE]; /* the version at that place; "": it is not staged */
        struct dataset *dataset;
        struct ledger *ledger;
        struct remote *remote;     /* of a dataset whose path is a URL; else NULL */
        struct unpacked *unpacked; /* of compressed files; else NULL */
        bool is_arriving;          /* opening_arrive() is what is wanted */
        struct arrival *arrival;
        struct version_lock *lock;
        struct why unprotected; /* why the version has no lock; "" otherwise */
        struct dataset_report report;
        struct why doubt;      /* data/doubts.h */
        struct doubts *doubts; /* a look for them that hangs; else NULL */
        struct why why;
        int result;
};

/* Opens the dataset. On a background thread. */
void opening_work(void *userdata);

/* catalog_arriving.c: could a job of blocks be served while these files are unpacked or read through? Looks at names
 * and the first bytes. On a background thread. */
bool opening_could_arrive(const struct opening *opening, const struct dataset_spec *spec,
                          const struct index_watch *watch);

/* catalog_doubts.c: looks at the dataset's files for about max_ns, and gives up some seconds later. On a background
 * thread.
 */
void opening_doubt(struct opening *opening, uint64_t max_ns);

/* Sees to a look that was given up. Main thread, before opening_free(). */
void opening_leave_doubts(struct opening *opening);

/* Takes NULL. What was opened has been taken. */
void opening_free(struct opening *opening);

/* Makes the opened dataset a catalog_dataset with one reference. Returns NULL, with result and why, if it was not
 * opened. Main thread. */
struct catalog_dataset *opening_take(struct opening *opening);

/* Opens what the configuration or the stamp names, in the background. A dataset that is open already is served until
 * then. */
void entry_open(struct catalog_entry *entry);

/* The same, or `arriving`: what catalog_get_blocks() gives. */
void entry_open_as(struct catalog_entry *entry, bool arriving);

/* Main thread; no background work for the entry may be running. */
void entry_free(struct catalog_entry *entry);

/* The dataset cannot be opened: logs that, once for each text if it is staged. */
void entry_fail(struct catalog_entry *entry, int error, const struct why *why);

struct catalog_entry *entry_find(struct catalog *catalog, const char *name); /* or NULL */

/* Whose errand it is to open the dataset, or to look at it: the user who asks for a path pays for the CPU time. For
 * what the configuration names, nobody pays (catalog->shared): several users may wait for it, and it must not be slow
 * because the one who asked first has used up his part. */
struct errands *entry_errands(const struct catalog_entry *entry);

/* Makes an entry and begins to open it; removes one, as soon as nothing works on it. Jobs keep what they have. */
int entry_add(struct catalog *catalog, const struct catalog_wish *wish, bool is_path, struct why *why);
void entry_remove(struct catalog_entry *entry);

/* ---- catalog_arriving.c ----------------------------------------------------------------------------------------- */

struct arrival;

/* Opens what is compressed, to be served while it is unpacked. -ENOTSUP: it cannot be, or need not. On a background
 * thread. What it has begun is ended with the opening or its dataset. */
int opening_arrive(struct opening *opening, struct dataset_spec *spec, const struct index_watch *watch);

/* Ends its threads; before the dataset is closed. All take NULL. */
void arrival_stop(struct arrival *arrival);
void arrival_free(struct arrival *arrival);
bool arrival_is_in_place(const struct arrival *arrival); /* its samples are fetched as any others of its origin */
bool arrival_is_current(const struct arrival *arrival);  /* blocks for a stat of each file */

/* ---- catalog_unpacked.c ----------------------------------------------------------------------------------------- */

/* Are these files, all of which the path names, compressed? */
bool unpacked_is_due(const struct opening *opening, const struct dataset_spec *spec);

/* The files of the path, and the folder that has them, opened. */
int unpacked_find(const struct dataset_spec *spec, struct files *ret_files, int *ret_fd, struct why *why);

/* What the cache needs to unpack them; of these. */
struct unpacked_terms unpacked_terms_of(const struct opening *opening, const struct files *files, int root_fd,
                                        const struct index_watch *watch);

/* Has the cache unpack the files of the spec, whose path is then where they are. On a background thread. */
int opening_unpack(struct opening *opening, struct dataset_spec *spec, const struct index_watch *watch);

/* What it made, if it is not needed any more. */
void opening_drop_unpacked(struct opening *opening);

/* ---- catalog_staged.c ---------------------------------------------------------------------------------------- */

int staged_new(const struct catalog_wish *wish, struct catalog_staged **ret_staged, struct why *why);
void staged_free(struct catalog_staged *staged); /* takes NULL */

/* Is the origin still the same? `staged` is NULL for a dataset without one. */
bool staged_matches(const struct catalog_staged *staged, const char *origin);

/* Where the stamped version lies, its index ("" if none was made) with the digest, and its format. */
int staged_aim(const struct catalog_entry *entry, struct opening *opening);

/* `open` is served from now on. The one before stays with the jobs that have it. */
void staged_take(struct catalog_entry *entry, const struct catalog_dataset *open);

/* ---- catalog_check.c ----------------------------------------------------------------------------------------- */

/* Begins a look at the folder if that makes sense now. */
void entry_check(struct catalog_entry *entry);

/* Ends the wait of all waiters: the look has ended, or the entry is removed. */
void entry_wake_waiters(struct catalog_entry *entry);

/* Waiters that have waited for long continue without the look. Called once a second. */
void catalog_wake_late(struct catalog *catalog);

/* ---- catalog_joined.c ---------------------------------------------------------------------------------------- */

/* Releases what no job is served from any more: only then the parts count as unused. */
void joined_drop_unused(struct catalog *catalog);
void joined_fini(struct catalog *catalog);

/* ---- catalog_paths.c ----------------------------------------------------------------------------------------- */

/* Removes entries of paths that nobody has used for a while. Called once a second. */
void paths_drop_unused(struct catalog *catalog);

/* ---- catalog_versions.c -------------------------------------------------------------------------------------- */

/* An older version that is still open and has this content; or NULL. */
struct catalog_dataset *versions_find(const struct catalog_staged *staged, const char *digest);

/* From now on `open` is only for the jobs that have it already. */
void versions_retire(struct catalog_staged *staged, struct catalog_dataset *open);

/* Releases the versions that no job has any more. */
void versions_drop_unused(struct catalog_staged *staged);
void versions_fini(struct catalog_staged *staged);

/* Searches the disk for the version with this content. Returns whether the search is running. */
bool versions_seek(struct catalog_entry *entry, const char *digest);

/* After a failure: the next look reads the stamp, whether it has changed or not. */
void staged_look_again(struct catalog_entry *entry);
