#include "daemon/fetch/engine/latency.h"

#define US_MAX ((1ull << 28) - 1) /* falls into the last step */

static uint32_t step_of(uint64_t us) {
        uint32_t exponent;

        if (us > US_MAX)
                us = US_MAX;
        if (us < 8)
                return (uint32_t)us;
        exponent = 63 - (uint32_t)__builtin_clzll(us);
        return (exponent - 2) * 8 + (uint32_t)(us >> (exponent - 3) & 7);
}

/* The largest time of a step. */
static uint64_t step_end_us(uint32_t step) {
        if (step < 8)
                return step;
        return ((uint64_t)(8 + step % 8 + 1) << (step / 8 - 1)) - 1;
}

void latency_add(struct latency *latency, uint64_t us) {
        latency->counts[step_of(us)]++;
        if (++latency->n < LATENCY_TIMES_MAX)
                return;
        latency->n = 0;
        for (uint32_t i = 0; i < LATENCY_STEPS; i++) {
                latency->counts[i] /= 2;
                latency->n += latency->counts[i];
        }
}

uint64_t latency_quantile_us(const struct latency *latency, uint32_t per_mille) {
        uint64_t n_below = 0;

        if (latency->n == 0)
                return 0;
        for (uint32_t i = 0; i < LATENCY_STEPS; i++) {
                n_below += latency->counts[i];
                if (n_below * 1000 >= (uint64_t)latency->n * per_mille && n_below > 0)
                        return step_end_us(i);
        }
        return US_MAX;
}
