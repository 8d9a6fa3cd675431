#include "proto/base/shown/rate.h"

#include <string.h>

#define SLOT_NS    500000000ull
#define SMOOTH     8u            /* a new estimate of the end counts for an eighth */
#define KNOWN_NS   2000000000ull /* no estimate from less: connections are only being opened */
#define SECOND_NS  1000000000ull
#define END_FAR_NS (UINT64_MAX / 4) /* centuries: nobody knows */

void rate_reset(struct rate *rate) {
        *rate = (struct rate){ 0 };
}

static double per_ns(const struct rate *rate) {
        uint32_t last = rate->n - 1;

        /* less than before: a file was bad and counts as missing again */
        if (rate->n < 2 || rate->count[last] <= rate->count[0])
                return 0;
        return (double)(rate->count[last] - rate->count[0]) / (double)(rate->at_ns[last] - rate->at_ns[0]);
}

static void estimate(struct rate *rate, uint64_t now_ns, uint64_t n_left) {
        double speed = per_ns(rate);
        uint64_t end_ns;

        if (speed <= 0 || now_ns - rate->at_ns[0] < KNOWN_NS || (double)n_left / speed > (double)END_FAR_NS) {
                rate->end_ns = 0;
                return;
        }
        end_ns = now_ns + (uint64_t)((double)n_left / speed);
        rate->end_ns = rate->end_ns ? rate->end_ns - rate->end_ns / SMOOTH + end_ns / SMOOTH : end_ns;
}

void rate_add(struct rate *rate, uint64_t now_ns, uint64_t count, uint64_t total) {
        uint32_t n_old = 0;

        if (rate->n > 0 && now_ns - rate->at_ns[rate->n - 1] < SLOT_NS)
                return;
        while (n_old < rate->n && now_ns - rate->at_ns[n_old] > RATE_WINDOW_NS)
                n_old++;
        rate->n -= n_old;
        memmove(rate->at_ns, rate->at_ns + n_old, rate->n * sizeof(rate->at_ns[0]));
        memmove(rate->count, rate->count + n_old, rate->n * sizeof(rate->count[0]));
        rate->at_ns[rate->n] = now_ns;
        rate->count[rate->n++] = count;
        estimate(rate, now_ns, total > count ? total - count : 0);
}

uint64_t rate_per_second(const struct rate *rate) {
        return (uint64_t)(per_ns(rate) * SECOND_NS);
}

uint64_t rate_seconds_left(const struct rate *rate, uint64_t now_ns) {
        if (rate->end_ns == 0)
                return UINT64_MAX;
        return rate->end_ns > now_ns ? (rate->end_ns - now_ns + SECOND_NS - 1) / SECOND_NS : 0;
}
