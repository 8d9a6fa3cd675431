#include "daemon/base/machine/groups.h"

#include <errno.h>
#include <grp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/base/cleanup.h"

#define SEPARATORS  ", \t\n"
#define NAME_SIZE   64u
#define ENTRY_BYTES (1u << 20) /* a group's entry lists all its members */

/* A number needs no lookup, so it also works without a directory service. */
static int groups_parse_number(const char *name, gid_t *ret_group) {
        unsigned long long number;

        if (strspn(name, "0123456789") != strlen(name))
                return -EINVAL;
        errno = 0;
        number = strtoull(name, NULL, 10);
        if (errno || number >= UINT32_MAX)
                return -ERANGE;
        *ret_group = (gid_t)number;
        return 0;
}

static int groups_look_up(const char *name, gid_t *ret_group, struct why *why) {
        _cleanup_(freep) char *buffer = malloc(ENTRY_BYTES);
        struct group entry, *found = NULL;
        int r;

        if (!buffer)
                return why_errno(why, -ENOMEM, "group \"%s\"", name);
        r = getgrnam_r(name, &entry, buffer, ENTRY_BYTES, &found);
        if (found) {
                *ret_group = found->gr_gid;
                return 0;
        }
        if (r == 0 || r == ENOENT || r == ESRCH)
                return why_set(why, -EINVAL,
                               "unknown group \"%s\"; write names or numbers of groups that `getent group` knows",
                               name);
        return why_errno(why, -r, "group \"%s\" cannot be looked up", name);
}

static int groups_parse_one(const char *name, gid_t *ret_group, struct why *why) {
        int r = groups_parse_number(name, ret_group);

        if (r == -ERANGE)
                return why_set(why, -EINVAL, "group %s: a number from 0 to 4294967294 is allowed", name);
        return r == 0 ? 0 : groups_look_up(name, ret_group, why);
}

static int groups_parse_all(const char *text, struct groups *groups, struct why *why) {
        char name[NAME_SIZE];
        int r = 0;

        for (text += strspn(text, SEPARATORS); *text && r == 0; text += strspn(text, SEPARATORS)) {
                size_t n = strcspn(text, SEPARATORS);

                if (n >= NAME_SIZE)
                        return why_set(why, -EINVAL,
                                       "\"%.60s...\" is %zu bytes long; the name of a group has %u at most", text, n,
                                       NAME_SIZE - 1);
                memcpy(name, text, n);
                name[n] = '\0';
                r = groups_parse_one(name, &groups->groups[groups->n_groups], why);
                groups->n_groups += r == 0;
                text += n;
        }
        return r;
}

int groups_parse(const char *text, struct groups *ret_groups, struct why *why) {
        struct groups groups = { .text = strdup(text), .groups = calloc(strlen(text) / 2 + 1, sizeof(gid_t)) };
        int r;

        if (!groups.text || !groups.groups)
                r = why_errno(why, -ENOMEM, "groups");
        else
                r = groups_parse_all(text, &groups, why);
        if (r < 0) {
                groups_fini(&groups);
                return r;
        }
        *ret_groups = groups;
        return 0;
}

int groups_copy(const struct groups *groups, struct groups *ret_groups) {
        struct groups copy = { .n_groups = groups->n_groups };

        copy.text = strdup(groups->text ? groups->text : "");
        copy.groups = calloc(groups->n_groups + 1, sizeof(gid_t));
        if (!copy.text || !copy.groups) {
                groups_fini(&copy);
                return -ENOMEM;
        }
        if (groups->n_groups > 0)
                memcpy(copy.groups, groups->groups, groups->n_groups * sizeof(gid_t));
        *ret_groups = copy;
        return 0;
}

void groups_fini(struct groups *groups) {
        free(groups->text);
        free(groups->groups);
        *groups = (struct groups){ 0 };
}
