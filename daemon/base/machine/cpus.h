/* base/machine/cpus.h: how many CPUs this process may use.
 *
 * Two things say so: the affinity mask (taskset, a container's cpuset) and the CPU quota of our control group and of
 * all groups above it (cgroup v2: cpu.max). The mask counts CPUs; the quota is CPU time for wall time, so 3.5 is
 * possible. More threads than the smaller of the two only wait for each other. Version 1 of control groups, and a group
 * that cannot be seen from here, count as no quota. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CPU_MILLI      1000u /* thousandths: 3500 = three CPUs and a half */
#define CPUS_TEXT_MAX  160u
#define CPUS_GROUP_MAX 80u

struct cpus {
        uint32_t n_affinity;        /* CPUs of the mask, at least 1 */
        uint64_t quota_milli;       /* the smallest quota; 0 = none */
        char group[CPUS_GROUP_MAX]; /* path of the group that sets it, as far as we see it */
};

/* Reads the machine's current values. Cheap: a few small files. A later call may give another answer. */
void cpus_find(struct cpus *ret_cpus);

/* Does the kernel tell which CPUs this process may run on? A sandbox may forbid the question. */
bool cpus_are_told(void);

/* The useful number of threads: the smaller of the two, rounded up, at least 1. */
uint32_t cpus_n_threads(const struct cpus *cpus);

/* Available CPU time per wall time, in thousandths. */
uint64_t cpus_milli(const struct cpus *cpus);

/* "affinity 8 CPUs, cgroup quota 3.5 (/trainers.slice)" */
const char *cpus_text(const struct cpus *cpus, char text[CPUS_TEXT_MAX]);

/* Sets the affinity mask to all CPUs that the cpuset of our control group allows: whoever started us may have been
 * bound to a few. Where that is refused the mask stays. Before there is any thread. */
void cpus_take_all(void);

/* ---- a share of the CPUs ------------------------------------------------------------------------------------- */

/* A ceiling as people write it: "0" none, "350" percent of one CPU, "60%" of all available CPUs. */
struct cpu_share {
        uint32_t percent; /* 0 = no ceiling */
        bool of_all;
};

#define CPU_SHARE_PERCENT_MAX 1000000u

/* Returns 0, or -EINVAL for any other text. */
int cpu_share_parse(const char *text, struct cpu_share *ret_share);

/* In thousandths of a CPU, at least 1; 0 = no ceiling. */
uint64_t cpu_share_milli(const struct cpu_share *share, const struct cpus *cpus);

/* ---- internal functions, for tests --------------------------------------------------------------------------- */

/* The quota alone, as seen by the process whose /proc folder this is: `proc_dir` is "/proc/self" except in tests. */
void cpus_find_quota(const char *proc_dir, struct cpus *cpus);

/* cpu.max: "max 100000" or "350000 100000" (microseconds). Returns the quota in thousandths of a CPU, at least 1; 0 for
 * "max" and for invalid text. */
uint64_t cpus_parse_max(const char *text);

/* /proc/PID/cgroup: the path of our group in the tree of version 2 ("0::/a/b"). False if there is none. */
bool cpus_parse_cgroup(const char *text, char *ret_path, size_t capacity);

/* /proc/PID/mountinfo: where the tree of version 2 is mounted, and which part of it. False if it is not mounted. */
bool cpus_parse_mounts(const char *text, char *ret_root, char *ret_point, size_t capacity);
