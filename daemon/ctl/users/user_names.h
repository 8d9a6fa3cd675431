/* ctl/users/user_names.h: the names of users, for people who read logs and tables.
 *
 * Looking a name up may ask a directory service (sssd, NIS) that answers late or never. So a separate thread does it,
 * its results are kept, and until a name is known the number is used instead. */
#pragma once

#include <sys/types.h>

#define USER_NAME_SIZE 64

struct user_names;

/* Returns 0 or -ENOMEM. The thread is started by the first look-up. */
int user_names_new(struct user_names **ret_names);

/* Never waits for a lookup: a lookup that hangs keeps what it needs and is abandoned. Takes NULL. */
void user_names_free(struct user_names *names);

/* Writes the name of a user, or the number if the name is not known (yet): then a lookup begins. Never blocks. Any
 * thread. Returns `buffer`. */
const char *user_name(struct user_names *names, uid_t uid, char buffer[USER_NAME_SIZE]);
