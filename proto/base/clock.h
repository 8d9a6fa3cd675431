/* proto/base/clock.h: the one clock that intervals are measured with, and that of a thread. */
#pragma once

#include <stdint.h>
#include <time.h>

/* Nanoseconds of CLOCK_MONOTONIC. */
static inline uint64_t clock_now_ns(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

/* The CPU time that the calling thread has had, in nanoseconds. */
static inline uint64_t clock_thread_ns(void) {
        struct timespec had;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &had);
        return (uint64_t)had.tv_sec * 1000000000ull + (uint64_t)had.tv_nsec;
}
