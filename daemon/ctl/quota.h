/* ctl/quota.h: how much of the node one user may take, so that something is always left for the next.
 *
 * A share is a percentage of what other users have not taken: a user who is alone may have the whole percentage, and
 * the more users there are, the less a single one may add. What was granted is never taken back. Root and the daemon's
 * own user have no share, and connections are kept back for them. */
#pragma once

#include <stdint.h>

#include "daemon/base/budget.h"
#include "daemon/base/queue.h"
#include "daemon/base/why.h"

struct server;
struct session;

struct quotas {
        uint32_t connections; /* percent */
        uint32_t jobs;        /* a number */
        uint32_t memory;      /* percent */
};

/* What one user's rings take. Lives as long as the server. */
struct user_memory {
        LIST_ENTRY(user_memory) entry;
        struct budget budget;
};

/* May this connection, which is counted already, stay? -EDQUOT its user has enough of them, -EMFILE the daemon is short
 * of connections or descriptors. */
int quota_connection(const struct session *session, struct why *why);

/* Who pays for the rings of its user: a share of the server's budget, or NULL for an admin, who has no share. -ENOMEM.
 */
int quota_memory(const struct session *session, struct budget **ret_budget);

/* Once no ring is left. */
void quota_fini(struct server *server);

/* May its user begin another job? -EDQUOT. */
int quota_job(const struct session *session, struct why *why);

/* Is a new descriptor of this number among the last ones, which are for admins? -EMFILE. */
int quota_descriptor(const struct session *session, int fd, struct why *why);
