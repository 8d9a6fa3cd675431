#include "daemon/ctl/users/authority.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

/* Container runtimes give neither the first one to root, nor, when they are strict, the second. */
#define NEEDED ((1ull << CAP_SYS_ADMIN) | (1ull << CAP_DAC_OVERRIDE))

#define STATUS_MAX (64u << 10) /* it lists the groups of a process before its capabilities */

/* A file of a process: "1234" or "self". */
static bool authority_read_file(const char *process, const char *name, char *text, size_t size) {
        _cleanup_(closep) int fd = -1;
        size_t n_read = 0;
        char path[64];
        ssize_t n = 1;

        snprintf(path, sizeof(path), "/proc/%s/%s", process, name);
        fd = open(path, O_RDONLY | O_CLOEXEC);
        while (fd >= 0 && n > 0 && n_read < size - 1) {
                n = read(fd, text + n_read, size - 1 - n_read);
                n_read += n > 0 ? (size_t)n : 0;
        }
        text[n_read] = '\0';
        return n_read > 0 && n >= 0;
}

static bool find_set(const char *status, const char *name, uint64_t *ret_set) {
        const char *line = strstr(status, name);

        if (!line)
                return false;
        *ret_set = strtoull(line + strlen(name), NULL, 16);
        return true;
}

/* The permitted set, not the effective one: that is empty while root's process acts as another user (seteuid()). */
struct authority authority_parse(const char *status, uint64_t needed) {
        struct authority authority = { false };
        uint64_t permitted, bounding;

        if (!find_set(status, "\nCapPrm:", &permitted) || !find_set(status, "\nCapBnd:", &bounding))
                return authority;
        authority.is_ours = (bounding & needed) == needed;
        authority.is_root = authority.is_ours && (permitted & needed) == needed;
        return authority;
}

/* In a container that we run in as well nobody has more than its first process, which is looked at once: its set only
 * shrinks. */
static uint64_t needed_here(void) {
        static uint64_t bounding;
        static bool is_known;
        char status[STATUS_MAX];

        if (!is_known)
                is_known = authority_read_file("1", "status", status, sizeof(status)) &&
                           find_set(status, "\nCapBnd:", &bounding);
        return is_known ? NEEDED & bounding : NEEDED;
}

/* By the number of the namespace, which the kernel tells to whoever may look into the process; otherwise by how its
 * users are mapped, which it tells to all. */
static bool is_in_our_namespace(const char *process) {
        char path[64], map[1024], our_map[1024];
        struct stat status, ours;

        if (stat("/proc/self/ns/user", &ours) < 0)
                return errno == ENOENT; /* a kernel without user namespaces */
        snprintf(path, sizeof(path), "/proc/%s/ns/user", process);
        if (stat(path, &status) == 0)
                return status.st_dev == ours.st_dev && status.st_ino == ours.st_ino;
        return authority_read_file(process, "uid_map", map, sizeof(map)) &&
               authority_read_file("self", "uid_map", our_map, sizeof(our_map)) && strcmp(map, our_map) == 0;
}

struct authority authority_of(const struct process *process) {
        const struct authority none = { false };
        struct authority authority;
        char number[16], status[STATUS_MAX];

        if (process->pid <= 0)
                return none;
        snprintf(number, sizeof(number), "%d", (int)process->pid);
        if (!authority_read_file(number, "status", status, sizeof(status)))
                return none;
        authority = authority_parse(status, needed_here());
        if (!authority.is_ours || !is_in_our_namespace(number) || process_has_ended(process))
                return none;
        return authority;
}

bool authority_is_seen(void) {
        char status[64];

        return authority_read_file("1", "status", status, sizeof(status));
}
