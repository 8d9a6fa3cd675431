/* store/record/version_lock.h: a version of a dataset that is read by somebody, on whatever node, is not removed.
 *
 * Whoever serves a version holds a shared flock on FOLDER/v-....readers, or on the version's folder if that file is not
 * there and cannot be made. Whoever removes versions claims both first, without waiting, and leaves the version where
 * he is refused; a later staging finds it free. The kernel lets go when a process dies, a file server when its node
 * does.
 *
 * Where the file system has no locks (ENOLCK, EOPNOTSUPP), a lease stands for it: a file FOLDER/v-....lease-HOST-PID
 * whose time is renewed by version_lock_renew(); it counts until it is VERSION_LEASE_STALE_S old, by the clock of the
 * file system. A version of which nothing can be locked or written is served unprotected, and `why` says so.
 *
 * All of it blocks as the file system does. */
#pragma once

#include <stdbool.h>

#include "daemon/store/record/record_place.h"
#include "proto/base/why.h"

#define VERSION_LEASE_RENEW_S 60  /* between two renewals */
#define VERSION_LEASE_STALE_S 900 /* a quarter of an hour: fifteen renewals that did not come */

struct version_lock;

/* Keeps the version. Returns 0 with a lock; VERSION_UNPROTECTED (positive; *ret_lock is NULL) with `why`; -ENOENT if
 * the version is gone or being removed; or another errno with `why`. */
#define VERSION_UNPROTECTED 1
int version_lock_take(const struct place *place, const char *version, struct version_lock **ret_lock, struct why *why);

/* Lets go. NULL is fine. Does not block where there are locks; a lease's file is removed. */
void version_lock_free(struct version_lock *lock);

/* Renews a lease; nothing for a lock. Call it every VERSION_LEASE_RENEW_S at the latest. */
void version_lock_renew(struct version_lock *lock);
bool version_lock_is_lease(const struct version_lock *lock);

/* Makes the file that readers lock, so that those who may not write here find it. 0 or an errno. */
int version_lock_prepare(int folder_fd, const char *version);

/* A version that is about to be removed. */
struct version_claim {
        int readers_fd, root_fd; /* -1: none */
};

/* Claims it for removing: nobody begins to read it until version_claim_free(). 0; -EBUSY: somebody reads it. */
int version_claim(int folder_fd, const char *version, struct version_claim *ret_claim);
void version_claim_free(struct version_claim *claim);
