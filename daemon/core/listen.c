#include "daemon/core/listen.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/frame.h"

#define BACKLOG    128
#define LOCK_TRIES 10
#define LOCK_MS    2 /* between two tries */

const struct listener_kind LISTENER_MAIN = { "socket", SOCK_SEQPACKET, "stop it, or set socket to another path",
                                             "set socket to another path" };
const struct listener_kind LISTENER_PRIVATE = { "socket", SOCK_SEQPACKET, "\"dlctl stop\" ends it", "remove it" };
const struct listener_kind LISTENER_METRICS = { "metrics_socket", SOCK_STREAM,
                                                "stop it, or set metrics_socket to another path",
                                                "set metrics_socket to another path" };

static int take_passed(int *ret_fd, struct why *why) {
        int n = sd_listen_fds(1);

        if (n < 0)
                return why_errno(why, n, "socket: systemd's");
        if (n == 0)
                return 1;
        if (n > 1 || sd_is_socket_unix(SD_LISTEN_FDS_START, SOCK_SEQPACKET, 1, NULL, 0) <= 0)
                return why_set(why, -EINVAL,
                               "socket: systemd passed %d descriptors; one listening ListenSequentialPacket= socket is "
                               "needed",
                               n);
        fcntl(SD_LISTEN_FDS_START, F_SETFL, O_NONBLOCK);
        *ret_fd = SD_LISTEN_FDS_START;
        return 0;
}

/* Is the locked file still the one at the path? Its last owner may have removed it in between. */
static bool listen_is_same_file(int fd, const char *path) {
        struct stat mine, there;

        return fstat(fd, &mine) == 0 && stat(path, &there) == 0 && mine.st_ino == there.st_ino &&
               mine.st_dev == there.st_dev;
}

/* Two daemons that start at once must not both take the socket for stale: only the holder of the lock may replace it.
 * A client that looks whether the lock is held has it for a moment, so it is tried more than once. */
int listener_lock(const struct listener_kind *kind, const char *path, int *ret_fd, struct why *why) {
        char lock[PATH_MAX];

        snprintf(lock, sizeof(lock), "%s.lock", path);
        for (int i = 0; i < LOCK_TRIES; i++) {
                _cleanup_(closep) int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

                if (fd < 0)
                        return why_errno(why, -errno, "%s: %s", kind->setting, lock);
                if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
                        poll(NULL, 0, LOCK_MS);
                } else if (listen_is_same_file(fd, lock)) {
                        *ret_fd = take_fd(&fd);
                        return 0;
                }
        }
        return why_set(why, -EADDRINUSE, "%s: %s is served by another dataloaderd, which has locked %s; %s",
                       kind->setting, path, lock, kind->when_served);
}

/* Removes only a socket, and only if no daemon answers on it. */
static int remove_stale(const struct listener_kind *kind, const char *path, const struct sockaddr_un *address,
                        struct why *why) {
        _cleanup_(closep) int fd = socket(AF_UNIX, kind->type | SOCK_CLOEXEC, 0);
        struct stat status;

        if (lstat(path, &status) < 0)
                return errno == ENOENT ? 0 : why_errno(why, -errno, "%s: %s", kind->setting, path);
        if (!S_ISSOCK(status.st_mode))
                return why_set(why, -EEXIST, "%s: %s exists and is not a socket; %s", kind->setting, path,
                               kind->when_taken);
        if (fd >= 0 && (connect(fd, (const struct sockaddr *)address, sizeof(*address)) == 0 || errno == EPROTOTYPE))
                return why_set(why, -EADDRINUSE, "%s: %s is served by another process", kind->setting, path);
        if (unlink(path) < 0)
                return why_errno(why, -errno, "%s: removing the stale %s", kind->setting, path);
        return 0;
}

int listener_open(struct listener *listener, const char *path, unsigned mode, struct why *why) {
        int r;

        *listener = (struct listener){ .fd = -1, .lock_fd = -1 };
        r = take_passed(&listener->fd, why);
        return r <= 0 ? r : listener_bind(listener, &LISTENER_MAIN, path, mode, -1, why);
}

int listener_bind(struct listener *listener, const struct listener_kind *kind, const char *path, unsigned mode,
                  int lock_fd, struct why *why) {
        _cleanup_(closep) int fd = -1, own_lock_fd = -1;
        struct sockaddr_un address;
        struct stat status;
        int r;

        *listener = (struct listener){ .fd = -1, .lock_fd = -1 };
        r = dlp_socket_address(path, &address);
        if (r < 0)
                return why_set(why, r, "%s: \"%s%s\" is %zu bytes long; 1 to %u are allowed", kind->setting, path,
                               strlen(path) > 100 ? "..." : "", strlen(path), DLP_SOCKET_PATH_MAX);
        if (lock_fd < 0) {
                r = listener_lock(kind, path, &own_lock_fd, why);
                if (r < 0)
                        return r;
        }
        r = remove_stale(kind, path, &address, why);
        if (r < 0)
                return r;

        fd = socket(AF_UNIX, kind->type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return why_errno(why, -errno, "%s", kind->setting);
        /* On the descriptor, before bind(): so the file never has wider permissions. */
        fchmod(fd, mode);
        if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(fd, BACKLOG) < 0)
                return why_errno(why, -errno, "%s: %s", kind->setting, path);
        listener->path = strdup(path); /* a copy: a reload frees the settings that it came from */
        /* Once more, because bind() has taken the bits of the umask away. */
        if (!listener->path || chmod(path, mode) < 0 || lstat(path, &status) < 0) {
                r = why_errno(why, listener->path ? -errno : -ENOMEM, "%s: %s", kind->setting, path);
                unlink(path);
                free(listener->path);
                listener->path = NULL;
                return r;
        }
        listener->fd = take_fd(&fd);
        listener->lock_fd = lock_fd >= 0 ? lock_fd : take_fd(&own_lock_fd);
        listener->device = status.st_dev;
        listener->inode = status.st_ino;
        return 0;
}

bool listener_is_there(const struct listener *listener) {
        struct stat status;

        if (!listener->path)
                return true;
        return lstat(listener->path, &status) == 0 && status.st_dev == listener->device &&
               status.st_ino == listener->inode;
}

void listener_close(struct listener *listener) {
        char lock[PATH_MAX];

        if (!listener->path)
                return;
        if (listener_is_there(listener)) /* otherwise it is another daemon's by now */
                unlink(listener->path);
        snprintf(lock, sizeof(lock), "%s.lock", listener->path);
        if (listen_is_same_file(listener->lock_fd, lock))
                unlink(lock); /* while it is locked: afterwards it could be a successor's */
        close(listener->lock_fd);
        free(listener->path);
        listener->path = NULL;
}
