/* order/making/making.h: what a step has while it makes its part of an epoch's order.
 *
 * A step runs to its end in one call: in a thread of the daemon (data/orders/order_made.h), or in `dlctl order`.
 * Memory, progress and the wish to stop come through functions of the caller, so that a step knows neither budgets nor
 * threads.
 *
 * All orders are pure functions of the terms below: the same on every machine, in every rank, for ever. Rank and world
 * size are not among them, which is why a run can be resumed at any world size. Draws come from order/torch_random.h,
 * order/numpy_random.h or order/philox.h; no result may depend on threads, addresses or the sequence of float additions
 * in a vector loop. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/why.h"
#include "proto/order/making/column.h"
#include "proto/order/making/order.h"
#include "proto/order/sampler.h"

/* One of several datasets that are served as one: samples first .. first + n_samples - 1. */
struct dlp_part {
        const char *name;
        uint64_t first, n_samples;
};

struct dlp_making_terms {
        struct dlp_sampler_terms base; /* n_samples of the dataset, seed, epoch, shuffle, kind, compat */
        uint32_t batch_size;           /* samples; of packs: rows */
        const struct dlp_column *columns;
        uint32_t n_columns;
        const struct dlp_part *parts; /* of a dataset of several; n_parts is 0 for all others */
        uint32_t n_parts;
};

struct dlp_making {
        const struct dlp_making_terms *terms;

        /* Zeroed memory, aligned to a page; NULL: refused, and `why` says so. */
        void *(*allocate)(struct dlp_making *making, uint64_t n_bytes);
        /* Gives it back; n_bytes as allocated. Takes NULL. */
        void (*release)(struct dlp_making *making, void *memory, uint64_t n_bytes);
        /* To be called at least every few milliseconds of work: how far it is. False: nobody wants the order any more;
         * return -ECANCELED. */
        bool (*go_on)(struct dlp_making *making, uint64_t n_done, uint64_t n_total);
        /* The first n_final positions will not change any more, and n_positions is known; `starts` must be NULL. So a
         * first batch need not wait for the whole order. After the first call a step can only fail with -ECANCELED,
         * because others read its tables. Does nothing while a later step still has to work on it. */
        void (*publish)(struct dlp_making *making, const struct dlp_order *order, uint64_t n_final);
        struct why *why; /* never NULL */
        void *userdata;
        bool is_last; /* of the steps; set by dlp_order_make() */
};

/* As release() and allocate(); n elements of n_bytes each, -ENOMEM if that overflows. For n = 0 it gives
 * NULL and returns 0. */
int dlp_making_allocate(struct dlp_making *making, uint64_t n, uint64_t n_bytes, void *ret_memory);

/* An order of n_positions samples, all 0, each of them a unit. A step may set n_positions lower afterwards. -ENOMEM. */
int dlp_making_samples(struct dlp_making *making, uint64_t n_positions, struct dlp_order *ret_order);

/* Memory in `order` for the starts of at most n_units units; for a piece of each position. -ENOMEM. */
int dlp_making_starts(struct dlp_making *making, uint64_t n_units, struct dlp_order *order);
int dlp_making_pieces(struct dlp_making *making, struct dlp_order *order);

/* Gives back samples, starts and pieces, and clears the order. */
void dlp_making_free(struct dlp_making *making, struct dlp_order *order);

/* A permutation of 0 .. n - 1 as the terms' order and seed + epoch say; without shuffling 0 .. n - 1. If `publishes`,
 * leading positions are published. -ENOMEM, -ECANCELED; -EINVAL: the order goes by blocks, which are of all samples,
 * and n is another number. */
int dlp_making_permute(struct dlp_making *making, uint64_t n, bool publishes, struct dlp_order *ret_order);

/* The column of that name, which must have one value a sample of the dataset. -EINVAL with the columns that there are,
 * or with both numbers. `step`: for the message. */
int dlp_making_column(struct dlp_making *making, const char *step, const char *name,
                      const struct dlp_column **ret_column);

/* The same, for a column that may have any number of values a sample, or (subset) of any length. */
int dlp_making_any_column(struct dlp_making *making, const char *step, const char *name,
                          const struct dlp_column **ret_column);

/* torch's generator, seeded with seed + epoch. */
void dlp_making_seed(const struct dlp_making *making, struct dlp_torch_random *random);
