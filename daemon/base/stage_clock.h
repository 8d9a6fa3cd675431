/* base/stage_clock.h: where a worker's time goes.
 *
 * A worker marks what it begins; the time from one mark to the next belongs to the first of them. So a mark costs one
 * look at the clock, and the stages of a sample add up to the whole of its time. Sums are kept by the worker until the
 * sample is done, and are then added to its job's.
 *
 * stage_clock_charge() is the one place that sees every piece of time with its stage: a trace gets its events there.
 *
 * A clock belongs to one thread. Functions take NULL where nobody measures. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "daemon/base/base_trace.h"
#include "daemon/base/stages.h"
#include "proto/base/clock.h"

struct stage_sum {
        uint64_t ns;
        uint32_t n; /* how often it was begun */
};

struct stage_clock {
        enum stage_id stage; /* the current one, */
        uint64_t since_ns;   /* which began then */
        uint64_t used;       /* bit i: sums[i] is not empty */
        struct stage_sum sums[N_STAGES];
};

_Static_assert(N_STAGES <= 64, "a bit for each stage");

static inline void stage_clock_charge(struct stage_clock *clock, uint64_t now_ns) {
        if (trace_is_on())
                trace_stage((uint8_t)clock->stage, clock->since_ns, now_ns);
        clock->sums[clock->stage].ns += now_ns - clock->since_ns;
        clock->since_ns = now_ns;
}

static inline void stage_clock_begin(struct stage_clock *clock, enum stage_id stage) {
        clock->stage = stage;
        clock->sums[stage].n++;
        clock->used |= 1ull << stage;
}

/* Work on a sample begins. Returns the time. */
static inline uint64_t stage_clock_start(struct stage_clock *clock, enum stage_id stage) {
        clock->since_ns = clock_now_ns();
        stage_clock_begin(clock, stage);
        return clock->since_ns;
}

/* The work goes on with this stage. Nothing happens if it is the current one. */
static inline void stage_enter(struct stage_clock *clock, enum stage_id stage) {
        if (!clock || clock->stage == stage)
                return;
        stage_clock_charge(clock, clock_now_ns());
        stage_clock_begin(clock, stage);
}

/* Work on the sample ends. Returns the time. */
static inline uint64_t stage_clock_stop(struct stage_clock *clock) {
        stage_clock_charge(clock, clock_now_ns());
        return clock->since_ns;
}

/* Two stages took turns, too quickly to mark each: the current one has been charged for both, and `ns` of that (at most
 * what it has) were the other's. */
void stage_clock_move(struct stage_clock *clock, enum stage_id other, uint64_t ns);

/* Time of this sample that passed elsewhere. */
void stage_clock_add(struct stage_clock *clock, enum stage_id stage, uint64_t ns, uint32_t n);

/* Forgets what was measured and not harvested. */
void stage_clock_drop(struct stage_clock *clock);

/* ---- sums of many workers ------------------------------------------------------------------------------------ */

struct stage_sums {
        struct {
                _Atomic uint64_t ns;
                _Atomic uint64_t n;
        } of[N_STAGES];
};

/* Adds what the clock has measured, and empties it. */
void stage_clock_harvest(struct stage_clock *clock, struct stage_sums *sums);

/* Adds one piece of time. Any thread. */
void stage_sums_add(struct stage_sums *sums, enum stage_id stage, uint64_t ns);

/* Adds the sums to `totals`, of which there are N_STAGES. Any thread. */
struct stage_total {
        uint64_t ns, n;
};
void stage_sums_add_to(const struct stage_sums *sums, struct stage_total *totals);
