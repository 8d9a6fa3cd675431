/* proto/base/clock.h: the one clock that intervals are measured with. */
#pragma once

#include <stdint.h>
#include <time.h>

/* Nanoseconds of CLOCK_MONOTONIC. */
static inline uint64_t clock_now_ns(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}
