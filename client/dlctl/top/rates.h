/* top/rates.h: two looks and more become rates and shares.
 *
 * Pure functions of what the daemon has said: times are of the daemon's clock, so that neither a late answer nor the
 * clock of whoever looks changes a rate. Each job and rank is compared with the earliest look that has it, so that a
 * new one has rates from its second look on. */
#pragma once

#include <stdint.h>

#include "client/dlctl/top/look/glance.h"
#include "client/lib/diagnose/verdict.h"

#define UNKNOWN (-1.0) /* of rates and shares: there is no earlier look to compare with, or nothing to divide by */

static inline bool is_known(double value) {
        return value >= 0;
}

struct rank_rates {
        const Dlp__Rank *rank;
        double samples;  /* a second, made ready for it */
        double batches;  /* a second, taken by its trainer */
        double wait;     /* share of its trainer's time that it waited for batches */
        double ready;    /* share of the time in which a batch was ready */
        double per_step; /* seconds of its trainer's own work for a batch */
        double waiting;  /* seconds that it has been waiting now; 0: it does not */
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
        double samples;                /* a second, decoded or copied */
        double bytes;                  /* a second, read */
        double workers;                /* that work for it on average */
        double wait;                   /* of the rank that waits most: in a training step the others wait for it */
        double ready;                  /* of the rank whose batches are ready least */
        double read_seconds;           /* from asking for a sample's bytes until they are there */
        uint64_t n_ready, n_slots;     /* of all ranks, now */
        uint64_t ring_bytes;
        struct rank_rates *ranks; /* as many as the job has */
        struct stage_rates *stages;
        size_t n_stages;         /* those that took time; the largest first */
        struct verdict *verdict; /* what holds it up, in the same time */
};

struct node_rates {
        const Dlp__StatusReply *status;
        const Dlp__Node *node; /* NULL: not known */
        double samples, bytes; /* a second */
        double storage;        /* bytes a second that storage gave; the rest was in the page cache */
        double workers;        /* that work on average */
        double cpus;           /* that they take */
        double read_seconds;
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
