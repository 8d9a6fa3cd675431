/* store/tree/lock.h: one run at a time at a place, and nothing of a stranger's is replaced. */
#pragma once

#include "daemon/store/record/record_place.h"
#include "proto/base/why.h"

/* The right to change what lies at this place: one run at a time. Makes the folder. Returns a descriptor (close gives
 * it back); -EBUSY with `why` naming the process and host that is at work; another errno. */
int tree_lock(const struct place *place, struct why *why);

enum path_kind {
        PATH_ABSENT,
        PATH_OURS,  /* a link into the folder */
        PATH_EMPTY, /* a folder with nothing in it */
};

/* What is at the dataset's path: an enum path_kind. -EEXIST with `why` if it is something that must not be replaced. */
int look_at_path(const struct place *place, struct why *why);
