#include "daemon/pipeline/jobs/user.h"

#include <stdlib.h>
#include <string.h>

struct user *user_get(struct users *users, uid_t uid) {
        struct user *user;

        LIST_FOREACH(user, users, entry)
                if (user->uid == uid)
                        return user;
        user = aligned_alloc(_Alignof(struct user), sizeof(*user));
        if (!user)
                return NULL;
        memset(user, 0, sizeof(*user));
        user->uid = uid;
        fair_group_init(&user->time, NULL);
        order_user_init(&user->orders);
        user->errands.payer = &user->time;
        LIST_INSERT_HEAD(users, user, entry); /* for good: the account must survive the user's last job */
        return user;
}

/* Frees those that no job counts for. */
static void forget_households(struct user *user) {
        struct household *household, *next;

        for (household = LIST_FIRST(&user->households); household; household = next) {
                next = LIST_NEXT(household, entry);
                if (atomic_load_explicit(&household->n_jobs, memory_order_acquire) > 0)
                        continue;
                LIST_REMOVE(household, entry);
                free(household);
        }
}

struct household *household_get(struct user *user, uint64_t number) {
        struct household *household;

        LIST_FOREACH(household, &user->households, entry)
                if (household->number == number)
                        return household;
        forget_households(user);
        household = aligned_alloc(_Alignof(struct household), sizeof(*household));
        if (!household)
                return NULL;
        memset(household, 0, sizeof(*household));
        household->user = user;
        household->number = number;
        household->tasks.above = &user->tasks;
        household->reading.above = &user->reading;
        household->scratch.above = &user->scratch;
        fair_group_init(&household->time, &user->time);
        LIST_INSERT_HEAD(&user->households, household, entry);
        return household;
}

void users_fini(struct users *users) {
        struct user *user;

        while ((user = LIST_FIRST(users))) {
                LIST_REMOVE(user, entry);
                forget_households(user);
                free(user);
        }
}
