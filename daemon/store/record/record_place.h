/* store/record/record_place.h: where a staged dataset lies. Its path is a link that is swapped when a version is whole:
 *
 *   /data/photos                            -> .photos.staged/v-8f3a09b2c4d1
 *   /data/.photos.staged/lock               who is at work (flock)
 *   /data/.photos.staged/stamp              which version is whole and verified (stamp.h); read by the daemon
 *   /data/.photos.staged/progress           how far a run is, a line of JSON; read by the daemon
 *   /data/.photos.staged/v-8f3a.../         a version: named by the first 12 digits of its digest; never changed once
 *                                           it is stamped
 *   /data/.photos.staged/v-8f3a....manifest, .journal, .index, .spool/
 *   /data/.photos.staged/v-8f3a....readers  locked by who reads the version (version_lock.h)
 *
 * Files that two versions share are one file with two names (hard links). The version before the stamped one is kept
 * until the next is stamped, and any version as long as a job reads it. */
#pragma once

#include <limits.h>

#include "proto/base/why.h"

#define PLACE_DIGEST_SIZE  65u /* 64 hexadecimal digits of SHA-256, NUL */
#define PLACE_VERSION_SIZE 16u /* "v-" and 12 digits, NUL */

struct place {
        char path[PATH_MAX];   /* the dataset's path, without a slash at its end */
        char folder[PATH_MAX]; /* .NAME.staged beside it */
};

/* Returns 0, or -EINVAL / -ENAMETOOLONG with `why`: `path` must be absolute, and not the root. Touches nothing. */
int place_init(struct place *place, const char *path, struct why *why);

/* "v-..." of a digest of 64 digits. */
void place_version(const char *digest, char ret_version[PLACE_VERSION_SIZE]);

/* FOLDER/NAMESUFFIX, as in place_file(place, "v-12", ".index", path). -ENAMETOOLONG. */
int place_file(const struct place *place, const char *name, const char *suffix, char ret_path[PATH_MAX]);
