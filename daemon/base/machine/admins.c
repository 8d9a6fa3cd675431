#include "daemon/base/machine/admins.h"

#include <errno.h>
#include <pwd.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"

#define SEPARATORS  ", \t\n"
#define NAME_SIZE   64u
#define ENTRY_BYTES (64u << 10)
#define NOBODY      65534u /* what the kernel says of every user, and every group, that is not mapped to ours */

static int admins_look_up(const char *name, uid_t *ret_user, struct why *why) {
        _cleanup_(freep) char *buffer = malloc(ENTRY_BYTES);
        struct passwd entry, *found = NULL;
        int r;

        if (!buffer)
                return why_errno(why, -ENOMEM, "user \"%s\"", name);
        r = getpwnam_r(name, &entry, buffer, ENTRY_BYTES, &found);
        if (found) {
                *ret_user = found->pw_uid;
                return 0;
        }
        if (r == 0 || r == ENOENT || r == ESRCH)
                return why_set(why, -EINVAL,
                               "unknown user \"%s\"; write names or numbers of users that `getent passwd` knows, and "
                               "@NAME for a group",
                               name);
        return why_errno(why, -r, "user \"%s\" cannot be looked up", name);
}

/* Numbers and root need no lookup, so they also work without a directory service. */
static int parse_user(const char *name, uid_t *ret_user, struct why *why) {
        unsigned long long number = 0;

        if (strspn(name, "0123456789") == strlen(name)) {
                errno = 0;
                number = strtoull(name, NULL, 10);
                if (errno || number >= UINT32_MAX)
                        return why_set(why, -EINVAL, "user %s: a number from 0 to 4294967294 is allowed", name);
        } else if (strcmp(name, "root") != 0) {
                return admins_look_up(name, ret_user, why);
        }
        *ret_user = (uid_t)number;
        return 0;
}

static int check_nobody(uint32_t number, const char *what, struct why *why) {
        if (number != NOBODY)
                return 0;
        return why_set(why, -EINVAL,
                       "%s 65534 (nobody) stands for whoever comes from a container with users of its own, and cannot "
                       "be an admin",
                       what);
}

/* Takes a user, or moves a group's name to the list of those. */
static int admins_parse_one(const char *name, struct admins *admins, char *groups, struct why *why) {
        int r;

        if (name[0] == '@' && name[1]) {
                strcat(strcat(groups, name + 1), " ");
                return 0;
        }
        if (name[0] == '@')
                return why_set(why, -EINVAL, "\"@\" names no group; write @NAME");
        r = parse_user(name, &admins->users[admins->n_users], why);
        if (r == 0)
                r = check_nobody(admins->users[admins->n_users], "user", why);
        admins->n_users += r == 0;
        return r;
}

/* `groups` has room for the text. */
static int admins_parse_all(const char *text, struct admins *admins, char *groups, struct why *why) {
        char name[NAME_SIZE];
        int r = 0;

        for (text += strspn(text, SEPARATORS); *text && r == 0; text += strspn(text, SEPARATORS)) {
                size_t n = strcspn(text, SEPARATORS);

                if (n >= NAME_SIZE)
                        return why_set(why, -EINVAL,
                                       "\"%.60s...\" is %zu bytes long; the name of a user or group has %u at most",
                                       text, n, NAME_SIZE - 1);
                memcpy(name, text, n);
                name[n] = '\0';
                r = admins_parse_one(name, admins, groups, why);
                text += n;
        }
        if (r == 0)
                r = groups_parse(groups, &admins->groups, why);
        for (size_t i = 0; i < admins->groups.n_groups && r == 0; i++)
                r = check_nobody(admins->groups.groups[i], "group", why);
        if (r == 0 && admins->n_users + admins->groups.n_groups == 0)
                r = why_set(why, -EINVAL, "names nobody; leave the setting out for root alone");
        return r;
}

int admins_parse(const char *text, struct admins *ret_admins, struct why *why) {
        _cleanup_(freep) char *groups = calloc(1, strlen(text) + 2);
        struct admins admins = { .users = calloc(strlen(text) / 2 + 1, sizeof(uid_t)) };
        int r;

        if (!groups || !admins.users)
                r = why_errno(why, -ENOMEM, "admins");
        else
                r = admins_parse_all(text, &admins, groups, why);
        if (r < 0) {
                admins_fini(&admins);
                return r;
        }
        *ret_admins = admins;
        return 0;
}

bool admins_has_user(const struct admins *admins, uid_t user) {
        for (size_t i = 0; i < admins->n_users; i++)
                if (admins->users[i] == user)
                        return true;
        return false;
}

bool admins_has_group(const struct admins *admins, gid_t group) {
        for (size_t i = 0; i < admins->groups.n_groups; i++)
                if (admins->groups.groups[i] == group)
                        return true;
        return false;
}

void admins_fini(struct admins *admins) {
        free(admins->users);
        groups_fini(&admins->groups);
        *admins = (struct admins){ 0 };
}
