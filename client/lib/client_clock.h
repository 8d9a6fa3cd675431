/* lib/client_clock.h: deadlines on CLOCK_MONOTONIC, in nanoseconds. */
#pragma once

#include <stdint.h>

#include "proto/base/clock.h"

#define DLI_NEVER UINT64_MAX

/* The end of a wait of timeout_ms milliseconds that begins now; a negative timeout never ends. */
static inline uint64_t dli_deadline(int timeout_ms) {
        return timeout_ms < 0 ? DLI_NEVER : clock_now_ns() + (uint64_t)timeout_ms * 1000000u;
}
