/* pipeline/catalog/catalog_private.h: what the files of the catalog know of each other.
 *
 *   catalog.c         the list; opening in the background      catalog_staged.c    datasets with an origin
 *   catalog_check.c   has a folder changed?                    catalog_versions.c  versions of them */
#pragma once

#include "daemon/pipeline/catalog/catalog.h"

/* What a background thread works on: a copy, so that the entry may change meanwhile. */
struct opening {
        struct catalog_entry *entry;
        char path[PATH_MAX], index[PATH_MAX], digest[INDEX_DIGEST_SIZE], format[32];
        struct place place;
        char version[PLACE_VERSION_SIZE]; /* at that place; "": it is not staged */
        struct dataset *dataset;
        struct ledger *ledger;
        struct version_lock *lock;
        struct why unprotected; /* why it has none; "" otherwise */
        struct dataset_report report;
        struct why why;
        int result;
};

/* Background thread: opens it. */
void opening_work(void *userdata);

/* Main thread: makes what was opened a dataset with one reference; NULL, with result and why, if it was not. */
struct catalog_dataset *opening_take(struct opening *opening);

/* Opens what the configuration or the stamp says, in the background. What is open already is served until then. */
void entry_open(struct catalog_entry *entry);

/* Main thread; nothing of it is under way. */
void entry_free(struct catalog_entry *entry);

/* It cannot be opened: says so, once for each text if it is staged. */
void entry_fail(struct catalog_entry *entry, int error, const struct why *why);

struct catalog_entry *entry_find(struct catalog *catalog, const char *name); /* or NULL */

/* ---- catalog_staged.c ---------------------------------------------------------------------------------------- */

int staged_new(const struct catalog_wish *wish, struct catalog_staged **ret_staged, struct why *why);
void staged_free(struct catalog_staged *staged); /* NULL is fine */

/* Is the origin still the same? `staged` is NULL without one. */
bool staged_matches(const struct catalog_staged *staged, const char *origin);

/* Where the stamped version lies, its index ("" if none was made) with its digest, and its format. */
int staged_aim(const struct catalog_entry *entry, struct opening *opening);

/* `open` is what is served from now on; what was until now stays with those who have it. */
void staged_take(struct catalog_entry *entry, const struct catalog_dataset *open);

/* ---- catalog_check.c ----------------------------------------------------------------------------------------- */

/* Begins the look if it makes sense now. */
void entry_check(struct catalog_entry *entry);

/* The look has ended for them, or the entry goes. */
void entry_wake_waiters(struct catalog_entry *entry);

/* Those who have waited for long go on without. Once a second. */
void catalog_wake_late(struct catalog *catalog);

/* ---- catalog_versions.c -------------------------------------------------------------------------------------- */

/* A version before that is still open, of this content; or NULL. */
struct catalog_dataset *versions_find(const struct catalog_staged *staged, const char *digest);

/* `open` is for those alone who have it, from now on. */
void versions_retire(struct catalog_staged *staged, struct catalog_dataset *open);

/* Lets go of those that nobody has. */
void versions_drop_unused(struct catalog_staged *staged);
void versions_fini(struct catalog_staged *staged);

/* Looks on the disk for the version with this content. Returns whether that is under way. */
bool versions_seek(struct catalog_entry *entry, const char *digest);

/* After a failure: the next look reads the stamp whether it changed or not. */
void staged_look_again(struct catalog_entry *entry);
