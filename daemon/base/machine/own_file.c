#include "daemon/base/machine/own_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

#define ZFS_MAGIC      0x2fc12fc1
#define BCACHEFS_MAGIC 0xca451a4e
#define JFS_MAGIC      0x3153464a
#define COPY_BYTES     (64ull << 20) /* bytes in one call */

#define SEAL_TRIES    50
#define SEAL_PAUSE_NS 20000000

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* Local file systems. This is a list of allowed ones: files on any other are copied, which always works. FUSE reports
 * any owner and mode that its server likes; NFS removes a file that another node has deleted. */
static const unsigned long LOCAL[] = {
        EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,       BTRFS_SUPER_MAGIC, TMPFS_MAGIC,    RAMFS_MAGIC,
        F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, ZFS_MAGIC,         BCACHEFS_MAGIC, JFS_MAGIC,
};

static bool is_local(int fd) {
        struct statfs status;

        if (fstatfs(fd, &status) < 0)
                return false;
        for (size_t i = 0; i < ARRAY_SIZE(LOCAL); i++)
                if ((unsigned long)status.f_type == LOCAL[i])
                        return true;
        return false;
}

enum own_file own_file_kind(int fd) {
        struct stat status;
        int seals = fcntl(fd, F_GET_SEALS);

        if (seals >= 0 && (seals & SEALS) == SEALS)
                return OWN_FILE_MEMORY;
        if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
                return OWN_FILE_NOT;
        if (status.st_uid != geteuid() && status.st_uid != 0)
                return OWN_FILE_NOT;
        if (status.st_mode & (S_IWGRP | S_IWOTH)) /* an ACL that lets others write shows here, too */
                return OWN_FILE_NOT;
        return is_local(fd) ? OWN_FILE_DISK : OWN_FILE_NOT;
}

int own_file_make(const char *name, int *ret_fd) {
        int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

        if (fd < 0)
                return -errno;
        *ret_fd = fd;
        return 0;
}

/* The kernel refuses to seal a file while anybody else holds one of its pages, for which it waits 150 ms. Pages are
 * held for a moment when they are moved, gathered into huge ones or looked at for reclaim; of a large file there is
 * often one. */
int own_file_seal(int fd) {
        const struct timespec pause = { .tv_nsec = SEAL_PAUSE_NS };
        int r = -EBUSY;

        for (int i = 0; i < SEAL_TRIES && r == -EBUSY; i++) {
                if (i > 0)
                        nanosleep(&pause, NULL);
                r = fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL) < 0 ? -errno : 0;
        }
        return r;
}

/* copy_file_range() shares blocks if it can, but not between all file systems; sendfile() takes any two files. */
static ssize_t copy_some(int from, off_t *offset, int into, size_t n_bytes, bool *by_range) {
        ssize_t n;

        if (!*by_range)
                return sendfile(into, from, offset, n_bytes);
        n = copy_file_range(from, offset, into, NULL, n_bytes, 0);
        if (n > 0 || (n < 0 && errno == EINTR))
                return n;
        *by_range = false; /* also after 0: some file systems of the kernel return 0 if they cannot copy */
        return sendfile(into, from, offset, n_bytes);
}

int own_file_copy(int from, uint64_t n_bytes, int into) {
        bool by_range = true;
        off_t offset = 0;

        while ((uint64_t)offset < n_bytes) {
                uint64_t n_left = n_bytes - (uint64_t)offset;
                ssize_t n = copy_some(from, &offset, into, n_left < COPY_BYTES ? n_left : COPY_BYTES, &by_range);

                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : -ENODATA;
        }
        return 0;
}
