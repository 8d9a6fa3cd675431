#include "daemon/staging/run/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/base/machine/disk.h"
#include "daemon/staging/plan/digest.h"
#include "proto/base/cleanup.h"

#define HASH_BUFFER (1u << 20) /* bytes */

int hash_file_at(int folder_fd, const char *path, uint8_t ret_sha256[32], uint64_t *ret_n_bytes) {
        _cleanup_(freep) uint8_t *buffer = malloc(HASH_BUFFER);
        _cleanup_(closep) int fd = openat(folder_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        struct sha256 sha;
        uint64_t n_bytes = 0;
        ssize_t n;

        if (fd < 0)
                return -errno;
        if (!buffer || sha256_init(&sha) < 0)
                return -ENOMEM;
        while ((n = read(fd, buffer, HASH_BUFFER)) > 0) {
                sha256_add(&sha, buffer, (size_t)n);
                n_bytes += (uint64_t)n;
        }
        if (n < 0) {
                n = -errno;
        } else {
                sha256_end(&sha, ret_sha256);
                *ret_n_bytes = n_bytes;
        }
        sha256_fini(&sha);
        return (int)n;
}

int read_file_at(int folder_fd, const char *path, void *into, uint64_t n_bytes) {
        _cleanup_(closep) int fd = openat(folder_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);

        return fd < 0 ? -errno : disk_read_at(fd, into, n_bytes, 0);
}

int write_file_at(int folder_fd, const char *path, const void *bytes, uint64_t n_bytes) {
        _cleanup_(closep) int fd = openat(folder_fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);

        return fd < 0 ? -errno : disk_write_at(fd, bytes, n_bytes, 0);
}
