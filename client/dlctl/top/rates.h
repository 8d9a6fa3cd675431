/* top/rates.h: two looks and more become rates and shares.
 *
 * Pure functions of what the daemon has said: times are of the daemon's clock, so that neither a late answer nor the
 * clock of whoever looks changes a rate. Each job and rank is compared with the earliest look that has it, so that a
 * new one has rates from its second look on. */
#pragma once

#include <stdint.h>

#include "client/dlctl/glance.h"
#include "client/lib/diagnose/verdict.h"

#define UNKNOWN (-1.0) /* of rates and shares: there is no earlier look to compare with, or nothing to divide by */

static inline bool is_known(double value) {
        return value >= 0;
}

/* What is computed of a rank, a job, a node, each as far as it has it: ROW(name, key in JSON, "": none; whether it is a
 * whole number). */
/* clang-format off */
#define RATES(ROW)                                                                                                     \
        ROW(samples, "samples_per_second", false)       /* made ready for a rank; decoded or copied for a job */        \
        ROW(tokens, "tokens_per_second", false)         /* in these samples */                                          \
        ROW(batches, "batches_per_second", false)       /* taken by its trainer */                                      \
        ROW(bytes, "read_bytes_per_second", false)      /* read */                                                      \
        ROW(storage, "storage_bytes_per_second", false) /* that storage gave; the rest was in the page cache */         \
        ROW(read_seconds, "read_seconds", false)        /* from asking for a sample's bytes until they are there */     \
        ROW(workers, "workers_busy", false)             /* that work for it on average */                               \
        ROW(cpus, "cpus_busy", false)                   /* that these take */                                           \
        ROW(wait, "wait_share", false)                  /* of its trainer's time; of a job: of the rank that waits */   \
                                                        /* most, for which the others wait in a training step */        \
        ROW(ready, "ready_share", false)                /* of the time, with a batch ready; of a job: of the rank */    \
                                                        /* whose batches are ready least */                             \
        ROW(per_step, "step_seconds", false)            /* of its trainer's own work for a batch */                     \
        ROW(waiting, "waiting_seconds", false)          /* that it has been waiting now; 0: it does not */              \
        ROW(n_ready, "n_ready", true)                   /* now; of a job: of all ranks, as the next two */              \
        ROW(n_slots, "n_slots", true)                                                                                  \
        ROW(ring_bytes, "ring_bytes", true)                                                                            \
        ROW(ready_slots, "", false)                     /* their share */                                               \
        ROW(n_errors, "n_errors", true)                                                                                \
        ROW(n_ranks, "", true)                          /* on this node */
/* clang-format on */

#define RATE_INDEX(name, key, is_whole) RATE_##name,
enum top_rate {
        RATES(RATE_INDEX) N_RATES
};
#undef RATE_INDEX

/* The rates by their names, and as an array. */
#define RATE_FIELD(name, key, is_whole) double name;
#define RATES_FIELDS                                                                                                   \
        union {                                                                                                        \
                struct {                                                                                               \
                        RATES(RATE_FIELD)                                                                              \
                };                                                                                                     \
                double rates[N_RATES];                                                                                 \
        };

struct rank_rates {
        const Dlp__Rank *rank;
        RATES_FIELDS
};

struct stage_rates {
        const char *name;
        double workers;    /* that are at it on average */
        double share;      /* of the job's time on workers */
        double per_sample; /* seconds */
};

struct job_rates {
        const Dlp__Job *job, *earlier; /* earlier: NULL if it is new */
        double seconds;                /* between the two */
        RATES_FIELDS
        struct rank_rates *ranks; /* as many as the job has */
        struct stage_rates *stages;
        size_t n_stages;         /* those that took time; the largest first */
        struct verdict *verdict; /* what holds it up, in the same time */
};

struct node_rates {
        const Dlp__StatusReply *status;
        const Dlp__Node *node; /* NULL: not known */
        RATES_FIELDS
};

struct rates {
        struct node_rates node;
        struct job_rates *jobs; /* as many as `now` has */
        size_t n_jobs;
        struct rank_rates *ranks; /* of all jobs */
        struct stage_rates *stages;
        struct verdict *verdicts;
        const struct glance *now;
};

/* What n glances say, from the first to the last; n > 0. The rates lead into the glances. */
void rates_make(const struct glance *const *glances, size_t n_glances, struct rates *ret_rates);
void rates_free(struct rates *rates);
