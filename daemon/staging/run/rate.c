#include "daemon/staging/run/rate.h"

#define SLOT_NS    500000000ull
#define SMOOTH     8u            /* a new estimate of the end counts for an eighth */
#define KNOWN_NS   2000000000ull /* no estimate from less: connections are only being opened */
#define SECOND_NS  1000000000ull
#define END_FAR_NS (UINT64_MAX / 4) /* centuries: nobody knows */

void rate_reset(struct rate *rate) {
        *rate = (struct rate){ 0 };
}

/* The oldest look that is within the window. */
static uint32_t oldest(const struct rate *rate) {
        uint64_t newest_ns = rate->at_ns[rate->newest];
        uint32_t idx = rate->newest;

        for (uint32_t i = 1; i < rate->n; i++) {
                uint32_t before = (rate->newest + RATE_SLOTS - i) % RATE_SLOTS;

                if (newest_ns - rate->at_ns[before] > RATE_WINDOW_NS)
                        break;
                idx = before;
        }
        return idx;
}

static double per_ns(const struct rate *rate) {
        uint32_t first = oldest(rate), last = rate->newest;
        uint64_t span_ns = rate->n > 0 ? rate->at_ns[last] - rate->at_ns[first] : 0;

        /* less than before: a file was bad and counts as missing again */
        if (span_ns == 0 || rate->count[last] <= rate->count[first])
                return 0;
        return (double)(rate->count[last] - rate->count[first]) / (double)span_ns;
}

static void estimate(struct rate *rate, uint64_t now_ns, uint64_t n_left) {
        double speed = per_ns(rate), left_ns;
        uint64_t end_ns;

        if (speed <= 0 || now_ns - rate->at_ns[oldest(rate)] < KNOWN_NS) {
                rate->end_ns = 0;
                return;
        }
        left_ns = (double)n_left / speed;
        if (left_ns > (double)END_FAR_NS) {
                rate->end_ns = 0;
                return;
        }
        end_ns = now_ns + (uint64_t)left_ns;
        rate->end_ns = rate->end_ns ? rate->end_ns - rate->end_ns / SMOOTH + end_ns / SMOOTH : end_ns;
}

void rate_add(struct rate *rate, uint64_t now_ns, uint64_t count, uint64_t total) {
        if (rate->n > 0 && now_ns - rate->at_ns[rate->newest] < SLOT_NS)
                return;
        rate->newest = rate->n > 0 ? (rate->newest + 1) % RATE_SLOTS : 0;
        rate->n += rate->n < RATE_SLOTS;
        rate->at_ns[rate->newest] = now_ns;
        rate->count[rate->newest] = count;
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
