#include "daemon/base/stage_clock.h"

#include <string.h>

static const char *const NAMES[] = {
#define ROW(id, name, prose) name,
        STAGES(ROW)
#undef ROW
};

const char *stage_name(enum stage_id stage) {
        return NAMES[stage];
}

void stage_clock_move(struct stage_clock *clock, enum stage_id other, uint64_t ns) {
        struct stage_sum *from;
        uint64_t now_ns, last_ns;

        if (!clock || clock->stage == other)
                return;
        /* In a trace, the one comes after the other. */
        now_ns = clock_now_ns();
        last_ns = now_ns - clock->since_ns < ns ? now_ns - clock->since_ns : ns;
        stage_clock_charge(clock, now_ns - last_ns);
        if (trace_is_on())
                trace_stage((uint8_t)other, now_ns - last_ns, now_ns);
        clock->since_ns = now_ns;

        from = &clock->sums[clock->stage];
        from->ns += last_ns;
        if (ns > from->ns)
                ns = from->ns;
        from->ns -= ns;
        clock->sums[other].ns += ns;
        clock->sums[other].n++;
        clock->used |= 1ull << other;
}

void stage_clock_add(struct stage_clock *clock, enum stage_id stage, uint64_t ns, uint32_t n) {
        clock->sums[stage].ns += ns;
        clock->sums[stage].n += n;
        clock->used |= 1ull << stage;
}

void stage_clock_drop(struct stage_clock *clock) {
        memset(clock->sums, 0, sizeof(clock->sums));
        clock->used = 0;
}

void stage_clock_harvest(struct stage_clock *clock, struct stage_sums *sums) {
        while (clock->used != 0) {
                uint32_t i = (uint32_t)__builtin_ctzll(clock->used);

                atomic_fetch_add_explicit(&sums->of[i].ns, clock->sums[i].ns, memory_order_relaxed);
                atomic_fetch_add_explicit(&sums->of[i].n, clock->sums[i].n, memory_order_relaxed);
                clock->sums[i] = (struct stage_sum){ 0 };
                clock->used &= clock->used - 1;
        }
}

void stage_sums_add(struct stage_sums *sums, enum stage_id stage, uint64_t ns) {
        atomic_fetch_add_explicit(&sums->of[stage].ns, ns, memory_order_relaxed);
        atomic_fetch_add_explicit(&sums->of[stage].n, 1, memory_order_relaxed);
}

void stage_sums_add_to(const struct stage_sums *sums, struct stage_total *totals) {
        for (uint32_t i = 0; i < N_STAGES; i++) {
                totals[i].ns += atomic_load_explicit(&sums->of[i].ns, memory_order_relaxed);
                totals[i].n += atomic_load_explicit(&sums->of[i].n, memory_order_relaxed);
        }
}
