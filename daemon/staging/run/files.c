#include "daemon/staging/run/files.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/base/cleanup.h"
#include "daemon/base/disk.h"

#define HASH_BUFFER (1u << 20) /* bytes */

int hash_file_at(int folder_fd, const char *path, uint8_t ret_sha256[32], uint64_t *ret_n_bytes) {
        _cleanup_(freep) uint8_t *buffer = malloc(HASH_BUFFER);
        _cleanup_(closep) int fd = openat(folder_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        EVP_MD_CTX *hash = EVP_MD_CTX_new();
        uint64_t n_bytes = 0;
        ssize_t n = 0;
        int r = fd < 0 ? -errno : buffer && hash && EVP_DigestInit_ex(hash, EVP_sha256(), NULL) ? 0 : -ENOMEM;

        while (r == 0 && (n = read(fd, buffer, HASH_BUFFER)) > 0) {
                EVP_DigestUpdate(hash, buffer, (size_t)n);
                n_bytes += (uint64_t)n;
        }
        if (r == 0 && n < 0)
                r = -errno;
        if (r == 0)
                EVP_DigestFinal_ex(hash, ret_sha256, NULL);
        EVP_MD_CTX_free(hash);
        if (r == 0)
                *ret_n_bytes = n_bytes;
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
