/* dlctl/bench/times.h: how long many calls took, as a histogram. */
#pragma once

#include <stdint.h>

#define TIMES_STEPS   32u /* of each power of two: a quantile is right to 3 % */
#define TIMES_BUCKETS ((64u - 5u) * TIMES_STEPS)

struct times {
        uint64_t n;
        uint64_t counts[TIMES_BUCKETS];
};

void times_add(struct times *times, uint64_t ns);

/* The time that `share` (0 to 1) of the calls did not exceed, in nanoseconds; 0 of none. */
double times_quantile(const struct times *times, double share);
