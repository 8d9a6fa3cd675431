/* lib/clock.h: deadlines on CLOCK_MONOTONIC, in nanoseconds. */
#pragma once

#include <stdint.h>
#include <time.h>

#define DLI_NEVER UINT64_MAX

static inline uint64_t dli_now_ns(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* When a wait of so many milliseconds that begins now is over; negative: never. */
static inline uint64_t dli_deadline(int timeout_ms) {
        return timeout_ms < 0 ? DLI_NEVER : dli_now_ns() + (uint64_t)timeout_ms * 1000000u;
}
