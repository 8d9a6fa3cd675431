/* pipeline/counters.h: the counters of the hot path: those of the daemon in base/number_rows.h. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "daemon/base/number_rows.h"

struct counters {
        NODE_COUNTERS(NUMBER_COUNTED)
};

/* Counters synchronise nothing, so they are relaxed. Each thread that counts has its own set, so that no cache line
 * moves from worker to worker for a number that is rarely read. */
#define counter_add(counter, n) atomic_fetch_add_explicit((counter), (n), memory_order_relaxed)
#define counter_get(counter)    atomic_load_explicit((counter), memory_order_relaxed)

static inline void counters_add(struct counters *sum, struct counters *more) {
#define ROW(name, ...) counter_add(&sum->name, counter_get(&more->name));
        NODE_COUNTERS(ROW)
#undef ROW
}
