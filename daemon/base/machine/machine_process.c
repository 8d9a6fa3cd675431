#include "daemon/base/machine/machine_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "proto/base/cleanup.h"
#include "proto/job_group.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5; refers to the process itself, even if its pid is used again */
#endif

/* Flags of the kernel's task, in /proc/PID/stat. */
#define TASK_EXITING   0x004u
#define TASK_DUMPED    0x008u
#define TASK_DUMPING   0x200u
#define TASK_SIGNALLED 0x400u

struct process process_of_peer(int socket, pid_t pid) {
        struct process process = { .fd = -1, .pid = pid };
        socklen_t length = sizeof(process.fd);

        if (getsockopt(socket, SOL_SOCKET, SO_PEERPIDFD, &process.fd, &length) == 0)
                return process;
        process.fd = -1;
        if (pid > 0)
                process.fd = (int)syscall(SYS_pidfd_open, pid, 0);
        return process;
}

void process_close(struct process *process) {
        closep(&process->fd);
        *process = PROCESS_NONE;
}

/* "1234 (any ) name) Z 1 1234 1234 0 -1 4228 ...": state, parent, group, session, terminal, its group, flags. */
bool process_stat_is_ending(const char *stat) {
        const char *behind_name = strrchr(stat, ')');
        unsigned flags = 0;
        char state = 0;

        if (!behind_name || sscanf(behind_name + 1, " %c %*d %*d %*d %*d %*d %u", &state, &flags) != 2)
                return false;
        return state == 'Z' || state == 'X' || (flags & (TASK_EXITING | TASK_DUMPED | TASK_DUMPING | TASK_SIGNALLED));
}

bool process_stat_is_stopped(const char *stat) {
        const char *behind_name = strrchr(stat, ')');
        char state = 0;

        return behind_name && sscanf(behind_name + 1, " %c", &state) == 1 && (state == 'T' || state == 't');
}

/* The process was killed but has not reacted yet: it may hang in a device or a dead file system. */
bool process_status_is_ending(const char *status) {
        static const char *const PENDING[] = { "\nSigPnd:", "\nShdPnd:" };

        for (size_t i = 0; i < ARRAY_SIZE(PENDING); i++) {
                const char *line = strstr(status, PENDING[i]);

                if (line && strtoull(line + strlen(PENDING[i]), NULL, 16) & 1ull << (SIGKILL - 1))
                        return true;
        }
        return false;
}

static bool file_says(pid_t pid, const char *name, bool (*says)(const char *text)) {
        _cleanup_(closep) int fd = -1;
        char path[64], text[4096];
        ssize_t n;

        snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return false; /* either it has ended, which kill() shows, or it is hidden from us */
        n = read(fd, text, sizeof(text) - 1);
        if (n < 0)
                return errno == ESRCH;
        text[n] = '\0';
        return says(text);
}

/* Has it given back its memory? A process does that before it closes its descriptors, so the answer is true for most of
 * a slow end. The kernel looks for the memory before it checks permissions, so "no such process" is told to every
 * caller, even if /proc is hidden. Nothing is read: address 0 is not mapped. */
static bool has_no_memory(pid_t pid) {
        uint8_t byte;
        struct iovec here = { .iov_base = &byte, .iov_len = 1 }, there = { .iov_base = NULL, .iov_len = 1 };

        return process_vm_readv(pid, &here, 1, &there, 1, 0) < 0 && errno == ESRCH;
}

bool process_is_stopped(pid_t pid) {
        return pid > 0 && file_says(pid, "stat", process_stat_is_stopped);
}

bool process_has_ended(const struct process *process) {
        struct pollfd poll_fd = { .fd = process->fd, .events = POLLIN };

        return process->fd >= 0 && poll(&poll_fd, 1, 0) > 0;
}

uint64_t process_job_group(const struct process *process) {
        uint64_t number;
        char path[64];

        if (process->pid <= 0)
                return 0;
        snprintf(path, sizeof(path), "/proc/%d/cgroup", (int)process->pid);
        number = dlp_job_group(path);
        return process_has_ended(process) ? 0 : number; /* it may have been another process's file */
}

bool process_is_ending(const struct process *process) {
        if (process_has_ended(process))
                return true;
        if (process->pid <= 0)
                return false;
        return (kill(process->pid, 0) < 0 && errno == ESRCH) ||
               file_says(process->pid, "stat", process_stat_is_ending) ||
               file_says(process->pid, "status", process_status_is_ending) || has_no_memory(process->pid);
}
