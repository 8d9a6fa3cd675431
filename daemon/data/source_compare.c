#include "daemon/data/source_compare.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "daemon/data/index/index_stamp.h"

int source_compare_file(int root_fd, const char *name, const struct stat *was, enum source_compare compare,
                        struct why *why) {
        const char *shown = strcmp(name, ".") == 0 ? "the folder itself" : name;
        struct stat is;

        if (fstatat(root_fd, name, &is, 0) < 0) {
                if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ESTALE)
                        return why_set(why, SOURCE_STALE, "%s is gone", shown);
                return why_errno(why, -errno, "%s cannot be looked at", shown);
        }
        if (compare == SOURCE_COMPARE_ALL && (is.st_dev != was->st_dev || is.st_ino != was->st_ino))
                return why_set(why, SOURCE_STALE, "%s is another one now", shown);
        if ((S_ISREG(was->st_mode) && is.st_size != was->st_size) ||
            (compare != SOURCE_COMPARE_NAMES && index_mtime_ns(&is) != index_mtime_ns(was)))
                return why_set(why, SOURCE_STALE, "%s has changed", shown);
        return 0;
}
