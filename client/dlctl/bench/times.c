#include "client/dlctl/bench/times.h"

/* Below TIMES_STEPS each nanosecond has a bucket; above, each power of two has TIMES_STEPS. */
static uint32_t times_bucket_of(uint64_t ns) {
        uint32_t shift;

        if (ns < TIMES_STEPS)
                return (uint32_t)ns;
        shift = 63u - (uint32_t)__builtin_clzll(ns) - 5u;
        return (shift + 1u) * TIMES_STEPS + (uint32_t)((ns >> shift) - TIMES_STEPS);
}

/* The middle of a bucket. */
static double times_time_of(uint32_t bucket) {
        uint32_t shift = bucket / TIMES_STEPS;

        if (shift == 0)
                return bucket;
        shift--;
        return ((double)(TIMES_STEPS + bucket % TIMES_STEPS) + 0.5) * (double)(UINT64_C(1) << shift);
}

void times_add(struct times *times, uint64_t ns) {
        times->n++;
        times->counts[times_bucket_of(ns)]++;
}

double times_quantile(const struct times *times, double share) {
        double wanted = share * (double)times->n;
        uint64_t n = 0;

        for (uint32_t i = 0; i < TIMES_BUCKETS && times->n > 0; i++) {
                n += times->counts[i];
                if (times->counts[i] > 0 && (double)n >= wanted)
                        return times_time_of(i);
        }
        return 0;
}
