#include "daemon/store/tree/lock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/base/machine/disk.h"
#include "proto/base/cleanup.h"

#define HOLDER_MAX 128

/* Who holds it wrote so; it may be dead and another one alive that has not yet written. */
static int busy(int fd, const char *path, struct why *why) {
        char holder[HOLDER_MAX] = "";
        ssize_t n = pread(fd, holder, sizeof(holder) - 1, 0);

        holder[n < 0 ? 0 : n] = '\0';
        holder[strcspn(holder, "\n")] = '\0';
        return why_set(why, -EBUSY, "another staging is at work here: %s (%s); wait for it, or end it",
                       holder[0] ? holder : "a process that has just begun", path);
}

static int write_holder(int fd) {
        char host[64] = "", holder[HOLDER_MAX];
        int n;

        gethostname(host, sizeof(host) - 1);
        n = snprintf(holder, sizeof(holder), "process %d on %s\n", (int)getpid(), host);
        if (ftruncate(fd, 0) < 0)
                return -errno;
        return disk_write_at(fd, holder, (size_t)n, 0);
}

int tree_lock(const struct place *place, struct why *why) {
        _cleanup_(closep) int fd = -1;
        char path[PATH_MAX];
        int r;

        if (mkdir(place->folder, 0755) < 0 && errno != EEXIST)
                return why_errno(why, -errno, "%s", place->folder);
        r = place_file(place, "lock", "", path);
        if (r < 0)
                return why_errno(why, r, "%s", place->folder);
        fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
        if (fd < 0)
                return why_errno(why, -errno, "%s", path);
        if (flock(fd, LOCK_EX | LOCK_NB) < 0)
                return errno == EWOULDBLOCK ? busy(fd, path, why) : why_errno(why, -errno, "%s", path);
        r = write_holder(fd);
        return r < 0 ? why_errno(why, r, "%s", path) : take_fd(&fd);
}

/* ---- what is at the dataset's path --------------------------------------------------------------------------- */

static bool points_into_folder(const struct place *place) {
        const char *base = strrchr(place->folder, '/') + 1;
        char target[PATH_MAX];
        ssize_t n = readlink(place->path, target, sizeof(target) - 1);
        const char *rest;

        if (n < 0)
                return false;
        target[n] = '\0';
        if (strncmp(target, place->folder, strlen(place->folder)) == 0)
                rest = target + strlen(place->folder);
        else if (strncmp(target, base, strlen(base)) == 0)
                rest = target + strlen(base);
        else
                return false;
        return rest[0] == '/' && !strstr(rest, "..");
}

static int lock_is_empty(const char *path) {
        DIR *folder = opendir(path);
        const struct dirent *entry;
        bool empty = true;

        if (!folder)
                return -errno;
        while (empty && (entry = readdir(folder)))
                empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
        closedir(folder);
        return empty;
}

int look_at_path(const struct place *place, struct why *why) {
        struct stat status;
        int r;

        if (lstat(place->path, &status) < 0) {
                if (errno == ENOENT)
                        return PATH_ABSENT;
                return why_errno(why, -errno, "%s", place->path);
        }
        if (S_ISLNK(status.st_mode)) {
                if (points_into_folder(place))
                        return PATH_OURS;
                return why_set(why, -EEXIST,
                               "%s is a link to somewhere else; remove it, or set `path` to where nothing is yet",
                               place->path);
        }
        if (!S_ISDIR(status.st_mode))
                return why_set(why, -EEXIST,
                               "%s is not a folder; move it away, or set `path` to a path that does not exist yet",
                               place->path);
        r = lock_is_empty(place->path);
        if (r < 0)
                return why_errno(why, r, "%s", place->path);
        if (r == 0)
                return why_set(why, -EEXIST,
                               "%s is a folder that was not staged and is not empty; move it away, or set `path` to "
                               "where nothing is yet",
                               place->path);
        return PATH_EMPTY;
}
