#include "daemon/base/work/errand.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sys/resource.h>

#include "daemon/base/machine/cpus.h"
#include "proto/base/clock.h"

#define LOOK_NS 5000000u /* between two looks that cost anything */

static _Atomic int base_nice = INT_MIN; /* not set: nothing is changed */
static uint32_t n_full;

/* Of the calling thread. */
static _Thread_local struct {
        struct errands *errands;
        const _Atomic bool *is_unwanted;
        uint32_t n_begun;   /* within each other */
        int nice, own_nice; /* that it has, and that it had before */
        uint64_t looked_ns, cpu_ns;
} mine;

/* A step of nice is a quarter of the weight (sched(7)). */
int errand_nice(int nice, uint32_t n_threads, uint32_t n_weigh) {
        for (double times = (double)n_threads / n_weigh; times > 1 && nice < ERRAND_NICE_MAX; times /= 1.25)
                nice++;
        return nice;
}

void errands_set_nice(int nice) {
        int own = getpriority(PRIO_PROCESS, 0); /* of the main thread; if it cannot be read, -1 */

        atomic_store_explicit(&base_nice, nice > own ? nice : own, memory_order_relaxed);
}

static void find_cpus(void) {
        struct cpus cpus;

        cpus_find(&cpus);
        n_full = (cpus_n_threads(&cpus) + 1) / 2;
}

/* Lowering it takes a privilege; without it the thread keeps what it has. */
static void have_nice(int nice) {
        if (nice != mine.nice)
                setpriority(PRIO_PROCESS, 0, nice); /* applies to the calling thread */
        mine.nice = nice;
}

static void errand_follow_nice(void) {
        static pthread_once_t once = PTHREAD_ONCE_INIT;
        int nice = atomic_load_explicit(&base_nice, memory_order_relaxed);

        if (nice == INT_MIN)
                return;
        if (mine.errands) {
                pthread_once(&once, find_cpus);
                nice = errand_nice(nice, atomic_load_explicit(&mine.errands->n_threads, memory_order_relaxed), n_full);
        }
        have_nice(nice);
}

static void errand_pay(void) {
        uint64_t cpu_ns = clock_thread_ns();

        if (mine.errands && mine.errands->payer)
                fair_group_charge(mine.errands->payer, cpu_ns - mine.cpu_ns);
        mine.cpu_ns = cpu_ns;
}

void errand_begin(struct errands *errands, const _Atomic bool *is_unwanted) {
        if (mine.n_begun++ > 0)
                return;
        mine.errands = errands;
        mine.is_unwanted = is_unwanted;
        mine.nice = mine.own_nice = getpriority(PRIO_PROCESS, 0);
        mine.looked_ns = clock_now_ns();
        mine.cpu_ns = clock_thread_ns();
        if (errands)
                atomic_fetch_add_explicit(&errands->n_threads, 1, memory_order_relaxed);
        errand_follow_nice();
}

void errand_end(void) {
        if (--mine.n_begun > 0)
                return;
        errand_pay();
        if (mine.errands)
                atomic_fetch_sub_explicit(&mine.errands->n_threads, 1, memory_order_relaxed);
        mine.errands = NULL;
        mine.is_unwanted = NULL;
        have_nice(mine.own_nice);
}

int errand_look(void) {
        uint64_t now_ns;

        if (mine.n_begun == 0)
                return 0;
        if (mine.is_unwanted && atomic_load_explicit(mine.is_unwanted, memory_order_relaxed))
                return -ECANCELED;
        now_ns = clock_now_ns();
        if (now_ns - mine.looked_ns < LOOK_NS)
                return 0;
        mine.looked_ns = now_ns;
        errand_pay();
        errand_follow_nice();
        return 0;
}

struct errands *errand_joined(void) {
        return mine.errands;
}
