/* fetch/engine/latency.h: how long answers let us wait: a histogram of the recent ones, from which quantiles are read.
 *
 * A step is an eighth of a power of two, so a quantile is at most an eighth too large, up to four minutes. When there
 * are LATENCY_TIMES_MAX times, all counts are halved: older ones fade. */
#pragma once

#include <stdint.h>

#define LATENCY_STEPS     208u
#define LATENCY_TIMES_MAX 8192u

struct latency {
        uint32_t n; /* the sum of `counts` */
        uint32_t counts[LATENCY_STEPS];
};

void latency_add(struct latency *latency, uint64_t us);

/* The time that so many of 1,000 did not exceed, in us; 0 if there are none. */
uint64_t latency_quantile_us(const struct latency *latency, uint32_t per_mille);
