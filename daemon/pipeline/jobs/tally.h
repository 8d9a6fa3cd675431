/* pipeline/jobs/tally.h: what has been done for a job, for people.
 *
 * Workers count for each sample. A job has several tallies, each in cache lines of its own, and a worker counts in one
 * of them: so workers of one job rarely write the same line. Readers add them up. */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

#include "daemon/base/stage_clock.h"

#define TALLIES 8u

#define TALLY_COUNTS(ROW)                                                                                              \
        ROW(n_tokens, "of text, in whole batches")                                                                     \
        ROW(n_samples, "in their places")                                                                              \
        ROW(n_reads, "of files or parts of shards; a sample may take several")                                         \
        ROW(n_bytes_read, "by these")                                                                                  \
        ROW(read_ns, "from requesting a sample's bytes until they were there, summed over the reads")                  \
        ROW(queued_ns, "from then until a worker took the sample, summed likewise")                                    \
        ROW(serving_ns, "of workers' time, without completing batches")                                                \
        ROW(n_texts_cut, "by max_length of tokens(); a sample is served again after a restart, and counts again")      \
        ROW(n_tokens_cut, "about what was left out of them")

struct tally {
#define ROW(name, prose) _Atomic uint64_t name;
        _Alignas(64) TALLY_COUNTS(ROW)
#undef ROW
                struct stage_sums stages;
};

struct tally_counts {
#define ROW(name, prose) uint64_t name;
        TALLY_COUNTS(ROW)
#undef ROW
};

struct tally_totals {
        struct tally_counts counts;
        struct stage_total stages[N_STAGES];
};

/* Any thread. */
void tally_add(struct tally *tally, const struct tally_counts *more);

/* The sum of all tallies of a job. Any thread; the sums need not be of one instant. */
void tallies_total(const struct tally tallies[static TALLIES], struct tally_totals *ret_totals);
