#include "daemon/base/machine/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

/* Not in the kernel's public headers. */
#ifndef ZFS_SUPER_MAGIC
#define ZFS_SUPER_MAGIC 0x2fc12fc1
#endif

int disk_write_at(int fd, const void *bytes, size_t n_bytes, uint64_t offset) {
        const uint8_t *at = bytes;

        while (n_bytes > 0) {
                ssize_t n = pwrite(fd, at, n_bytes, (off_t)offset);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -EIO;
                at += n;
                offset += (uint64_t)n;
                n_bytes -= (size_t)n;
        }
        return 0;
}

int disk_read_at(int fd, void *into, size_t n_bytes, uint64_t offset) {
        uint8_t *at = into;

        while (n_bytes > 0) {
                ssize_t n = pread(fd, at, n_bytes, (off_t)offset);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -ENODATA;
                at += n;
                offset += (uint64_t)n;
                n_bytes -= (size_t)n;
        }
        return 0;
}

int disk_sync_folder_of(const char *path, struct why *why) {
        _cleanup_(closep) int fd = -1;
        const char *slash = strrchr(path, '/');
        char folder[PATH_MAX];

        if (!slash || (size_t)(slash - path) >= sizeof(folder))
                return why_errno(why, -ENAMETOOLONG, "%s", path);
        memcpy(folder, path, (size_t)(slash - path));
        folder[slash - path] = '\0';
        fd = open(folder[0] ? folder : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || fsync(fd) < 0)
                return why_errno(why, -errno, "%s", folder);
        return 0;
}

int disk_read_text(const char *path, char *text, size_t size, struct stat *ret_status) {
        _cleanup_(closep) int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC);
        struct stat status;
        int r;

        if (fd < 0 || fstat(fd, &status) < 0)
                return -errno;
        if (!S_ISREG(status.st_mode) || (uint64_t)status.st_size >= size)
                return -EBADMSG;
        r = disk_read_at(fd, text, (size_t)status.st_size, 0);
        if (r < 0)
                return r;
        text[status.st_size] = '\0';
        if (ret_status)
                *ret_status = status;
        return strlen(text) == (size_t)status.st_size ? 0 : -EBADMSG;
}

int disk_begin_new(const char *path, char ret_temporary[PATH_MAX]) {
        int fd;

        if (snprintf(ret_temporary, PATH_MAX, "%s.new", path) >= PATH_MAX)
                return -ENAMETOOLONG;
        /* A killed run may have left this file. Do not write into it, because it might be anything. */
        if (unlink(ret_temporary) < 0 && errno != ENOENT)
                return -errno;
        fd = open(ret_temporary, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
        return fd < 0 ? -errno : fd;
}

int disk_end_new(int fd, const char *temporary, const char *path, int error, struct why *why) {
        if (error == 0 && (fsync(fd) < 0 || rename(temporary, path) < 0))
                error = -errno;
        if (error < 0) {
                unlink(temporary);
                return why_errno(why, error, "%s", path);
        }
        return disk_sync_folder_of(path, why);
}

int disk_replace(const char *path, const void *bytes, size_t n_bytes, struct why *why) {
        char temporary[PATH_MAX];
        _cleanup_(closep) int fd = disk_begin_new(path, temporary);

        if (fd < 0)
                return why_errno(why, fd, "%s", path);
        return disk_end_new(fd, temporary, path, disk_write_at(fd, bytes, n_bytes, 0), why);
}

bool disk_may_hang(int fd) {
        static const unsigned LOCAL[] = {
                EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,      BTRFS_SUPER_MAGIC,     F2FS_SUPER_MAGIC, TMPFS_MAGIC,
                SQUASHFS_MAGIC,   EROFS_SUPER_MAGIC_V1, OVERLAYFS_SUPER_MAGIC, /* containers: layers are mostly local */
                ZFS_SUPER_MAGIC,
        };
        struct statfs status;

        if (fstatfs(fd, &status) < 0)
                return true;
        for (size_t i = 0; i < sizeof(LOCAL) / sizeof(LOCAL[0]); i++)
                if ((unsigned)status.f_type == LOCAL[i])
                        return false;
        return true;
}
