/* ctl/user_names.h: the names of users, for people who read logs and tables.
 *
 * Looking a name up may ask a directory service (sssd, NIS) that answers late or never. So one thread of its own looks
 * up, what it finds is kept, and until a name is known the number stands in. */
#pragma once

#include <sys/types.h>

#define USER_NAME_SIZE 64

struct user_names;

/* Returns 0 or -ENOMEM. The thread begins with the first question. */
int user_names_new(struct user_names **ret_names);

/* Never waits for a lookup: one that hangs is left behind with what it needs. Takes NULL. */
void user_names_free(struct user_names *names);

/* Writes the name of a user, or the number if the name is not known (yet): then a lookup begins. Never blocks. Any
 * thread. Returns `buffer`. */
const char *user_name(struct user_names *names, uid_t uid, char buffer[USER_NAME_SIZE]);
