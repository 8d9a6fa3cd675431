#include "daemon/pipeline/jobs/tally.h"

void tally_add(struct tally *tally, const struct tally_counts *more) {
#define ROW(name, ...)                                                                                                 \
        if (more->name > 0)                                                                                            \
                atomic_fetch_add_explicit(&tally->name, more->name, memory_order_relaxed);
        JOB_COUNTERS(ROW)
#undef ROW
}

void tallies_total(const struct tally tallies[static TALLIES], struct tally_totals *ret_totals) {
        *ret_totals = (struct tally_totals){ 0 };
        for (uint32_t i = 0; i < TALLIES; i++) {
#define ROW(name, ...) ret_totals->counts.name += atomic_load_explicit(&tallies[i].name, memory_order_relaxed);
                JOB_COUNTERS(ROW)
#undef ROW
                stage_sums_add_to(&tallies[i].stages, ret_totals->stages);
        }
}
