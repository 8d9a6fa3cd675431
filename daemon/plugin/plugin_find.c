/* Where a plug-in lies, and whether a stranger could have put it there. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/machine/file_stamp.h"
#include "daemon/plugin/library.h"
#include "proto/base/cleanup.h"

#define LINKS_MAX 40 /* one after the other, as for the kernel */

/* Can nobody but root and this user change it? In a folder with the sticky bit others can only add. A link has no mode:
 * its owner counts. */
static bool plugin_find_is_ours(const struct stat *status) {
        bool is_sticky = S_ISDIR(status->st_mode) && status->st_mode & S_ISVTX;

        return (status->st_uid == 0 || status->st_uid == geteuid()) &&
               (is_sticky || S_ISLNK(status->st_mode) || !(status->st_mode & (S_IWGRP | S_IWOTH)));
}

static int plugin_find_refuse(const char *path, const struct stat *status, struct why *why) {
        if (status->st_uid != 0 && status->st_uid != geteuid())
                return why_set(why, -EPERM,
                               "is not loaded: %s belongs to user %u, and must belong to root or the daemon's user",
                               path, (unsigned)status->st_uid);
        return why_set(why, -EPERM, "is not loaded: others than its owner may write to %s (chmod go-w)", path);
}

/* One step of a way. Returns 1 if it is a link, and where that leads. */
static int check_step(const char *path, char ret_target[PATH_MAX], struct why *why) {
        struct stat status;
        ssize_t n;

        if (lstat(path, &status) < 0)
                return why_errno(why, -errno, "cannot be looked at: %s", path);
        if (!plugin_find_is_ours(&status))
                return plugin_find_refuse(path, &status, why);
        if (!S_ISLNK(status.st_mode))
                return 0;
        n = readlink(path, ret_target, PATH_MAX - 1);
        if (n < 0)
                return why_errno(why, -errno, "cannot be looked at: %s", path);
        ret_target[n] = '\0';
        return 1;
}

/* The path with what a link leads to in place of the link, which lies between the two places. */
static int plugin_find_follow(char path[PATH_MAX], size_t begin, size_t end, const char *target, struct why *why) {
        char there[PATH_MAX];
        int n = snprintf(there, sizeof(there), "%.*s/%s%s", (int)begin, path, target, path + end);

        if (n < 0 || (size_t)n >= sizeof(there))
                return why_errno(why, -ENAMETOOLONG, "cannot be looked at: %s", path);
        strcpy(path, there);
        return 0;
}

/* `wanted`, each folder above it, each link on the way and each folder in which one lies: whoever may change one of
 * them decides what is loaded. From the root down, so that nobody changes any more what was looked at. */
static int check_way(const char *wanted, struct why *why) {
        char path[PATH_MAX], target[PATH_MAX];
        unsigned n_links = 0;
        size_t n_seen = 0;
        int r;

        if (strlen(wanted) >= sizeof(path))
                return why_errno(why, -ENAMETOOLONG, "cannot be looked at: %s", wanted);
        strcpy(path, wanted);
        r = check_step("/", target, why);
        while (r == 0 && path[n_seen]) {
                size_t begin = n_seen + strspn(path + n_seen, "/"), end = begin + strcspn(path + begin, "/");
                char behind = path[end];

                path[end] = '\0';
                if (end > begin)
                        r = check_step(path, target, why);
                path[end] = behind;
                if (r == 1 && ++n_links > LINKS_MAX)
                        r = why_errno(why, -ELOOP, "cannot be looked at: %s", wanted);
                if (r == 1) {
                        n_seen = target[0] == '/' ? 0 : n_seen;
                        r = plugin_find_follow(path, n_seen, end, target, why);
                } else {
                        n_seen = end;
                }
        }
        return r;
}

/* Links lead where the administrator wants: the whole way is checked. Returns 1: it is not in this folder. */
static int plugin_find_find_in(const char *folder, const char *name, char **ret_path, struct stat *ret_status,
                               struct why *why) {
        _cleanup_(freep) char *path = NULL, *real = NULL;
        struct stat status;
        int r;

        if (asprintf(&path, "%s/%s.so", folder, name) < 0) {
                path = NULL;
                return why_errno(why, -ENOMEM, "cannot be looked for");
        }
        if (stat(path, &status) < 0)
                return errno == ENOENT || errno == ENOTDIR ? 1
                                                           : why_errno(why, -errno, "cannot be looked at: %s", path);
        if (!S_ISREG(status.st_mode))
                return why_set(why, -EINVAL, "is not loaded: %s is not a file", path);
        r = check_way(path, why);
        if (r < 0)
                return r;
        real = realpath(path, NULL);
        if (!real || stat(real, &status) < 0)
                return why_errno(why, -errno, "cannot be looked at: %s", path);
        *ret_path = TAKE_PTR(real);
        *ret_status = status;
        return 0;
}

int library_find(const char *folders, const char *name, char **ret_path, struct stat *ret_status, struct why *why) {
        for (const char *at = folders; *at;) {
                size_t n = strcspn(at, ":");
                _cleanup_(freep) char *folder = n > 0 ? strndup(at, n) : NULL;
                int r = 1;

                if (n > 0 && !folder)
                        return why_errno(why, -ENOMEM, "cannot be looked for");
                if (folder && folder[0] != '/')
                        return why_set(why, -EINVAL,
                                       "is not looked for: plugin_dirs has \"%s\", which does not begin "
                                       "with \"/\"",
                                       folder);
                if (folder)
                        r = plugin_find_find_in(folder, name, ret_path, ret_status, why);
                if (r <= 0)
                        return r;
                at += n;
                at += *at == ':';
        }
        return why_set(why, -ENOENT, "was not found: there is no %s.so in %s (plugin_dirs)", name, folders);
}

int library_is_still(const char *path, const struct stat *found, struct why *why) {
        struct stat now;

        if (stat(path, &now) == 0 && file_is_same(found, &now))
                return 0;
        return why_set(why, -ENOEXEC, "has changed since the daemon began (%s): restart the daemon", path);
}
