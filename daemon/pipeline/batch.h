/* pipeline/batch.h: from a taken slot to a published one.
 *
 * The planner begins a batch. Each of its samples ends exactly once: served, failed, or abandoned before it was
 * planned. The thread that ends the last sample completes the record, publishes the slot and wakes the client. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/base_trace.h"
#include "daemon/collate/collating.h"
#include "daemon/pipeline/counters.h"
#include "proto/base/why.h"

struct batch_copy;
struct feed;
struct mix_draw;
struct order_table;
struct pack_place;
struct slot;

/* A sample of a batch. */
struct batch_sample {
        uint64_t position;  /* in the epoch, of all ranks */
        uint64_t index;     /* the sample that the order asks for */
        uint64_t candidate; /* the sample that is served: `index`, or a substitute */
        uint64_t n_tries;   /* substitutes so far */
};

/* One batch under way: what its workers share. There is one for each slot of the ring. What all workers write for each
 * sample is in a cache line of its own, so that what they only read stays in their caches. */
struct batch {
        struct feed *feed;
        struct slot *slot;
        struct order_table *order; /* one reference; for the positions of its samples and their substitutes */
        uint64_t n_seeks;          /* of its feed, when it was planned */
        uint64_t epoch;
        uint64_t step;
        uint64_t first; /* the rank's number of its first unit, for the epoch plan */
        uint32_t n_units;
        uint32_t n_samples;           /* of these units together */
        uint32_t n_kept;              /* of them in the slot; when they have ended, without those that are left out */
        struct pack_place *packs;     /* batch_samples: where each sample goes, if they are packed; else NULL */
        uint64_t position;            /* of its first unit, which draws of the whole batch depend on */
        struct mix_draw *draws;       /* mixing_n_draws(); NULL: nothing is mixed */
        uint64_t *positions;          /* batch_samples: of each sample, if units have several; else NULL */
        struct batch_sample *samples; /* batch_samples, to make them again if functions get whole batches; else NULL */
        struct batch_copy *keeps;     /* a copy of it is to be kept here; NULL: none */
        struct batch_copy *replays;   /* it is this one, served again; NULL: it is a batch of its own */

        _Alignas(64) _Atomic uint32_t n_left; /* samples under way; the worker that takes it to 0 completes the batch */

        _Atomic uint32_t n_skipped;                     /* samples left out of it */
        _Atomic uint64_t read_ns, queued_ns, decode_ns; /* sums for the record: where its samples' time went */

        struct collating collating; /* where the fields of its samples go */

        pthread_mutex_t lock; /* guards what follows; a leaf */
        uint32_t n_errors;
        uint32_t idx_failed; /* lowest sample that could not be served: its reason is the batch's */
        bool failed;
        struct why failure;
        uint32_t failure_code; /* as of job_fail() */
};

/* What events about this batch are about. While trace_is_on(). Any thread that works on it. */
struct trace_subject batch_subject(const struct batch *batch);

/* Planner: the batch of the feed's cursor, in the slot that it belongs to. Takes a reference to the order. */
void batch_begin(struct batch *batch, struct feed *feed, struct order_table *order);

/* Planner: the next batch that is served again (pipeline/replay/), in the slot that it belongs to. */
void batch_begin_replay(struct batch *batch, struct feed *feed);

/* Planner: publishes a batch without samples that tells the client how long the epoch is, for a rank that has no batch
 * in this epoch. */
void batch_tell_length(struct batch *batch, struct counters *counters);

/* Planner: the samples from `idx_first` on will not be planned (a seek, a failed job): the batch is not delivered. */
void batch_abandon(struct batch *batch, uint32_t idx_first, struct counters *counters);

/* Planner: the batch has no samples and consists of this reason only; `code` as of batch_failed(). */
void batch_fail_whole(struct batch *batch, uint32_t code, const struct why *why, struct counters *counters);

/* Is this batch still wanted? Any thread; an outdated answer only costs work. */
bool batch_is_wanted(const struct batch *batch);

/* The first sample of a batch sets the shape for all. If it then could not be served, this forgets the shape. Only for
 * a batch of one sample: in a larger one others may have used the shape. */
void batch_forget_shape(struct batch *batch);

/* Workers: sample `idx_sample` of the batch is in its place. `index` is what the order asked for, `candidate` what was
 * served; if they differ, `reason` says why, else it is NULL. */
void batch_served(struct batch *batch, uint32_t idx_sample, uint64_t index, uint64_t candidate,
                  const struct why *reason);

/* Workers: how long a sample (or an attempt at it) waited for its bytes, waited for a worker, and took to decode. */
void batch_took(struct batch *batch, uint64_t read_ns, uint64_t queued_ns, uint64_t decode_ns);

/* Workers: the sample could not be served, and the batch fails with this reason, and its job with it; `code` as of
 * job_fail(). */
void batch_failed(struct batch *batch, uint32_t idx_sample, uint32_t code, const struct why *why);

/* Workers: one sample has ended, or several. The last one publishes. */
void batch_sample_done(struct batch *batch, struct counters *counters);

/* The same for n_samples; but if the last one is among them, and functions or plug-ins get the batch whole, it is not
 * published: returns true, and the batch, whose gaps are closed, is the caller's until batch_whole_done(). */
bool batch_samples_are_last(struct batch *batch, uint32_t n_samples, struct counters *counters);
void batch_whole_done(struct batch *batch, struct counters *counters);

/* Workers: this sample is left out of its batch. */
void batch_skip(struct batch *batch, uint32_t idx_sample);

/* Closes the gaps of samples that were left out. The caller of batch_samples_are_last(). */
void batch_close_gaps(struct batch *batch);
void batch_samples_done(struct batch *batch, uint32_t n_samples, struct counters *counters);
