#include "daemon/base/machine/machine_memory.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/machine/cpus.h"
#include "proto/base/cleanup.h"

#define GROUPS_AT "/sys/fs/cgroup"

/* Files of the kernel: short, and read without blocking. */
static bool machine_memory_read_text(const char *path, char *text, size_t capacity) {
        _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : read(fd, text, capacity - 1);

        text[n > 0 ? n : 0] = '\0';
        return n > 0;
}

uint64_t memory_parse_available(const char *text) {
        const char *line = strstr(text, "MemAvailable:");

        return line ? strtoull(line + strlen("MemAvailable:"), NULL, 10) << 10 : 0;
}

static uint64_t machine_memory_limit_of(const char *folder, const char *name) {
        char path[PATH_MAX + 16], text[64];

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        if (!machine_memory_read_text(path, text, sizeof(text)) || text[0] < '0' ||
            text[0] > '9') /* "max", or no such controller */
                return UINT64_MAX;
        return strtoull(text, NULL, 10);
}

static uint64_t machine_memory_smaller(uint64_t a, uint64_t b) {
        return a < b ? a : b;
}

uint64_t memory_group_limit(const char *mount_point, const char *path) {
        size_t n_point = strlen(mount_point);
        uint64_t limit = UINT64_MAX;
        char folder[PATH_MAX];
        int n = snprintf(folder, sizeof(folder), "%s%s", mount_point, strcmp(path, "/") == 0 ? "" : path);

        if (n < 0 || (size_t)n >= sizeof(folder))
                return limit;
        for (;;) {
                char *last;

                limit = machine_memory_smaller(limit,
                                               machine_memory_smaller(machine_memory_limit_of(folder, "memory.max"),
                                                                      machine_memory_limit_of(folder, "memory.high")));
                last = strrchr(folder + n_point, '/');
                if (!last)
                        return limit;
                *last = '\0';
        }
}

uint64_t memory_of_our_group(void) {
        char text[8192], path[PATH_MAX];

        if (!machine_memory_read_text("/proc/self/cgroup", text, sizeof(text)) ||
            !cpus_parse_cgroup(text, path, sizeof(path)))
                return UINT64_MAX;
        return memory_group_limit(GROUPS_AT, path);
}

uint64_t memory_of_ours(void) {
        long n_pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
        uint64_t machine = n_pages > 0 && page > 0 ? (uint64_t)n_pages * (uint64_t)page : UINT64_MAX;

        return machine_memory_smaller(machine, memory_of_our_group());
}

uint64_t memory_available(void) {
        char text[8192];
        uint64_t available;

        if (!machine_memory_read_text("/proc/meminfo", text, sizeof(text)))
                return 0;
        available = memory_parse_available(text);
        return machine_memory_smaller(available, memory_of_our_group());
}
