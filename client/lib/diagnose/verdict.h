/* lib/diagnose/verdict.h: is a job held up by its data, by what, and what would change that? The answer of dlctl diagnose, of
 * dlc_diagnose() and of Python's stats().
 *
 * Two looks at the counters of a job go in, a verdict comes out. Arithmetic only: no clock, no daemon, no memory. Each
 * counter is a claim: the daemon may have been restarted between the looks, and what a client says may be nonsense. So
 * sums that decreased are taken as begun anew, shares are 0 to 1, and no number of the verdict is infinite or NaN.
 *
 * The method. Within the time between the looks,
 *
 * W is the share of a rank's time that its trainer waited in next(). The rank that waits most counts, since ranks wait
 * for each other in every step. If they are all at the same step, it is the longest wait of each step that counts,
 * whichever rank had it: where ranks wait in turn, each of them waits less than all of them lose. Below 5 % the job is
 * not held up by its data, and has at most 1 / (1 - W) to gain.
 *
 * G is the demand in samples/s: what the trainer takes if it never waits, the rate divided by 1 - W.
 *
 * P is the supply of the workers: the rate divided by the share of their time that they are busy, of the time that
 * other jobs leave to this one and of the CPUs that they may use.
 *
 * F is the supply of storage: the rate divided by the share of the samples that may be under way at once that are being
 * read. If most of that time is spent until bytes have come from elsewhere, the origin is the limit.
 *
 * The rate follows the smallest of the three. If all workers are busy with this job's samples and those of others, it
 * is theirs. If the trainer waits although F and P are larger, its batches come unevenly and too few are prepared
 * ahead. If a rank takes fewer batches than the others and does not wait, it is slow itself, whatever the others wait
 * for.
 *
 * What a change would give is the smallest of the three after it: without the heavy step, with more workers, with the
 * dataset in memory. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/base/symbol.h"
#include "proto/dataloader.pb-c.h"
#include "proto/limits.h"
#include "proto/origin_answers.h"

#define VERDICT_TEXT_MAX  1024u /* bytes with NUL */
#define VERDICT_STAGE_MAX 40u

#define VERDICT_MODERATE_WAIT 0.05 /* W from which a job is input-bound, */
#define VERDICT_HIGH_WAIT     0.20 /* and highly */

/* A reply's job and node. Both are of the same moment; they are not changed, and must outlive the call only. */
struct look {
        const Dlp__Job *job;
        const Dlp__Node *node; /* NULL: not known */
};

enum verdict_limit {
        VERDICT_NOTHING_YET, /* too few batches were taken for an answer */
        VERDICT_ENDED,       /* the job has failed */
        VERDICT_OUTAGE,      /* its dataset cannot be read now */
        VERDICT_ORDER,       /* the order of its epoch is being made */
        VERDICT_RANK,        /* one rank takes fewer batches than the others, and does not wait for them */
        VERDICT_TRAINER,     /* the training step */
        VERDICT_READING,     /* storage */
        VERDICT_ORIGIN,      /* the same, and its bytes come from elsewhere */
        VERDICT_DECODING,    /* workers, CPUs */
        VERDICT_STEP,        /* the same, and most of it goes into one step of the pipeline */
        VERDICT_LATENCY,     /* too few batches are prepared ahead */
};

enum verdict_bound {
        VERDICT_NOT_BOUND,  /* W below 5 % */
        VERDICT_MODERATELY, /* below 20 % */
        VERDICT_HIGHLY,
};

/* Rates are in samples/s of all ranks of this node. 0: not known, or it does not limit. */
struct verdict {
        enum verdict_limit limit;
        enum verdict_bound bound;
        double seconds; /* between the looks; since the job began, if there was only one */
        bool is_since_attach;
        uint64_t n_batches;     /* that trainers took in this time */
        double wait_share;      /* W; of the slow rank if the limit is VERDICT_RANK */
        double mean_wait_share; /* over the ranks */
        int64_t rank;           /* the one that waits or is slow while the others do not or are not; -1: none */
        double rate;            /* that trainers took */
        double tokens;          /* of text in these samples, tokens/s */
        double demand;          /* G */
        double supply_workers;  /* P */
        double supply_storage;  /* F */
        double predicted;       /* after the change that is advised */

        double worker_share;  /* of the workers' time that other jobs leave: how much is taken */
        double cpu_share;     /* of the workers' busy time: how long they had a CPU; 0: not known */
        double reading_share; /* of the samples that may be under way: how many are being read */
        double queued_share;  /* of these: how many have been read and wait for a worker */
        double fetch_share;   /* of the time of reads: until bytes had come from elsewhere */
        double read_ms;       /* that a sample's bytes take, on average */
        double other_share;   /* of the workers' time: taken by other jobs */
        double storage_share; /* of the bytes: came from storage and not from the page cache; below 0: not known */
        uint32_t n_workers, n_workers_advised;
        double cpus;
        uint32_t n_slots;              /* of a ring: the fewest that a rank has */
        char stage[VERDICT_STAGE_MAX]; /* that takes most of the workers' time; "": none */
        double stage_share;            /* of that time */
        bool stage_is_step;            /* it is a step of the pipeline, which may be left out or done elsewhere */
        bool has_origin;               /* its dataset lies elsewhere: */
        struct dlp_origin origin;      /* how that has answered */
        bool has_pictures, has_tokens; /* workers decode pictures; make tokens of texts */

        char sentence[VERDICT_TEXT_MAX]; /* whether, and what limits */
        char advice[VERDICT_TEXT_MAX];   /* what to change, and what that gives; a reason if there is nothing to do */
};

/* Judges a job. `before` NULL: since its ranks attached. A rank that attached after `before` is judged since then. */
void verdict_make(const struct look *before, const struct look *now, struct verdict *ret_verdict)
        DLP_SYMBOL(verdict_make);

/* "reading" */
const char *verdict_limit_name(enum verdict_limit limit) DLP_SYMBOL(verdict_limit_name);

/* "not", "moderately", "highly": input-bound. */
const char *verdict_bound_name(enum verdict_bound bound) DLP_SYMBOL(verdict_bound_name);

/* Fills in sentence and advice from the numbers; verdict_make() has done so. `job` is for what it is called, and for
 * why it is on hold. */
void verdict_say(const Dlp__Job *job, struct verdict *verdict) DLP_SYMBOL(verdict_say);
