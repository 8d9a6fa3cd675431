/* order/epoch_plan.h: what the batches of an epoch hold.
 *
 * This is the only place that knows where batches begin and end. The planner fills batches by it, libdlclient counts
 * them and finds the place of a resume, `dlctl order` prints them, and Python asks libdlclient. No other code
 * multiplies a step by a batch size or a world.
 *
 * An epoch is a row of global positions 0 .. n-1; its sampler (order/sampler.h) says which sample is at each. Three
 * rules lead from there to a batch:
 *
 *   dealing    the positions from `base` on are dealt to the ranks, one by one or in blocks of batch_size
 *              (order/dealing.h)
 *   batching   a rank's positions are cut into batches: batch k holds its numbers first .. first + n_samples - 1
 *   resume     position p means: what lies before p was consumed by all ranks together; a plan with base p deals out
 *              the rest anew, at any world and batch size
 *
 * A batch has batch_size units, except the last one. A unit is one position, or several: a bucket's batch, a row of
 * packed documents (order/making/order.h). So ask dlp_epoch_plan_batch(), and do not assume a number of samples.
 *
 * A plan is a small value: copy it, throw it away. Constant once it is made, so that any number of threads may ask it.
 * libc only, no allocation, no locks. Defined for n = 0, and free of overflow for n <= DLP_SAMPLES_MAX, world <=
 * DLP_WORLD_MAX, batch_size <= DLP_BATCH_MAX. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/order/dealing.h"

/* A number that is not known yet: the positions, and so the batches, of an epoch of a stream that has not ended. The
 * daemon tells the clients when it has (dlp_ring_set_length()). The plan is then made again, and what it said of
 * earlier batches is still true if they did not need more (dlp_epoch_plan_needs()). */
#define DLP_UNKNOWN UINT64_MAX

/* The terms that all ranks and all epochs of a run have in common. */
struct dlp_epoch_terms {
        uint64_t n_positions; /* of a whole epoch: dlp_sampler_length(), or DLP_UNKNOWN */
        uint32_t world;       /* ranks, >= 1 */
        uint32_t batch_size;  /* >= 1; no batch is made of 0 */
        enum dlp_dealing dealing;
        enum dlp_partition partition;
        bool drop_last; /* a rank's last batch is left out if it is incomplete */
};

/* One rank's part of one epoch. Read its fields, write none. */
struct dlp_epoch_plan {
        struct dlp_epoch_terms terms;
        uint64_t base;      /* global position at which the epoch begins: 0, or where it is resumed */
        uint64_t n_samples; /* dealt to the rank from there on, including those that drop_last leaves out; or
                               DLP_UNKNOWN */
        uint64_t n_batches; /* of the rank; or DLP_UNKNOWN */
        uint64_t n_steps;   /* batches of the rank that has the most; or DLP_UNKNOWN */
        uint32_t rank;
        uint32_t block; /* positions that are dealt to a rank at once */
};

struct dlp_plan_batch {
        uint64_t first;     /* the rank's number of its first sample, counted from `base` */
        uint32_t n_samples; /* that are planned for it */
};

/* The plan of `rank` for what is left of an epoch from `base` on; nothing is left from a base >= n_positions, and
 * nothing is dealt to a rank >= world. */
struct dlp_epoch_plan dlp_epoch_plan_make(const struct dlp_epoch_terms *terms, uint32_t rank, uint64_t base);

/* Batch `step` of the rank, from 0. Do not call it after the last batch (dlp_epoch_plan_is_over()). */
static inline struct dlp_plan_batch dlp_epoch_plan_batch(const struct dlp_epoch_plan *plan, uint64_t step) {
        uint64_t first = step * plan->terms.batch_size, n_rest = plan->n_samples - first;

        return (struct dlp_plan_batch){
                .first = first,
                .n_samples = n_rest < plan->terms.batch_size ? (uint32_t)n_rest : plan->terms.batch_size,
        };
}

/* The global position of the rank's sample number k < n_samples (a batch's first + i): 0 .. n_positions-1, for the
 * sampler. Where a partition pads, it has begun again at 0. Called for each sample: a few nanoseconds. */
static inline uint64_t dlp_epoch_plan_position(const struct dlp_epoch_plan *plan, uint64_t k) {
        uint64_t position = plan->base + dlp_dealing_position(k, plan->terms.world, plan->rank, plan->block);

        return position < plan->terms.n_positions ? position : position % plan->terms.n_positions;
}

/* How many positions of the epoch must be there so that batch `step` is whole, whatever the length of the epoch will
 * be: those of that batch of every rank, since a partition may leave out what only some ranks got. For a plan of
 * unknown length. */
uint64_t dlp_epoch_plan_needs(const struct dlp_epoch_plan *plan, uint64_t step);

/* Is the rank's epoch over before batch `step`? */
static inline bool dlp_epoch_plan_is_over(const struct dlp_epoch_plan *plan, uint64_t step) {
        return plan->n_batches != DLP_UNKNOWN && step >= plan->n_batches;
}

/* The global position after n_steps batches of each rank: what a resume token holds, the same for all ranks. After
 * the last step it is n_positions, whatever drop_last or the partition left out. A rank that has a batch fewer than
 * another reports the others' position. Called twice for each batch that a client takes, with caches that have gone
 * cold meanwhile: inline, so that its code is next to its caller's. */
static inline uint64_t dlp_epoch_plan_position_after(const struct dlp_epoch_plan *plan, uint64_t n_steps) {
        uint64_t position, end = plan->terms.n_positions;

        if (n_steps > 0 && n_steps >= plan->n_steps)
                return end;
        position = plan->base + dlp_dealing_after(n_steps * plan->terms.batch_size, plan->terms.world);
        return position < end ? position : end;
}

/* May a batch hold a position twice? Only where whole batches are dealt, and one that is completed is longer than the
 * epoch. */
bool dlp_epoch_may_repeat(const struct dlp_epoch_terms *terms);

/* Is nothing left of an epoch from this position on, so that a resume there continues with the next epoch? */
bool dlp_epoch_is_end(const struct dlp_epoch_terms *terms, uint64_t position);

/* May two ranks of a run resume an epoch at these two positions? They may if what is left is dealt out alike; else some
 * samples would come twice and others never. */
bool dlp_epoch_is_dealt_alike(const struct dlp_epoch_terms *terms, uint64_t a, uint64_t b);

/* The place of a run that keeps its terms, after each rank has taken n_steps more batches from (epoch, position) on.
 * After an epoch's end this is the beginning of the next one. If no rank ever has a batch, each step counts as an
 * epoch, so that there is always an answer. For terms whose n_positions is known. */
void dlp_epoch_advance(const struct dlp_epoch_terms *terms, uint64_t epoch, uint64_t position, uint64_t n_steps,
                       uint64_t *ret_epoch, uint64_t *ret_position);
