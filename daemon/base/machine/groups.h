/* base/machine/groups.h: a list of groups as people write it, "vision, ml, 1234": names and numbers. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

#include "proto/base/why.h"

struct groups {
        char *text; /* as written; NULL or "": no groups */
        gid_t *groups;
        size_t n_groups;
};

/* Looks the names up, which may ask a directory service and wait for it: not on the main thread of a running daemon.
 * -EINVAL an unknown group, -ENOMEM, or what the lookup failed with; `why` names the group. */
int groups_parse(const char *text, struct groups *ret_groups, struct why *why);

/* A copy. -ENOMEM. */
int groups_copy(const struct groups *groups, struct groups *ret_groups);

/* Takes an empty one. */
void groups_fini(struct groups *groups);
