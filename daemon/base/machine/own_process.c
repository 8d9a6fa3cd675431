#include "daemon/base/machine/own_process.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

static uint64_t own_process_ns_of(const struct timeval *time) {
        return (uint64_t)time->tv_sec * 1000000000u + (uint64_t)time->tv_usec * 1000u;
}

bool own_process_parse(const char *text, uint64_t *ret_virtual, uint64_t *ret_resident) {
        unsigned long long all, resident;

        if (sscanf(text, "%llu %llu", &all, &resident) != 2)
                return false;
        *ret_virtual = all;
        *ret_resident = resident;
        return true;
}

static void own_process_read_sizes(struct own_process *process) {
        _cleanup_(closep) int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
        uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), all, resident;
        char text[256];
        ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);

        if (n <= 0)
                return;
        text[n] = '\0';
        if (!own_process_parse(text, &all, &resident))
                return;
        process->virtual_bytes = all * page;
        process->resident_bytes = resident * page;
}

static uint64_t count_descriptors(void) {
        DIR *folder = opendir("/proc/self/fd");
        uint64_t n = 0;

        if (!folder)
                return 0;
        for (const struct dirent *entry = readdir(folder); entry; entry = readdir(folder))
                n += entry->d_name[0] != '.';
        closedir(folder);
        return n > 0 ? n - 1 : 0; /* without the folder's own */
}

void own_process(struct own_process *ret_process) {
        struct own_process process = { 0 };
        struct rusage usage;
        struct rlimit limit = { 0 };

        getrusage(RUSAGE_SELF, &usage);
        process.cpu_ns = own_process_ns_of(&usage.ru_utime) + own_process_ns_of(&usage.ru_stime);
        own_process_read_sizes(&process);
        process.n_fds = count_descriptors();
        getrlimit(RLIMIT_NOFILE, &limit);
        process.n_fds_max = limit.rlim_cur;
        *ret_process = process;
}
