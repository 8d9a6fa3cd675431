/* pipeline/jobs/user.h: one user of the node, and the accounts that all jobs of this user have in common.
 *
 * Resources are shared between users first: each user who wants some gets the same part, whatever the number of jobs.
 * Then a user's part is shared between that user's households, and a household's between its jobs. So there are
 * accounts on two levels, each under its own lock or thread: the workers' time, the samples under way, the reading
 * threads, the memory for large pictures. Two are of the user alone: the making of orders, and the memory of rings.
 * What else its requests cause is its errands.
 *
 * A household is the jobs of a user that live in one pod, batch job or service (proto/job_group.h). In a cluster all
 * pods may well have the same user, and are strangers to each other nevertheless. A user may make any number of them,
 * so nothing that protects others may depend on a household; limits are of users.
 *
 * A user's account is made when he asks for something for the first time, and lives as long as the server: jobs may end
 * long after they have left the list, and a user who leaves and comes back at once keeps the same account. A household
 * that has no job any more is kept until the next one is made. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

#include "daemon/base/budget.h"
#include "daemon/base/threads/fair_queue.h"
#include "daemon/base/threads/queue.h"
#include "daemon/base/work/errand.h"
#include "daemon/data/orders/order_table.h"
#include "daemon/io/reader.h"
#include "daemon/pipeline/jobs/shares.h"
#include "daemon/pipeline/memory/scratch_account.h"

struct household {
        LIST_ENTRY(household) entry;
        struct user *user;
        uint64_t number;                /* of its control group; 0: none is known */
        _Atomic uint32_t n_jobs;        /* that have not been freed: until then its accounts are in use */
        struct task_group tasks;        /* planner */
        struct read_group reading;      /* the reader's */
        struct scratch_account scratch; /* the pool's */

        _Alignas(64) struct fair_group time; /* of the workers; written by all of them for each sample */
};

struct user {
        LIST_ENTRY(user) entry;
        uid_t uid;
        LIST_HEAD(, household) households; /* main */
        struct budget budget;              /* main: what rings may take; unused for an admin, who has no limit */
        struct task_group tasks;           /* planner */
        struct read_group reading;         /* the reader's */
        struct scratch_account scratch;    /* the pool's */
        struct order_user orders;          /* the order tables' */
        struct errands errands;            /* any thread; charged to `time` */
        uint64_t turns_paid_ns; /* main: when what that thread did for the user is paid (ctl/users/turns.h) */

        _Alignas(64) struct fair_group time; /* of the workers; written by all of them for each sample */
};

LIST_HEAD(users, user);

/* The account of `uid`; a new one if there is none. NULL: out of memory. Main thread. */
struct user *user_get(struct users *users, uid_t uid);

/* The user's household of this number; a new one if there is none. It stays until the next call, and as long as a job
 * counts for it. NULL: out of memory. Main thread. */
struct household *household_get(struct user *user, uint64_t number);

/* Call it when nothing of any user is left: no job, no ring. */
void users_fini(struct users *users);
