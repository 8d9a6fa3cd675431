#include "daemon/base/machine/cpus.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

#define CPUS_MAX       65536                      /* more than any kernel counts */
#define MOUNTINFO_MAX  (4u << 20)                 /* only the part that is used is touched */
#define QUOTA_MAX_USEC UINT64_C(1000000000000000) /* bounds the value, so that nothing below overflows */

/* ---- parsing the kernel's files ------------------------------------------------------------------------------ */

uint64_t cpus_parse_max(const char *text) {
        unsigned long long quota, period;
        uint64_t milli;
        char *end;

        if (text[0] < '0' || text[0] > '9') /* "max", or nothing */
                return 0;
        errno = 0;
        quota = strtoull(text, &end, 10);
        if (errno || *end != ' ' || end[1] < '0' || end[1] > '9')
                return 0;
        period = strtoull(end + 1, &end, 10);
        if (errno || (*end && *end != '\n') || period == 0 || quota > QUOTA_MAX_USEC)
                return 0;
        milli = quota * CPU_MILLI / period;
        return milli > 0 ? milli : 1;
}

/* Copies up to the first of `stops`, undoing mountinfo's octal escapes (a blank is \040). False if it does not fit. */
static bool copy_field(const char *at, const char *stops, char *out, size_t capacity) {
        size_t n = 0;

        while (*at && !strchr(stops, *at)) {
                if (n + 1 >= capacity)
                        return false;
                if (at[0] == '\\' && strspn(at + 1, "01234567") >= 3) {
                        out[n++] = (char)((at[1] - '0') << 6 | (at[2] - '0') << 3 | (at[3] - '0'));
                        at += 4;
                } else {
                        out[n++] = *at++;
                }
        }
        out[n] = '\0';
        return n > 0;
}

static const char *cpus_next_line(const char *line) {
        line += strcspn(line, "\n");
        return *line ? line + 1 : NULL;
}

bool cpus_parse_cgroup(const char *text, char *ret_path, size_t capacity) {
        for (const char *line = text; line; line = cpus_next_line(line))
                if (strncmp(line, "0::/", 4) == 0)
                        return copy_field(line + 3, "\n", ret_path, capacity);
        return false;
}

/* The field of that number, from 0. NULL if the line has fewer. */
static const char *cpus_find_field(const char *line, unsigned idx) {
        for (; idx > 0; idx--) {
                line += strcspn(line, " \n");
                if (*line != ' ')
                        return NULL;
                line++;
        }
        return line;
}

bool cpus_parse_mounts(const char *text, char *ret_root, char *ret_point, size_t capacity) {
        for (const char *line = text; line; line = cpus_next_line(line)) {
                const char *type = strstr(line, " - "), *end = line + strcspn(line, "\n");
                const char *root = cpus_find_field(line, 3), *point = cpus_find_field(line, 4);

                if (type && type < end && strncmp(type, " - cgroup2 ", 11) == 0 && root && point && point < type &&
                    *root == '/' && *point == '/')
                        return copy_field(root, " \n", ret_root, capacity) &&
                               copy_field(point, " \n", ret_point, capacity);
        }
        return false;
}

/* ---- reading the kernel's files ------------------------------------------------------------------------------ */

/* Reads a file of the kernel as text; false if it cannot be read or does not fit. */
static bool cpus_read_text(const char *path, char *text, size_t capacity) {
        _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
        size_t n = 0;
        ssize_t r = fd < 0 ? -1 : 1;

        while (r > 0 && n + 1 < capacity) {
                r = read(fd, text + n, capacity - 1 - n);
                if (r > 0)
                        n += (size_t)r;
        }
        text[n] = '\0';
        return r == 0;
}

/* Our group's path below the mount point: a container may have mounted only a part of the tree. False if our group is
 * not in that part: then none of our limits can be seen. */
static bool path_below(const char *root, const char *path, const char **ret_below) {
        size_t n = strcmp(root, "/") == 0 ? 0 : strlen(root);

        if (strncmp(path, root, n) != 0 || (path[n] && path[n] != '/') || strstr(path, "/.."))
                return false;
        *ret_below = path + n;
        return true;
}

static void keep_smallest(struct cpus *cpus, const char *folder, const char *name) {
        char path[PATH_MAX + 16], text[128];
        uint64_t milli;

        snprintf(path, sizeof(path), "%s/cpu.max", folder);
        if (!cpus_read_text(path, text, sizeof(text))) /* no such file: the topmost group, or no controller */
                return;
        milli = cpus_parse_max(text);
        if (milli == 0 || (cpus->quota_milli && milli >= cpus->quota_milli))
                return;
        cpus->quota_milli = milli;
        snprintf(cpus->group, sizeof(cpus->group), "%.79s", *name ? name : "/");
}

void cpus_find_quota(const char *proc_dir, struct cpus *cpus) {
        _cleanup_(freep) char *mounts = malloc(MOUNTINFO_MAX);
        char path[PATH_MAX], root[PATH_MAX], point[PATH_MAX], folder[PATH_MAX], file[PATH_MAX];
        const char *below;
        int n;

        snprintf(file, sizeof(file), "%.4000s/cgroup", proc_dir);
        if (!mounts || !cpus_read_text(file, mounts, MOUNTINFO_MAX) || !cpus_parse_cgroup(mounts, path, sizeof(path)))
                return;
        snprintf(file, sizeof(file), "%.4000s/mountinfo", proc_dir);
        if (!cpus_read_text(file, mounts, MOUNTINFO_MAX) || !cpus_parse_mounts(mounts, root, point, sizeof(point)) ||
            !path_below(root, path, &below))
                return;
        n = snprintf(folder, sizeof(folder), "%s%s", point, strcmp(below, "/") == 0 ? "" : below);
        if (n < 0 || (size_t)n >= sizeof(folder))
                return;
        /* A group cannot use more than each group above it. In a container, even the topmost visible group may have a
         * limit. */
        for (size_t n_point = strlen(point);;) {
                char *last = strrchr(folder + n_point, '/');

                keep_smallest(cpus, folder, folder + n_point);
                if (!last)
                        break;
                *last = '\0';
        }
}

/* 0: the kernel does not say. */
static uint32_t ask_affinity(void) {
        for (int n = CPU_SETSIZE; n <= CPUS_MAX; n *= 2) {
                size_t n_bytes = CPU_ALLOC_SIZE(n);
                cpu_set_t *set = CPU_ALLOC(n);
                int r, count;

                if (!set)
                        break;
                r = sched_getaffinity(0, n_bytes, set) < 0 ? -errno : 0;
                count = r == 0 ? CPU_COUNT_S(n_bytes, set) : 0;
                CPU_FREE(set);
                if (count > 0)
                        return (uint32_t)count;
                if (r != -EINVAL) /* EINVAL: the kernel's mask is longer */
                        break;
        }
        return 0;
}

bool cpus_are_told(void) {
        return ask_affinity() > 0;
}

static uint32_t count_affinity(void) {
        uint32_t count = ask_affinity();

        if (count > 0)
                return count;
        return sysconf(_SC_NPROCESSORS_ONLN) > 0 ? (uint32_t)sysconf(_SC_NPROCESSORS_ONLN) : 1;
}

void cpus_take_all(void) {
        cpu_set_t *set = CPU_ALLOC(CPUS_MAX);

        if (!set)
                return;
        memset(set, 0xff, CPU_ALLOC_SIZE(CPUS_MAX)); /* the kernel takes those that exist and are allowed */
        if (sched_setaffinity(0, CPU_ALLOC_SIZE(CPUS_MAX), set) < 0) {
                CPU_FREE(set);
                return; /* a sandbox that forbids it: the mask stays */
        }
        CPU_FREE(set);
}

void cpus_find(struct cpus *ret_cpus) {
        *ret_cpus = (struct cpus){ .n_affinity = count_affinity() };
        cpus_find_quota("/proc/self", ret_cpus);
}

/* ---- how many CPUs these are --------------------------------------------------------------------------------- */

uint64_t cpus_milli(const struct cpus *cpus) {
        uint64_t milli = (uint64_t)cpus->n_affinity * CPU_MILLI;

        return cpus->quota_milli && cpus->quota_milli < milli ? cpus->quota_milli : milli;
}

uint32_t cpus_n_threads(const struct cpus *cpus) {
        return (uint32_t)((cpus_milli(cpus) + CPU_MILLI - 1) / CPU_MILLI);
}

const char *cpus_text(const struct cpus *cpus, char text[CPUS_TEXT_MAX]) {
        int n = snprintf(text, CPUS_TEXT_MAX, "affinity %u CPU%s", cpus->n_affinity, cpus->n_affinity == 1 ? "" : "s");

        if (cpus->quota_milli)
                snprintf(text + n, CPUS_TEXT_MAX - (size_t)n, ", cgroup quota %g (%s)",
                         (double)cpus->quota_milli / CPU_MILLI, cpus->group);
        return text;
}

/* ---- a share of the CPUs ------------------------------------------------------------------------------------- */

int cpu_share_parse(const char *text, struct cpu_share *ret_share) {
        unsigned long long percent;
        bool of_all;
        char *end;

        if (text[0] < '0' || text[0] > '9')
                return -EINVAL;
        errno = 0;
        percent = strtoull(text, &end, 10);
        of_all = *end == '%';
        if (errno || end[of_all] || percent > (of_all ? 100 : CPU_SHARE_PERCENT_MAX) || (of_all && percent == 0))
                return -EINVAL;
        *ret_share = (struct cpu_share){ .percent = (uint32_t)percent, .of_all = of_all };
        return 0;
}

uint64_t cpu_share_milli(const struct cpu_share *share, const struct cpus *cpus) {
        uint64_t milli = share->of_all ? cpus_milli(cpus) * share->percent / 100
                                       : (uint64_t)share->percent * CPU_MILLI / 100;

        return share->percent > 0 && milli == 0 ? 1 : milli;
}
