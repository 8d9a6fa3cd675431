#include "daemon/data/index/index_sweep.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "daemon/data/index/index_draft.h"
#include "proto/base/cleanup.h"
#include "proto/base/text.h"

#define LEFT_BEHIND_S 3600 /* no process takes this long to write an index file */
#define OTHERS        (S_IRWXG | S_IRWXO)

static bool is_temporary(const char *name) {
        return index_draft_is_name(name, ".index") || index_draft_is_name(name, ".errors");
}

/* Indices, ledgers and those put aside, rolls and spools of streams. */
static bool is_kept(const char *name) {
        return text_ends_with(name, ".index") || text_ends_with(name, ".errors") ||
               text_ends_with(name, ".errors.old") || text_ends_with(name, ".stream") || text_ends_with(name, ".spool");
}

static void close_to_others(int fd) {
        struct stat status;

        if (fstat(fd, &status) == 0 && status.st_uid == geteuid() && (status.st_mode & OTHERS) &&
            !(status.st_mode & S_ISVTX))
                (void)fchmod(fd, status.st_mode & ~OTHERS & 07777); /* a file system without modes has none to lose */
}

static void index_sweep_look_at(int dir_fd, const char *name, time_t now) {
        _cleanup_(closep) int fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        struct stat status;

        if (fd < 0)
                return;
        if (is_temporary(name) && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) &&
            (now - status.st_mtime > LEFT_BEHIND_S ||
             status.st_mtime - now > LEFT_BEHIND_S)) /* or the clock was set back */
                unlinkat(dir_fd, name, 0);
        else
                close_to_others(fd);
}

void index_sweep(const char *index_dir) {
        DIR *dir = opendir(index_dir);
        const struct dirent *entry;
        bool has_others = false;

        if (!dir)
                return;
        while ((entry = readdir(dir))) {
                const char *name = entry->d_name;

                if (is_temporary(name) || is_kept(name))
                        index_sweep_look_at(dirfd(dir), name, time(NULL));
                else if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
                        has_others = true;
        }
        if (!has_others)
                close_to_others(dirfd(dir));
        closedir(dir);
}
