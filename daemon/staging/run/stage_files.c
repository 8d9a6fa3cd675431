#include "daemon/staging/run/stage_files.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "daemon/base/machine/disk.h"
#include "daemon/store/plan/digest.h"
#include "proto/base/cleanup.h"

int hash_file_at(int folder_fd, const char *path, uint8_t ret_sha256[32], uint64_t *ret_n_bytes) {
        _cleanup_(closep) int fd = openat(folder_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        struct sha256 sha;
        int r;

        if (fd < 0)
                return -errno;
        r = sha256_init(&sha);
        if (r < 0)
                return r;
        r = sha256_file(&sha, fd, ret_n_bytes, ret_sha256);
        sha256_fini(&sha);
        return r;
}

int read_file_at(int folder_fd, const char *path, void *into, uint64_t n_bytes) {
        _cleanup_(closep) int fd = openat(folder_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

        return fd < 0 ? -errno : disk_read_at(fd, into, n_bytes, 0);
}

int write_file_at(int folder_fd, const char *path, const void *bytes, uint64_t n_bytes) {
        _cleanup_(closep) int fd = openat(folder_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);

        return fd < 0 ? -errno : disk_write_at(fd, bytes, n_bytes, 0);
}
