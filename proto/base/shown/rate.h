/* proto/base/shown/rate.h: how fast something is, over the last ten seconds, and how long the rest will take.
 *
 * The window slides: what happened before it does not count, so a rate is right ten seconds after a pause. And it is
 * much longer than the time of a chunk, so the number that a person reads does not jump. */
#pragma once

#include <stdint.h>

#include "proto/base/symbol.h"

#define RATE_WINDOW_NS 10000000000ull
#define RATE_SLOTS     21u /* a look every half second, and one at each end of the window */

struct rate {
        uint64_t at_ns[RATE_SLOTS], count[RATE_SLOTS];
        uint32_t n;      /* the oldest is the first */
        uint64_t end_ns; /* when the rest is through, as estimated and smoothed; 0: unknown */
};

/* All before is forgotten: something else is counted from now on. */
void rate_reset(struct rate *rate) DLP_SYMBOL(rate_reset);

/* `count` so far, `total` in the end. Call it as often as you like. */
void rate_add(struct rate *rate, uint64_t now_ns, uint64_t count, uint64_t total) DLP_SYMBOL(rate_add);

uint64_t rate_per_second(const struct rate *rate) DLP_SYMBOL(rate_per_second);

/* UINT64_MAX: nobody knows. */
uint64_t rate_seconds_left(const struct rate *rate, uint64_t now_ns) DLP_SYMBOL(rate_seconds_left);
