/* data/index_stamp.h: when a directory last changed, as one number. */
#pragma once

#include <stdint.h>
#include <sys/stat.h>

static inline int64_t index_mtime_ns(const struct stat *status) {
        /* through unsigned: a file system may hold any time, and this is only compared */
        return (int64_t)((uint64_t)status->st_mtim.tv_sec * 1000000000ull + (uint64_t)status->st_mtim.tv_nsec);
}
