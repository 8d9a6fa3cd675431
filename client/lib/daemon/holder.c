#include "client/lib/daemon/holder.h"

/* /proc/locks names who took a lock, which may have handed it to a child since and ended. So the processes are looked
 * at: whose open file has it? */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

#define PATH_BYTES 64 /* "/proc/4194304/fdinfo/1048576" */

/* The beginning of a small file; "" if it cannot be read. */
static void read_start(const char *path, char *ret_text, size_t size) {
        _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, ret_text, size - 1);

        ret_text[n > 0 ? n : 0] = '\0';
}

/* Is this descriptor of the process one of the file, through which the file is locked? */
static bool has_locked(long pid, long fd, const struct stat *file) {
        char path[PATH_BYTES], text[1024];
        struct stat status;

        snprintf(path, sizeof(path), "/proc/%ld/fd/%ld", pid, fd);
        if (stat(path, &status) < 0 || status.st_ino != file->st_ino || status.st_dev != file->st_dev)
                return false;
        snprintf(path, sizeof(path), "/proc/%ld/fdinfo/%ld", pid, fd);
        read_start(path, text, sizeof(text));
        return strstr(text, "lock:") != NULL;
}

/* The next name in a folder of /proc that is a number; -1 at the end. */
static long holder_next_number(DIR *folder) {
        const struct dirent *entry;

        while ((entry = readdir(folder)))
                if (entry->d_name[0] >= '0' && entry->d_name[0] <= '9')
                        return strtol(entry->d_name, NULL, 10);
        return -1;
}

static bool holds(long pid, const struct stat *file) {
        bool found = false;
        char path[PATH_BYTES];
        DIR *folder;

        snprintf(path, sizeof(path), "/proc/%ld/fd", pid);
        folder = opendir(path); /* not of other users' processes */
        for (long fd = folder ? holder_next_number(folder) : -1; fd >= 0 && !found; fd = holder_next_number(folder))
                found = has_locked(pid, fd, file);
        if (folder)
                closedir(folder);
        return found;
}

static void name_holder(const char *path, const struct stat *file, struct why *ret_holder) {
        DIR *folder = opendir("/proc");
        char comm[PATH_BYTES], name[32];

        why_set(ret_holder, 0, "%s is locked by another process", path);
        for (long pid = folder ? holder_next_number(folder) : -1; pid >= 0; pid = holder_next_number(folder)) {
                if (!holds(pid, file))
                        continue;
                snprintf(comm, sizeof(comm), "/proc/%ld/comm", pid);
                read_start(comm, name, sizeof(name));
                name[strcspn(name, "\n")] = '\0';
                why_set(ret_holder, 0, "%s is locked by process %ld (%s)", path, pid, name);
                break;
        }
        if (folder)
                closedir(folder);
}

bool dli_is_locked(const char *path, struct why *ret_holder) {
        _cleanup_(closep) int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
        struct stat file;

        if (fd < 0 || fstat(fd, &file) < 0 || flock(fd, LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK)
                return false;
        if (ret_holder)
                name_holder(path, &file, ret_holder);
        return true;
}
