#include "daemon/data/source_compare.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "daemon/base/machine/beneath.h"
#include "daemon/base/machine/file_stamp.h"

int source_compare_file(int root_fd, const char *name, const struct stat *was, enum source_compare compare,
                        struct why *why) {
        const char *shown = strcmp(name, ".") == 0 ? "the folder itself" : name;
        struct file_stamp then = file_stamp_of(was), now;
        struct stat is;

        if (beneath_stat(root_fd, name, &is) < 0) {
                if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EXDEV || errno == ESTALE)
                        return why_set(why, SOURCE_STALE, "%s is gone", shown);
                return why_errno(why, -errno, "%s cannot be looked at", shown);
        }
        now = file_stamp_of(&is);
        switch (file_stamp_compare(&then, &now)) {
        case FILE_IS_SAME:
                return 0;
        case FILE_IS_IN_DOUBT:
                if (compare != SOURCE_COMPARE_ALL)
                        return 0;
                return why_set(why, SOURCE_STALE, "%s is another one now, or was changed, if only its mode", shown);
        case FILE_HAS_CHANGED:
                break;
        }
        if (compare == SOURCE_COMPARE_NAMES && now.n_bytes == then.n_bytes)
                return 0;
        return why_set(why, SOURCE_STALE, "%s has changed", shown);
}
