/* The secret that all nodes have, and strangers have not. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/machine/disk.h"
#include "daemon/fetch/secret_file.h"
#include "daemon/store/cache/peers/peers_private.h"
#include "proto/base/cleanup.h"

#define KEY_LEAST  16u /* characters */
#define KEY_MOST   512u
#define KEY_RANDOM 32u /* bytes of one that is made */

/* One node makes it whole, under a name of its own, and gives it its name unless another one was faster. */
static int make_key(const char *path, const char *folder, struct why *why) {
        uint8_t random[KEY_RANDOM];
        char text[2 * KEY_RANDOM + 2], begun[PATH_MAX];
        _cleanup_(closep) int fd = -1;
        int r = 0;

        if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
                return why_set(why, -EIO, "peer_key_file: the kernel gives no random bytes");
        for (size_t i = 0; i < KEY_RANDOM; i++)
                snprintf(text + 2 * i, 3, "%02x", random[i]);
        text[2 * KEY_RANDOM] = '\n';
        snprintf(begun, sizeof(begun), "%s/.key-XXXXXX", folder);
        fd = mkostemp(begun, O_CLOEXEC); /* 0600 */
        if (fd < 0)
                return why_errno(why, -errno, "peers: %s", folder);
        r = disk_write_at(fd, text, 2 * KEY_RANDOM + 1, 0);
        if (r == 0 && (fsync(fd) < 0 || (linkat(AT_FDCWD, begun, AT_FDCWD, path, 0) < 0 && errno != EEXIST)))
                r = -errno;
        unlink(begun);
        explicit_bzero(text, sizeof(text));
        return r < 0 ? why_errno(why, r, "peers: %s", path) : 0;
}

static int check_key(const char *path, const struct secret_file *file, char **ret_key, struct why *why) {
        size_t n = strcspn(file->text, "\r\n");

        if (n < KEY_LEAST || n > KEY_MOST || strspn(file->text + n, "\r\n") != file->n_bytes - n ||
            strcspn(file->text, " \t\"\\") < n)
                return why_set(why, -EINVAL,
                               "peer_key_file: %s must have one line of %u to %u characters without blanks, such as "
                               "\"openssl rand -hex 32\" prints",
                               path, KEY_LEAST, KEY_MOST);
        *ret_key = strndup(file->text, n);
        return *ret_key ? 0 : why_errno(why, -ENOMEM, "peer_key_file");
}

int peer_key_read(const char *path, const char *folder, char **ret_key, struct why *why) {
        struct secret_file file = { 0 };
        char ours[PATH_MAX];
        int r;

        if (!path[0] && !folder)
                return why_set(why, -EINVAL,
                               "peer_key_file: not set, and peers has a list: name a file with a secret that all nodes "
                               "have, as \"openssl rand -hex 32\" makes one");
        if (!path[0]) {
                snprintf(ours, sizeof(ours), "%s/.key", folder);
                r = access(ours, F_OK) < 0 && errno == ENOENT ? make_key(ours, folder, why) : 0;
                if (r < 0)
                        return r;
                path = ours;
        }
        r = secret_file_read(path, &file, why);
        if (r == 0)
                r = check_key(path, &file, ret_key, why);
        secret_file_fini(&file);
        return r;
}
