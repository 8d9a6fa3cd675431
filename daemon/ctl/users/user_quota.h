/* ctl/users/user_quota.h: how much of the node one user may take, so that something is always left for the next user.
 *
 * A share is a percentage of what other users have not taken: a single user may have the whole percentage, and the more
 * users there are, the less each may take. The daemon never takes back what it granted. Admins
 * have no limit, and connections are reserved for them. */
#pragma once

#include <stdint.h>

#include "daemon/base/budget.h"
#include "daemon/pipeline/jobs/user.h"
#include "proto/base/why.h"

struct server;
struct session;

/* May this connection, which is already counted, stay? -EDQUOT: its user has reached the limit; -EMFILE: the daemon is
 * short of connections or descriptors. */
int quota_connection(const struct session *session, struct why *why);

/* The account of the session's user, and the budget that pays for rings: that of the user, or NULL for an admin, who
 * has no limit. -ENOMEM. */
int quota_user(const struct session *session, struct user **ret_user, struct budget **ret_budget);

/* May the session's user begin another job? -EDQUOT. */
int quota_job(const struct session *session, struct why *why);

/* Is a new descriptor with this number among the last ones, which are reserved for admins? -EMFILE. */
int quota_descriptor(const struct session *session, int fd, struct why *why);
