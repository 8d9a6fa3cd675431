/* data/orders/order_made.h: an epoch's order that a sampler's steps make, in a thread of its own. A part of
 * order_table.c.
 *
 * Making it may take seconds, and steps cannot be interrupted at any place, so each has its own thread: the one of
 * order_table.c serves everybody's shuffles chunk by chunk. Memory is taken from what was reserved for the order
 * (`quota`); what a step returns can be taken again. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/data/orders/data_sampling.h"
#include "proto/base/why.h"
#include "proto/order/making/order_text.h"

struct order_made {
        struct sampling *sampling; /* a reference */
        struct dlp_making_terms terms;
        struct dlp_making making;
        uint64_t quota_bytes, used_bytes; /* maker's thread; used_bytes is constant afterwards */

        struct dlp_order order; /* constant once n_final > 0 */
        struct why failure;     /* constant once has_failed */
        _Atomic bool has_failed;
        _Atomic bool is_unwanted;

        /* The first n_final positions are made; in the end there are n_positions, in n_units units. Maker's thread. */
        void (*publish)(struct order_made *made, uint64_t n_positions, uint64_t n_units, uint64_t n_final);

        /* How far the step under way is, every few milliseconds: to show it to people, and to let other threads have
         * their turn. Maker's thread. */
        void (*told)(struct order_made *made, uint64_t n_done, uint64_t n_total);
};

/* Bytes that the making takes at most, and so must be reserved. UINT64_MAX: more than can be computed. */
uint64_t order_made_bytes(struct sampling *sampling, const struct dlp_sampler_terms *base, uint32_t batch_size);

/* Prepares; takes a reference. */
void order_made_init(struct order_made *made, struct sampling *sampling, const struct dlp_sampler_terms *base,
                     uint32_t batch_size);

/* Makes it; blocks until it is done. Outcome: published, or has_failed with `failure`. */
void order_made_run(struct order_made *made);

void order_made_fini(struct order_made *made);
