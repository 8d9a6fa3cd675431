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

#include "daemon/plugin/library.h"
#include "proto/base/cleanup.h"

/* Can nobody but root and this user change it? In a folder with the sticky bit others can only add. */
static bool is_ours(const struct stat *status) {
        bool is_sticky = S_ISDIR(status->st_mode) && status->st_mode & S_ISVTX;

        return (status->st_uid == 0 || status->st_uid == geteuid()) &&
               (is_sticky || !(status->st_mode & (S_IWGRP | S_IWOTH)));
}

static int refuse(const char *path, const struct stat *status, struct why *why) {
        if (status->st_uid != 0 && status->st_uid != geteuid())
                return why_set(why, -EPERM,
                               "is not loaded: %s belongs to user %u, and must belong to root or the daemon's user",
                               path, (unsigned)status->st_uid);
        return why_set(why, -EPERM, "is not loaded: others than its owner may write to %s (chmod go-w)", path);
}

/* `path` and each folder above it: whoever may rename one of them decides what is loaded. The path is cut. */
static int check_way(char *path, struct why *why) {
        struct stat status;

        for (;;) {
                char *slash = strrchr(path, '/');

                if (stat(*path ? path : "/", &status) < 0)
                        return why_errno(why, -errno, "cannot be looked at: %s", *path ? path : "/");
                if (!is_ours(&status))
                        return refuse(*path ? path : "/", &status, why);
                if (!slash)
                        return 0;
                *slash = '\0';
        }
}

/* Links lead where the administrator wants: what they lead to is checked. Returns 1: it is not in this folder. */
static int find_in(const char *folder, const char *name, char **ret_path, struct stat *ret_status, struct why *why) {
        _cleanup_(freep) char *path = NULL, *real = NULL, *way = NULL;
        struct stat status;
        int r;

        if (asprintf(&path, "%s/%s.so", folder, name) < 0) {
                path = NULL;
                return why_errno(why, -ENOMEM, "cannot be looked for");
        }
        real = realpath(path, NULL);
        if (!real && (errno == ENOENT || errno == ENOTDIR))
                return 1;
        if (!real || stat(real, &status) < 0)
                return why_errno(why, -errno, "cannot be looked at: %s", path);
        if (!S_ISREG(status.st_mode))
                return why_set(why, -EINVAL, "is not loaded: %s is not a file", path);
        way = strdup(real);
        if (!way)
                return why_errno(why, -ENOMEM, "cannot be looked for");
        r = check_way(way, why);
        if (r < 0)
                return r;
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
                        r = find_in(folder, name, ret_path, ret_status, why);
                if (r <= 0)
                        return r;
                at += n;
                at += *at == ':';
        }
        return why_set(why, -ENOENT, "was not found: there is no %s.so in %s (plugin_dirs)", name, folders);
}
