#include "client/lib/once/once_file.h"

/* Why /tmp, and not XDG_RUNTIME_DIR or TMPDIR: all processes of a node must use the same folder, and processes that are
 * started by ssh, by Slurm or as a service have different environments. What is remembered about a node is valid for
 * one boot: the result of the work may lie in the node's memory. */

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "proto/base/cleanup.h"

#define FOLDER_VARIABLE "DATALOADERD_ONCE_DIR"
#define NODE_SIZE       13u /* 12 characters of the boot's id, NUL */
#define LOCK_TRIES      16  /* bounds the retries if the file is replaced again and again */

/* ---- the folder ---------------------------------------------------------------------------------------------- */

/* Our own folder in /tmp, where a stranger may have created that name first. */
static int open_own_folder(struct dli_once_file *file, struct why *reason) {
        struct stat stat;

        snprintf(file->path, sizeof(file->path), "/tmp/dataloaderd-once-%u", (unsigned)geteuid());
        if (mkdir(file->path, 0700) < 0 && errno != EEXIST)
                return why_errno(reason, -errno, "%s cannot be made (or set dir)", file->path);
        file->folder_fd = open(file->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (file->folder_fd < 0 && (errno == ELOOP || errno == ENOTDIR))
                return why_set(reason, -EACCES, "%s is not a folder: somebody else made it; remove it, or set dir",
                               file->path);
        if (file->folder_fd < 0 || fstat(file->folder_fd, &stat) < 0)
                return why_errno(reason, -errno, "%s cannot be opened", file->path);
        if (stat.st_uid != geteuid())
                return why_set(reason, -EACCES,
                               "%s belongs to the user %u, who could forge what is in it; have it removed, or "
                               "set dir",
                               file->path, (unsigned)stat.st_uid);
        if (stat.st_mode & 022)
                return why_set(reason, -EACCES, "%s may be written to by others; chmod 700 it", file->path);
        /* systemd-tmpfiles does not clean a folder that is locked. */
        flock(file->folder_fd, LOCK_SH | LOCK_NB);
        return 0;
}

/* A folder that the user names is not checked, except that not everybody may replace files in it. It is not created
 * here: if a file system is not mounted, every node would create a local folder below the empty mount point. */
static int open_given_folder(struct dli_once_file *file, const char *dir, struct why *reason) {
        struct stat stat;

        if (snprintf(file->path, sizeof(file->path), "%s", dir) >= (int)sizeof(file->path) - NAME_MAX - 2)
                return why_set(reason, -ENAMETOOLONG, "dir: too long: %s", dir);
        file->folder_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (file->folder_fd < 0 || fstat(file->folder_fd, &stat) < 0)
                return why_errno(reason, -errno, "dir: the folder %s cannot be opened", dir);
        if ((stat.st_mode & 0002) && !(stat.st_mode & S_ISVTX))
                return why_set(reason, -EACCES,
                               "dir: everybody may replace files in %s; choose another folder, or chmod o-w it", dir);
        return 0;
}

static int once_file_open_folder(struct dli_once_file *file, bool cluster, const char *dir, struct why *reason) {
        if (!dir && cluster) {
                dir = getenv(FOLDER_VARIABLE);
                if (!dir || !*dir)
                        return why_set(
                                reason, -EINVAL,
                                "scope \"cluster\" needs a folder that all nodes see: set dir, or " FOLDER_VARIABLE
                                " in the environment");
        }
        return dir ? open_given_folder(file, dir, reason) : open_own_folder(file, reason);
}

/* ---- the file ------------------------------------------------------------------------------------------------ */

/* A text that differs from that of all other nodes and from earlier boots; containers of one machine share it. If the
 * boot id is missing or forbidden, the host's name is used instead. Any other error fails the call: it may pass, and
 * then the other processes would use another file. */
static int once_file_name_node(char ret_node[NODE_SIZE], struct why *reason) {
        static const char PATH[] = "/proc/sys/kernel/random/boot_id";
        _cleanup_(closep) int fd = open(PATH, O_RDONLY | O_CLOEXEC);
        char text[HOST_NAME_MAX + 1] = "";
        ssize_t r = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
        size_t n = 0;

        if (r < 0 && errno != ENOENT && errno != EACCES && errno != EPERM)
                return why_errno(reason, -errno, "%s cannot be read", PATH);
        if (r < (ssize_t)NODE_SIZE)
                gethostname(text, sizeof(text) - 1);
        for (const char *c = text; *c && n < NODE_SIZE - 1; c++)
                if (isalnum((unsigned char)*c))
                        ret_node[n++] = *c;
        ret_node[n] = '\0';
        return 0;
}

/* A user who may change the folder can forge the file anyway; a file of any other user is refused. */
static int once_file_check_file(const struct dli_once_file *file, int fd, struct why *reason) {
        struct stat stat, folder;

        if (fstat(fd, &stat) < 0 || fstat(file->folder_fd, &folder) < 0)
                return why_errno(reason, -errno, "%s cannot be looked at", file->path);
        if (!S_ISREG(stat.st_mode))
                return why_set(reason, -EACCES, "%s is not a regular file; remove it", file->path);
        if (stat.st_uid != geteuid() && stat.st_uid != 0 && stat.st_uid != folder.st_uid)
                return why_set(reason, -EACCES,
                               "%s belongs to the user %u, who could forge it; use a folder of your own, or "
                               "another name",
                               file->path, (unsigned)stat.st_uid);
        return 0;
}

static int once_file_open_file(struct dli_once_file *file, struct why *reason) {
        _cleanup_(closep) int fd = -1;
        int r;

        /* O_NONBLOCK: opening a FIFO in its place must not block */
        fd = openat(file->folder_fd, file->name, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
                    0600);
        if (fd < 0)
                return why_errno(reason, -errno, "%s cannot be opened", file->path);
        r = once_file_check_file(file, fd, reason);
        if (r < 0)
                return r;
        closep(&file->fd);
        file->fd = take_fd(&fd);
        return 0;
}

int dli_once_file_open(struct dli_once_file *file, const char *name, bool cluster, const char *dir,
                       struct why *reason) {
        char node[NODE_SIZE];
        size_t n;
        int r;

        *file = (struct dli_once_file){ .fd = -1, .folder_fd = -1 };
        r = once_file_open_folder(file, cluster, dir, reason);
        if (r == 0)
                r = once_file_name_node(node, reason);
        if (r == 0) {
                /* '@' occurs in no name, so the files of the two scopes never clash in one folder. */
                snprintf(file->name, sizeof(file->name), "%.64s%s%s.once", name, cluster ? "" : "@",
                         cluster ? "" : node);
                n = strlen(file->path);
                snprintf(file->path + n, sizeof(file->path) - n, "/%s", file->name);
                r = once_file_open_file(file, reason);
        }
        if (r < 0)
                dli_once_file_close(file, false);
        return r;
}

void dli_once_file_close(struct dli_once_file *file, bool unlock) {
        if (unlock)
                dli_once_file_unlock(file);
        closep(&file->fd);
        closep(&file->folder_fd);
        file->fd = file->folder_fd = -1;
}

/* ---- the lock ------------------------------------------------------------------------------------------------ */

/* Is the open file the one that other processes find under its name? */
static bool is_current(const struct dli_once_file *file) {
        struct stat mine, theirs;

        return fstat(file->fd, &mine) == 0 && fstatat(file->folder_fd, file->name, &theirs, AT_SYMLINK_NOFOLLOW) == 0 &&
               mine.st_dev == theirs.st_dev && mine.st_ino == theirs.st_ino;
}

int dli_once_file_lock(struct dli_once_file *file, struct why *reason) {
        int r;

        for (int i = 0; i < LOCK_TRIES; i++) {
                bool is_locked = flock(file->fd, LOCK_EX | LOCK_NB) == 0;

                if (!is_locked && errno != EWOULDBLOCK && errno != EINTR)
                        return why_errno(reason, errno == ENOSYS || errno == EOPNOTSUPP ? -ENOLCK : -errno,
                                         "%s cannot be locked: the file system must have locks (flock)", file->path);
                if (is_current(file)) {
                        file->is_locked = is_locked;
                        return 0;
                }
                /* The file was removed or replaced: a lock on it excludes nobody. Opening the file again releases the
                 * old lock. */
                r = once_file_open_file(file, reason);
                if (r < 0)
                        return r;
        }
        return why_set(reason, -EBUSY, "%s is replaced again and again by another process", file->path);
}

void dli_once_file_unlock(struct dli_once_file *file) {
        /* Explicitly, because a child process may share the open file. */
        if (file->is_locked)
                flock(file->fd, LOCK_UN);
        file->is_locked = false;
}
