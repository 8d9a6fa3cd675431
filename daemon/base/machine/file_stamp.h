/* base/machine/file_stamp.h: which state of a file or directory was seen, so that another one is noticed later.
 *
 * Size and time alone do not tell: who replaces a file may give it the time of the old one (rsync, tar, cp -p, touch
 * -r), and a table of numbers often keeps its size. The inode and the time of its last change, which nobody can set,
 * differ then. But they also differ after what touches no byte: chmod, a further link, a copy. So this is a doubt, and
 * the caller looks at the bytes. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct file_stamp {
        uint64_t device, inode;
        uint64_t n_bytes; /* 0 of a directory */
        int64_t mtime_ns; /* of the last change of its bytes, or what somebody said it was */
        int64_t ctime_ns; /* of the last change of anything */
};

enum file_change {
        FILE_IS_SAME,
        FILE_IS_IN_DOUBT, /* equal in size and time; but another file, or something of it was changed */
        FILE_HAS_CHANGED,
};

static inline int64_t file_stamp_ns(const struct timespec *time) {
        /* through unsigned: a file system may hold any time, and the result is only compared */
        return (int64_t)((uint64_t)time->tv_sec * 1000000000ull + (uint64_t)time->tv_nsec);
}

static inline struct file_stamp file_stamp_of(const struct stat *status) {
        return (struct file_stamp){
                .device = status->st_dev,
                .inode = status->st_ino,
                .n_bytes = S_ISDIR(status->st_mode) ? 0 : (uint64_t)status->st_size,
                .mtime_ns = file_stamp_ns(&status->st_mtim),
                .ctime_ns = file_stamp_ns(&status->st_ctim),
        };
}

static inline enum file_change file_stamp_compare(const struct file_stamp *was, const struct file_stamp *is) {
        if (was->n_bytes != is->n_bytes || was->mtime_ns != is->mtime_ns)
                return FILE_HAS_CHANGED;
        return was->device == is->device && was->inode == is->inode && was->ctime_ns == is->ctime_ns ? FILE_IS_SAME
                                                                                                     : FILE_IS_IN_DOUBT;
}

/* The same for two states of which one was asked for a moment ago: any doubt is a change. */
static inline bool file_is_same(const struct stat *was, const struct stat *is) {
        struct file_stamp one = file_stamp_of(was), other = file_stamp_of(is);

        return file_stamp_compare(&one, &other) == FILE_IS_SAME;
}
