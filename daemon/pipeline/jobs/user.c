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
        fair_group_init(&user->time);
        order_user_init(&user->orders);
        LIST_INSERT_HEAD(users, user, entry); /* for good: the account must survive the user's last job */
        return user;
}

void users_fini(struct users *users) {
        struct user *user;

        while ((user = LIST_FIRST(users))) {
                LIST_REMOVE(user, entry);
                free(user);
        }
}
