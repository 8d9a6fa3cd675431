/* data/order_table.h: the order of an epoch, made once on a node for all ranks and jobs that want it.
 *
 * A sampler (proto/order/sampler.h) defines an order; this file gives it memory, a background thread and users. A
 * caller gets the existing table of an order, or a new one that the thread fills, a chunk at a time: its first elements
 * can be used while the last ones are not made yet, so no batch waits for a whole shuffle. Ask for the next epoch
 * early, so that it is ready in time. Where torch itself must shuffle to the end (DLP_SHUFFLE_WIDE_FROM), nothing is
 * available before that. An order that is computed (tdperm, sequential) takes no memory and is ready at once.
 *
 * Tables are counted; the last put frees the memory at once (or, if the thread is at work on it, a few milliseconds
 * later). The memory is asked for through the owner's callbacks, since this floor does not know of budgets.
 *
 * Threads: everything here may be called from any thread. Lock order: the tables' mutex is taken last and is not
 * held while a callback runs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "proto/base/why.h"
#include "proto/order/sampler.h"

/* Positive outcome of order_table_at(): made in a moment; the ready callback says when to ask again. */
#define ORDER_NOT_YET 1

struct order_tables;
struct order_table;

struct order_tables_options {
        /* Asked before memory is taken; returns 0, or an errno with `why`. NULL: always yes. Any thread that gets. */
        int (*reserve)(void *userdata, void *payer, uint64_t n_bytes, const char *what, struct why *why);
        /* The same bytes are free again. Any thread that puts, and the background thread, which then calls ready(),
         * too. NULL: nobody counts. */
        void (*release)(void *userdata, void *payer, uint64_t n_bytes);
        /* Elements were made of a table of which somebody was told ORDER_NOT_YET. The background thread; must not
         * block for long. Comes at most once for each ORDER_NOT_YET, and may come a time too many. NULL: nobody waits.
         */
        void (*ready)(void *userdata);
        void *userdata;
};

/* Which order, and who pays for it. Two specs with the same result share a table. */
struct order_spec {
        struct dlp_sampler_terms terms; /* n_samples <= DLP_SAMPLES_MAX */
        void *payer;                    /* for reserve() and release(): tables are shared by who has the same one */
};

/* The memory that a table of this order takes. */
uint64_t order_table_bytes(const struct order_spec *spec);

/* Starts the background thread. Returns 0 or an errno. */
int order_tables_new(const struct order_tables_options *options, struct order_tables **ret_tables);

/* Ends the thread within a few milliseconds. All tables must have been put (asserted). NULL is fine. */
void order_tables_free(struct order_tables *tables);

/* Takes a table, and has it made if nobody did. Never blocks for the making. Returns 0, or an errno with `why`: what
 * reserve() said, -ENOMEM, -EINVAL for too large an n. Give it back with order_table_put(). */
int order_table_get(struct order_tables *tables, const struct order_spec *spec, struct order_table **ret_table,
                    struct why *why);

/* Takes a table that somebody holds a second time. */
struct order_table *order_table_ref(struct order_table *table);

/* Gives a table back. NULL is fine. */
void order_table_put(struct order_table *table);

/* The sample at a global position (any: after the last position comes the first). Returns 0; ORDER_NOT_YET; -ERANGE if
 * there is no position at all. Lock-free;
 * about ten nanoseconds when the element is there and in the cache, some tens if it is computed. */
int order_table_at(struct order_table *table, uint64_t position, uint64_t *ret_index);
