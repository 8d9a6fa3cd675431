/* pipeline/jobs/user.h: one user of the node, and the accounts that all jobs of this user have in common.
 *
 * Resources are shared between users first: each user who wants some gets the same part, whatever the number of jobs.
 * Then a user's part is shared between that user's jobs. So there are four accounts, each under its own lock or
 * thread: the workers' time, the samples under way, the reading threads, the making of orders; and one for the memory
 * of rings.
 *
 * An account is made when a user attaches for the first time, and lives as long as the server: jobs may end long after
 * they have left the list, and a user who leaves and comes back at once keeps the same account. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "daemon/base/budget.h"
#include "daemon/base/fair_queue.h"
#include "daemon/base/queue.h"
#include "daemon/data/orders/order_table.h"
#include "daemon/io/reader.h"
#include "daemon/pipeline/jobs/shares.h"
#include "daemon/pipeline/memory/scratch_account.h"

struct user {
        LIST_ENTRY(user) entry;
        uid_t uid;
        struct budget budget;           /* main: what rings may take; unused for an admin, who has no limit */
        struct task_user tasks;         /* planner */
        struct read_user reading;       /* the reader's */
        struct scratch_account scratch; /* the pool's */
        struct order_user orders;       /* the order tables' */

        _Alignas(64) struct fair_group time; /* of the workers; written by all of them for each sample */
};

LIST_HEAD(users, user);

/* The account of `uid`; a new one if there is none. NULL: out of memory. Main thread. */
struct user *user_get(struct users *users, uid_t uid);

/* Call it when nothing of any user is left: no job, no ring. */
void users_fini(struct users *users);
