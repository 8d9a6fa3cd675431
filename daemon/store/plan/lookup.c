#include "daemon/store/plan/lookup.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

void lookup_fini(struct lookup *lookup) {
        closep(&lookup->dir_fd);
        lookup->dir_fd = -1;
}

/* Opens one part of a path. */
static int lookup_step(int fd, const char *name, bool make) {
        int next = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

        if (next >= 0 || errno != ENOENT || !make)
                return next < 0 ? -errno : next;
        if (mkdirat(fd, name, 0755) < 0 && errno != EEXIST)
                return -errno;
        next = openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return next < 0 ? -errno : next;
}

static int lookup_walk(int root_fd, const char *dir, bool make) {
        _cleanup_(closep) int fd = -1;
        char parts[PATH_MAX], *rest = parts, *part;

        strcpy(parts, dir);
        while ((part = strsep(&rest, "/"))) {
                int next = lookup_step(fd < 0 ? root_fd : fd, part, make);

                if (next < 0)
                        return next;
                closep(&fd);
                fd = next;
        }
        return take_fd(&fd);
}

int lookup_folder_of(struct lookup *lookup, const char *path, bool make, const char **ret_name) {
        const char *slash = strrchr(path, '/');
        size_t n = slash ? (size_t)(slash - path) : 0;
        char dir[PATH_MAX];
        int fd;

        assert(n < sizeof(dir)); /* plan_path_check() */
        *ret_name = slash ? slash + 1 : path;
        if (n == 0)
                return lookup->root_fd;
        if (lookup->dir_fd >= 0 && strncmp(lookup->dir, path, n) == 0 && lookup->dir[n] == '\0')
                return lookup->dir_fd;
        memcpy(dir, path, n);
        dir[n] = '\0';
        fd = lookup_walk(lookup->root_fd, dir, make);
        if (fd < 0)
                return fd;
        lookup_fini(lookup);
        lookup->dir_fd = fd;
        memcpy(lookup->dir, dir, n + 1);
        return fd;
}

int lookup_open(struct lookup *lookup, const char *path, int flags) {
        _cleanup_(closep) int fd = -1;
        struct stat status;
        const char *name;
        int dir;

        dir = lookup_folder_of(lookup, path, false, &name);
        if (dir < 0)
                return dir;
        fd = openat(dir, name, flags | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &status) < 0)
                return -errno;
        return S_ISREG(status.st_mode) ? take_fd(&fd) : -EBADMSG;
}

int lookup_stat(struct lookup *lookup, const char *path, struct stat *ret_status) {
        const char *name;
        int dir = lookup_folder_of(lookup, path, false, &name);

        if (dir < 0)
                return dir;
        return fstatat(dir, name, ret_status, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}
