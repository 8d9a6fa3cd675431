#include "daemon/store/record/version_lock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

struct version_lock {
        int fd;               /* locked, or the lease's */
        char lease[PATH_MAX]; /* ""; the lease's file */
};

static bool has_no_locks(int error) {
        return error == -ENOLCK || error == -EOPNOTSUPP || error == -ENOSYS || error == -EINVAL;
}

static int try_flock(int fd, int operation) {
        int r;

        do {
                r = flock(fd, operation | LOCK_NB) < 0 ? -errno : 0;
        } while (r == -EINTR);
        return r;
}

/* ---- readers ------------------------------------------------------------------------------------------------- */

/* The readers' file, made if that is possible; else the version's folder. */
static int open_to_lock(const struct place *place, const char *version, struct why *why) {
        char path[PATH_MAX], root[PATH_MAX];
        int fd, r = place_file(place, version, ".readers", path);

        if (r == 0)
                r = place_file(place, version, "", root);
        if (r < 0)
                return why_errno(why, r, "%s", place->folder);
        fd = open(path, O_RDONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
        if (fd < 0 && errno != ENOENT)
                fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd < 0)
                fd = open(root, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? why_errno(why, -errno, "%s", root) : fd;
}

/* Is what was locked still what lies there? Its remover may have been faster. */
static bool version_lock_is_there(const struct place *place, const char *version, int fd) {
        char root[PATH_MAX];
        struct stat status;

        return fstat(fd, &status) == 0 && status.st_nlink > 0 && place_file(place, version, "", root) == 0 &&
               lstat(root, &status) == 0 && S_ISDIR(status.st_mode);
}

static int take_lease(const struct place *place, const char *version, struct version_lock *lock, struct why *why) {
        char host[64] = "", suffix[128];
        int r;

        gethostname(host, sizeof(host) - 1);
        snprintf(suffix, sizeof(suffix), ".lease-%s-%d", host, (int)getpid());
        r = place_file(place, version, suffix, lock->lease);
        if (r == 0) {
                lock->fd = open(lock->lease, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
                r = lock->fd < 0 ? -errno : 0;
        }
        if (r < 0)
                return why_errno(why, r, "%s", lock->lease);
        version_lock_renew(lock);
        return 0;
}

int version_lock_take(const struct place *place, const char *version, struct version_lock **ret_lock, struct why *why) {
        struct version_lock *lock = calloc(1, sizeof(*lock));
        struct why reason;
        int r;

        if (!lock)
                return why_errno(why, -ENOMEM, "version %s", version);
        lock->fd = open_to_lock(place, version, why);
        r = lock->fd < 0 ? lock->fd : try_flock(lock->fd, LOCK_SH);
        if (r == -EWOULDBLOCK || (r == 0 && !version_lock_is_there(place, version, lock->fd)))
                r = why_set(why, -ENOENT, "version %s is being removed", version);
        else if (r < 0 && lock->fd >= 0 && has_no_locks(r)) {
                closep(&lock->fd);
                lock->fd = -1;
                r = take_lease(place, version, lock, &reason);
                if (r < 0) {
                        lock->lease[0] = '\0';
                        r = VERSION_UNPROTECTED;
                        why_set(why, 0, "the file system has no locks, and a lease cannot be written (%s)",
                                reason.text);
                }
        } else if (r < 0 && lock->fd >= 0) {
                why_errno(why, r, "version %s cannot be locked", version);
        }
        if (r != 0) {
                closep(&lock->fd);
                free(lock);
                lock = NULL;
        }
        if (r >= 0)
                *ret_lock = lock;
        return r;
}

void version_lock_free(struct version_lock *lock) {
        if (!lock)
                return;
        if (lock->lease[0])
                unlink(lock->lease);
        closep(&lock->fd);
        free(lock);
}

bool version_lock_is_lease(const struct version_lock *lock) {
        return lock->lease[0] != '\0';
}

void version_lock_renew(struct version_lock *lock) {
        if (lock->lease[0])
                futimens(lock->fd, NULL); /* if it fails the lease becomes stale, as if we were gone */
}

/* ---- who removes --------------------------------------------------------------------------------------------- */

int version_lock_prepare(int folder_fd, const char *version) {
        _cleanup_(closep) int fd = -1;
        char name[PLACE_VERSION_SIZE + 16];

        snprintf(name, sizeof(name), "%.14s.readers", version);
        fd = openat(folder_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
        return fd < 0 || fchmod(fd, 0644) < 0 ? -errno : 0;
}

/* By the file system's own clock, which is what stamps the leases. */
static time_t now_there(int fd) {
        struct stat status;

        return futimens(fd, NULL) == 0 && fstat(fd, &status) == 0 ? status.st_mtim.tv_sec : time(NULL);
}

/* A lease whose time is in the future by more than a term is from before the clock was set back. It counts, but from
 * now on: who still reads renews it. If its time may not be set, it counts for longer. */
static bool version_lock_is_fresh(int folder_fd, const char *lease, time_t now) {
        _cleanup_(closep) int fd = -1;
        struct stat status;

        if (fstatat(folder_fd, lease, &status, AT_SYMLINK_NOFOLLOW) < 0)
                return false;
        if (status.st_mtim.tv_sec > now + VERSION_LEASE_STALE_S)
                fd = openat(folder_fd, lease, O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
        if (fd >= 0)
                (void)futimens(fd, NULL);
        return status.st_mtim.tv_sec + VERSION_LEASE_STALE_S > now;
}

static bool has_fresh_lease(int folder_fd, const char *version, int readers_fd) {
        int fd = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        DIR *folder = fd < 0 ? NULL : fdopendir(fd);
        time_t now = now_there(readers_fd);
        const struct dirent *entry;
        bool found = false;

        if (!folder) {
                closep(&fd);
                return true; /* nobody knows: it stays */
        }
        while (!found && (entry = readdir(folder)))
                found = strncmp(entry->d_name, version, 14) == 0 && strncmp(entry->d_name + 14, ".lease-", 7) == 0 &&
                        version_lock_is_fresh(folder_fd, entry->d_name, now);
        closedir(folder);
        return found;
}

int version_claim(int folder_fd, const char *version, struct version_claim *ret_claim) {
        struct version_claim claim = { .readers_fd = -1, .root_fd = -1 };
        char name[PLACE_VERSION_SIZE + 16];

        snprintf(name, sizeof(name), "%.14s.readers", version);
        claim.readers_fd = openat(folder_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
        name[14] = '\0';
        claim.root_fd = openat(folder_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if ((claim.readers_fd >= 0 && try_flock(claim.readers_fd, LOCK_EX) == -EWOULDBLOCK) ||
            (claim.root_fd >= 0 && try_flock(claim.root_fd, LOCK_EX) == -EWOULDBLOCK) ||
            has_fresh_lease(folder_fd, name, claim.readers_fd)) {
                version_claim_free(&claim);
                return -EBUSY;
        }
        *ret_claim = claim;
        return 0;
}

void version_claim_free(struct version_claim *claim) {
        closep(&claim->readers_fd);
        closep(&claim->root_fd);
}
