/* data/orders/order_table.h: the order of an epoch, made once on a node for all ranks and jobs that need it.
 *
 * A sampler (proto/order/sampler.h) defines an order; this file gives it memory, a background thread and users. A
 * caller gets the existing table of an order, or a new one that the thread fills chunk by chunk. The first elements can
 * be used before the last ones are made, so no batch waits for a whole shuffle. Ask for the next epoch early, so that
 * it is ready in time. Where torch itself must shuffle to the end (DLP_SHUFFLE_WIDE_FROM), no element is available
 * before that. An order that is computed (tdperm, sequential) takes no memory and is ready at once. The order of a
 * stream is made as its samples arrive (data/growth.h). What a sampler's steps make (orders/data_sampling.h) is made by
 * a thread of its own; how many positions and units it has is known once they are made or published. Few of these
 * threads work at once, in turn between users, and the background thread serves the user who has had the least of it.
 *
 * Tables are reference-counted. The last put frees the memory at once, or a few milliseconds later if the thread is
 * working on the table. The memory is reserved by the owner's callbacks, because this module does not know budgets.
 *
 * Threads: all functions may be called from any thread. Lock order: the mutex of the tables is taken last and is not
 * held while a callback runs. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/budget.h"
#include "daemon/base/threads/fair_queue.h"
#include "daemon/data/growth.h"
#include "daemon/data/orders/data_sampling.h"
#include "proto/base/why.h"
#include "proto/order/sampler.h"

/* Positive outcome of order_table_at(): not made yet; the ready callback says when to ask again. */
#define ORDER_NOT_YET 1

struct order_tables;
struct order_table;

/* One user's part in the making of orders. Outlives the tables of the user's payers. */
struct order_user {
        struct fair_group group;
        struct fair_share share; /* of the turns of threads that make orders of samplers */
        uint64_t filled_ns;      /* of the background thread's time; the tables' mutex */
};

/* Take a zeroed one. */
void order_user_init(struct order_user *user);

struct order_tables_options {
        /* Called before memory is taken. Returns 0, or an errno with `why`. NULL: always 0. Any thread that gets a
         * table. */
        int (*reserve)(void *userdata, void *payer, uint64_t n_bytes, const char *what, struct why *why);
        /* The same bytes are free again. Called by any thread that puts a table, and by the background thread, which
         * then also calls ready(). NULL: memory is not counted. */
        void (*release)(void *userdata, void *payer, uint64_t n_bytes);
        /* New elements were made of a table for which a caller got ORDER_NOT_YET. Called by the background thread; must
         * not block for long. It is called at most once for each ORDER_NOT_YET, and may be called without need. NULL:
         * callers do not wait. */
        void (*ready)(void *userdata);
        /* For people: so much of an order that takes its time is made; once n_done is n_total, it is made or given up.
         * Called by the threads that make orders. NULL: nobody wants to know. */
        void (*told)(void *userdata, void *payer, uint64_t epoch, uint64_t n_done, uint64_t n_total);
        /* Whose order it is: users share the threads that make orders. NULL: all are one user's. */
        struct order_user *(*user)(void *userdata, void *payer);
        /* Making an order has taken this much more of a thread's time. Called by the threads that make orders. NULL:
         * nobody is charged. */
        void (*spent)(void *userdata, void *payer, uint64_t taken_ns);
        uint32_t n_makers; /* orders of samplers that are made at once; 0: half as many as there are CPUs */
        void *userdata;
};

/* Which order, and who pays for its memory. Two specs with the same result share a table. */
struct order_spec {
        struct dlp_sampler_terms terms; /* n_samples <= DLP_SAMPLES_MAX; of a stream DLP_UNKNOWN */
        void *payer;                    /* for reserve() and release(); specs share a table if this is the same */
        struct growth *growth;          /* of a stream; else NULL */
        struct budget *budget; /* of a stream: pays for the table as it grows, and lives as long as the payer; it may
                                  be NULL */
        struct sampling *sampling; /* loaded; the payer keeps it. NULL: the order of `terms` alone */
        uint32_t batch_size;       /* for the sampler's steps */
};

/* The memory that a table of this order takes; 0 of a stream, whose table pays as it grows. Of a sampler's steps the
 * most that making it takes. */
uint64_t order_table_bytes(const struct order_spec *spec);

/* Sets the nice value of the workers. From their next piece of work on, threads that make orders have a higher one, so
 * that workers go first. Any thread. */
void order_tables_set_nice(struct order_tables *tables, int nice);

/* Starts the background thread. Returns 0 or an errno. */
int order_tables_new(const struct order_tables_options *options, struct order_tables **ret_tables);

/* Ends the thread within a few milliseconds. All tables must have been put (asserted). Takes NULL. */
void order_tables_free(struct order_tables *tables);

/* Takes a table, and has it made if it does not exist. Does not block until it is made. Returns 0, or an errno with
 * `why`: the error of reserve(), -ENOMEM, or -EINVAL if n is too large. Give the table back with order_table_put(). */
int order_table_get(struct order_tables *tables, const struct order_spec *spec, struct order_table **ret_table,
                    struct why *why);

/* Takes one more reference to a table that the caller holds. */
struct order_table *order_table_ref(struct order_table *table);

/* Gives a table back. Takes NULL. */
void order_table_put(struct order_table *table);

/* Are the first n positions there? If not, ready() says when to ask again. For streams; any thread, no lock. */
bool order_table_has(struct order_table *table, uint64_t n);

/* Units of an epoch (proto/order/making/order.h), or DLP_UNKNOWN while they are not known: then ready() says when to
 * ask again. Any thread. */
uint64_t order_table_n_units(struct order_table *table);

/* Could the order not be made? Then `ret_why` says why, and it never will be. Any thread. */
bool order_table_has_failed(struct order_table *table, struct why *ret_why);

/* What a sampler's steps have made, once the number of its units is known; NULL for all other orders. Its samples may
 * not be there yet, everything else is. Lives as long as the caller's reference. */
const struct dlp_order *order_table_made(const struct order_table *table);

/* The length, from the column, with which the sample at this position was packed. Only for an order of packs. */
uint32_t order_table_length(const struct order_table *table, uint64_t position);

/* Is the order of a stream held up because there is no memory for it? Any thread. */
bool order_table_is_short(struct order_table *table, struct why *ret_why);

/* The sample at a global position (any position: after the last one comes the first). Returns 0; ORDER_NOT_YET; -ERANGE
 * if the order has no positions. Lock-free: takes about ten nanoseconds when the element is there and in the cache, and
 * some tens if it is computed. */
int order_table_at(struct order_table *table, uint64_t position, uint64_t *ret_index);
