/* data/index/index_stamp.h: when a directory or file last changed, as one number. */
#pragma once

#include <stdint.h>
#include <sys/stat.h>

static inline int64_t index_mtime_ns(const struct stat *status) {
        /* through unsigned: a file system may hold any time, and the result is only compared */
        return (int64_t)((uint64_t)status->st_mtim.tv_sec * 1000000000ull + (uint64_t)status->st_mtim.tv_nsec);
}

/* The status of a directory or file that will be read next. What changed a moment ago could change again without
 * getting another time, and the index would look current for ever. So its time must be a little in the past, and this
 * waits for that. `settled_ns` adds up all time waited, which is bounded. Returns 0 or an errno. */
int index_settle(int fd, int64_t *settled_ns, struct stat *ret_status);
