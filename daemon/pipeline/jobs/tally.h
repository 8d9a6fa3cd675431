/* pipeline/jobs/tally.h: what has been done for a job, for people: its counters in base/number_rows.h.
 *
 * Workers count for each sample. A job has several tallies, each in cache lines of its own, and a worker counts in one
 * of them: so workers of one job rarely write the same line. Readers add them up. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "daemon/base/number_rows.h"
#include "daemon/base/stage_clock.h"

#define TALLIES 8u

struct tally {
        _Alignas(64) JOB_COUNTERS(NUMBER_COUNTED) struct stage_sums stages;
};

struct tally_counts {
        JOB_COUNTERS(NUMBER_VALUE)
};

struct tally_totals {
        struct tally_counts counts;
        struct stage_total stages[N_STAGES];
};

/* Any thread. */
void tally_add(struct tally *tally, const struct tally_counts *more);

/* The sum of all tallies of a job. Any thread; the sums need not be of one instant. */
void tallies_total(const struct tally tallies[static TALLIES], struct tally_totals *ret_totals);
