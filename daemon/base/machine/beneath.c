#include "daemon/base/machine/beneath.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

#define TRIES_MAX 100 /* while folders on the way are being renamed */

/* The kernel keeps O_NOFOLLOW as a flag of a descriptor with O_PATH. Here it means: links do not lead out of it. So do
 * those of a descriptor that cannot be asked: opening says what is wrong with it. */
static bool beneath_stays(int root_fd) {
        int flags = root_fd == AT_FDCWD ? 0 : fcntl(root_fd, F_GETFL);

        return flags < 0 || (flags & O_NOFOLLOW) != 0;
}

static int open_beneath(int root_fd, const char *path, int flags) {
        const struct open_how how = { .flags = (unsigned)flags, .resolve = BENEATH_RESOLVE };
        int fd;

        for (unsigned i = 0; i < TRIES_MAX; i++) {
                fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
                if (fd >= 0 || errno != EAGAIN)
                        break;
        }
        return fd;
}

int beneath_root(const char *path, bool follows, struct why *why) {
        _cleanup_(closep) int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
        int inner;

        if (fd < 0)
                return why_errno(why, -errno, "%s", path);
        if (follows)
                return take_fd(&fd);
        inner = open_beneath(fd, ".", O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (inner < 0 && (errno == ENOSYS || errno == EPERM))
                return why_set(why, -errno,
                               "%s: the kernel, or the container's filter of system calls, refuses openat2(), without "
                               "which links cannot be kept from leading out of the folder: allow it, or write links = "
                               "\"follow\" for this dataset",
                               path);
        return inner < 0 ? why_errno(why, -errno, "%s", path) : inner;
}

/* A file of the configuration's own: whatever leads to its folder is followed. */
static int open_elsewhere(int root_fd, const char *path, int flags) {
        _cleanup_(closep) int folder_fd = -1;
        const char *slash = strrchr(path, '/');
        char folder[PATH_MAX];

        if (snprintf(folder, sizeof(folder), "%.*s", (int)(slash - path) + 1, path) >= (int)sizeof(folder)) {
                errno = ENAMETOOLONG;
                return -1;
        }
        folder_fd = openat(root_fd, folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
        return folder_fd < 0 ? -1 : open_beneath(folder_fd, slash + 1, flags);
}

int beneath_open(int root_fd, const char *path, int flags) {
        if (!beneath_stays(root_fd))
                return openat(root_fd, path, flags);
        return path[0] == '/' ? open_elsewhere(root_fd, path, flags) : open_beneath(root_fd, path, flags);
}

int beneath_stat(int root_fd, const char *path, struct stat *ret_status) {
        _cleanup_(closep) int fd = -1;

        if (!beneath_stays(root_fd))
                return fstatat(root_fd, path, ret_status, 0);
        fd = beneath_open(root_fd, path, O_PATH | O_CLOEXEC);
        return fd < 0 ? -1 : fstat(fd, ret_status);
}

int beneath_stat_entry(int root_fd, const char *path, int dir_fd, const char *name, struct stat *ret_status) {
        if (fstatat(dir_fd, name, ret_status, AT_SYMLINK_NOFOLLOW) < 0)
                return -1;
        return S_ISLNK(ret_status->st_mode) ? beneath_stat(root_fd, path, ret_status) : 0;
}

int beneath_open_named(int root_fd, const char *root, const char *path, int flags) {
        size_t n_root = strlen(root);

        if (strncmp(path, root, n_root) == 0 && path[n_root] == '/')
                path += n_root + strspn(path + n_root, "/");
        if (strncmp(path, "../", 3) == 0 && beneath_stays(root_fd))
                return open_elsewhere(root_fd, path, flags);
        return beneath_open(root_fd, path, flags);
}

int beneath_stat_named(int root_fd, const char *root, const char *path, struct stat *ret_status) {
        _cleanup_(closep) int fd = beneath_open_named(root_fd, root, path, O_PATH | O_CLOEXEC);

        return fd < 0 ? -1 : fstat(fd, ret_status);
}
