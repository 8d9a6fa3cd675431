/* base/machine/admins.h: who may administer, as people write it: "root, alice, 1002, @ops", users and groups. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "daemon/base/machine/groups.h"
#include "proto/base/why.h"

struct admins {
        uid_t *users;
        size_t n_users;
        struct groups groups;
};

/* Looks the names up, as groups_parse() does and with the same errors. -EINVAL also for the number that stands for all
 * users of other user namespaces together, and for a text that names nobody. */
int admins_parse(const char *text, struct admins *ret_admins, struct why *why);

bool admins_has_user(const struct admins *admins, uid_t user);
bool admins_has_group(const struct admins *admins, gid_t group);

/* Takes an empty one. */
void admins_fini(struct admins *admins);
