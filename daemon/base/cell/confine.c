#include "daemon/base/cell/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "proto/base/cleanup.h"

#if defined(__x86_64__)
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "base/cell/confine.c: name this machine's AUDIT_ARCH"
#endif

#define FILTER_MAX      256u
#define DESCRIPTORS_MAX 8u          /* the standard ones, the channel, and one that has just come */
#define X32_CALLS       0x40000000u /* x86 has a second set of calls; none of them is allowed */

/* ---- which calls ------------------------------------------------------------------------------------------------- */

/* What decoding, malloc(), abort() and the runtime of a sanitizer call. */
static const int ALLOWED[] = {
        __NR_read,           __NR_write,
        __NR_recvmsg,        __NR_sendto,
        __NR_close,          __NR_munmap,
        __NR_mremap,         __NR_brk,
        __NR_futex,          __NR_clock_gettime,
        __NR_gettimeofday,   __NR_nanosleep,
        __NR_sched_yield,    __NR_clock_nanosleep,
        __NR_getrandom,      __NR_rt_sigreturn,
        __NR_rt_sigaction,   __NR_sigaltstack,
        __NR_rt_sigprocmask, __NR_getpid,
        __NR_gettid,         __NR_exit,
        __NR_exit_group,     __NR_restart_syscall,
        __NR_getcpu,         __NR_sched_getaffinity,
};

/* How libraries look for what they can do without. */
static const int REFUSED[] = {
        __NR_openat,  __NR_fstat, __NR_newfstatat, __NR_statx,    __NR_readlinkat, __NR_faccessat, __NR_ioctl,
        __NR_sysinfo, __NR_uname, __NR_prctl,      __NR_fcntl,    __NR_lseek,      __NR_prlimit64, __NR_getrusage,
#if defined(__x86_64__)
        __NR_open,    __NR_stat,  __NR_access,     __NR_readlink,
#endif
};

/* Advice that malloc() and sanitizers give. MADV_REMOVE would take pages out of a ring. */
static const int ADVICE[] = { MADV_DONTNEED, MADV_FREE, MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_DONTDUMP };

/* ---- the filter -------------------------------------------------------------------------------------------------- */

struct call_filter {
        struct sock_filter steps[FILTER_MAX];
        unsigned short n;
};

static void confine_add(struct call_filter *filter, uint16_t code, uint32_t k, uint8_t if_true, uint8_t if_false) {
        filter->steps[filter->n++] = (struct sock_filter){ code, if_true, if_false, k };
}

static void confine_load(struct call_filter *filter, size_t offset) {
        confine_add(filter, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void confine_end(struct call_filter *filter, uint32_t action) {
        confine_add(filter, BPF_RET | BPF_K, action, 0, 0);
}

/* What was loaded is `k`: the action. */
static void end_if(struct call_filter *filter, uint32_t k, uint32_t action) {
        confine_add(filter, BPF_JMP | BPF_JEQ | BPF_K, k, 0, 1);
        confine_end(filter, action);
}

/* The lower half of an argument; these machines are little-endian. */
static size_t argument(unsigned idx) {
        return offsetof(struct seccomp_data, args) + idx * sizeof(uint64_t);
}

/* A call that is allowed without one bit in an argument: memory that can be executed. */
static void allow_without(struct call_filter *filter, int call, unsigned idx, uint32_t bit) {
        confine_add(filter, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 4);
        confine_load(filter, argument(idx));
        confine_add(filter, BPF_JMP | BPF_JSET | BPF_K, bit, 0, 1);
        confine_end(filter, SECCOMP_RET_KILL_PROCESS);
        confine_end(filter, SECCOMP_RET_ALLOW);
}

static void allow_advice(struct call_filter *filter) {
        uint8_t n = ARRAY_SIZE(ADVICE);

        confine_add(filter, BPF_JMP | BPF_JEQ | BPF_K, __NR_madvise, 0, (uint8_t)(2 * n + 2));
        confine_load(filter, argument(2));
        for (uint8_t i = 0; i < n; i++)
                end_if(filter, (uint32_t)ADVICE[i], SECCOMP_RET_ALLOW);
        confine_end(filter, SECCOMP_RET_ERRNO | EINVAL);
}

/* A signal to itself: abort(). */
static void allow_own_signals(struct call_filter *filter) {
        confine_add(filter, BPF_JMP | BPF_JEQ | BPF_K, __NR_tgkill, 0, 4);
        confine_load(filter, argument(0));
        end_if(filter, (uint32_t)getpid(), SECCOMP_RET_ALLOW);
        confine_end(filter, SECCOMP_RET_KILL_PROCESS);
}

static void confine_make(struct call_filter *filter) {
        confine_load(filter, offsetof(struct seccomp_data, arch));
        confine_add(filter, BPF_JMP | BPF_JEQ | BPF_K, ARCHITECTURE, 1, 0);
        confine_end(filter, SECCOMP_RET_KILL_PROCESS);
        confine_load(filter, offsetof(struct seccomp_data, nr));
        confine_add(filter, BPF_JMP | BPF_JGE | BPF_K, X32_CALLS, 0, 1);
        confine_end(filter, SECCOMP_RET_KILL_PROCESS);
        for (size_t i = 0; i < ARRAY_SIZE(ALLOWED); i++)
                end_if(filter, (uint32_t)ALLOWED[i], SECCOMP_RET_ALLOW);
        for (size_t i = 0; i < ARRAY_SIZE(REFUSED); i++)
                end_if(filter, (uint32_t)REFUSED[i], SECCOMP_RET_ERRNO | EPERM);
        allow_without(filter, __NR_mmap, 2, PROT_EXEC);
        allow_without(filter, __NR_mprotect, 2, PROT_EXEC);
        allow_advice(filter);
        allow_own_signals(filter);
        confine_end(filter, SECCOMP_RET_KILL_PROCESS);
}

/* Without SPEC_ALLOW kernels before 5.16 slow a filtered process down by a tenth and more, so that it cannot guess what
 * its own memory holds, which it may read anyway. Where a service manager hides this call, prctl() does the same. */
static int install(const struct sock_fprog *program) {
        if (syscall(__NR_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, program) == 0)
                return 0;
        return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, program) < 0 ? -errno : 0;
}

/* ---- limits ------------------------------------------------------------------------------------------------------ */

static void limit(int resource, rlim_t most) {
        setrlimit(resource, &(struct rlimit){ most, most }); /* lowering is always allowed */
}

static void offer_to_be_killed(void) {
        static const char FIRST[] = "1000";
        int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

        if (fd < 0)
                return;
        (void)!write(fd, FIRST, sizeof(FIRST) - 1);
        close(fd);
}

void confine_begin(enum cell_trust trust) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* who has ended before has closed the channel */
        syscall(__NR_close_range, CELL_CHANNEL + 1u, ~0u, 0u);
        limit(RLIMIT_CORE, 0);
        if (trust == CELL_INSTALLED) {
                prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
                offer_to_be_killed();
                return;
        }
        prctl(PR_SET_DUMPABLE, 0);
        limit(RLIMIT_FSIZE, 0);
        limit(RLIMIT_NOFILE, DESCRIPTORS_MAX);
}

/* The limit counts what it has already: code's data, stacks, and the shadow memory of a sanitizer. */
static void limit_memory(uint64_t data_bytes) {
        unsigned long long n_pages = 0;
        FILE *file = fopen("/proc/self/statm", "re");
        bool is_known = file && fscanf(file, "%*u %*u %*u %*u %*u %llu", &n_pages) == 1;

        if (file)
                fclose(file);
        if (is_known && data_bytes > 0)
                limit(RLIMIT_DATA, data_bytes + n_pages * (uint64_t)sysconf(_SC_PAGESIZE));
}

int confine(uint64_t data_bytes, struct why *why) {
        struct call_filter filter = { .n = 0 };
        struct sock_fprog program = { .filter = filter.steps };
        int r;

        limit_memory(data_bytes);
        confine_make(&filter);
        program.len = filter.n;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
                return why_errno(why, -errno, "giving up privileges for ever (PR_SET_NO_NEW_PRIVS)");
        r = install(&program);
        if (r < 0)
                return why_errno(why, r,
                                 "the kernel refuses a filter of system calls (seccomp): a container's runtime may "
                                 "forbid it, or the kernel be built without CONFIG_SECCOMP_FILTER: allow it, or set "
                                 "isolation to threads");
        return 0;
}
