/* store/cache/cached_folder.h: the folder of an origin: listing, files in their full length, journal. Private to this
 * folder. */
#pragma once

#include "daemon/store/cache/cache_private.h"

/* Brings the folder to the state of cached->plan: makes what is missing, removes what is not in the plan any more or
 * has changed, and takes over from the journal what is there. Blocks for the disk: 20 us a file that is made. 0 or an
 * errno with `why`; -ECANCELED once *cancel is true (may be NULL). */
int cached_folder_open(struct cached *cached, const atomic_bool *cancel, struct why *why);

/* The listing of an earlier time. -ENOENT: there is none. */
int cached_folder_listing(const struct cached *cached, struct plan **ret_plan, struct why *why);

/* What its journal says is there, before it is opened. */
uint64_t cached_folder_bytes(const struct cached *cached);

/* Numbers the chunks of a plan: the first of each file, and after the last one the number of all. NULL: no memory. The
 * caller's. */
uint64_t *cached_folder_number(const struct plan *plan);
