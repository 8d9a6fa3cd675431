/* data/growth.h: how far a stream has come: a dataset whose samples become known while it is served.
 *
 * The thread that takes the samples in (data/intake/) publishes how many there are. Whoever has read that number may
 * read everything about the samples below it, too (a release store and an acquire load). The number only grows, until
 * the stream has ended. Whoever waits for more listens, and is called from the thread that takes in.
 *
 * It is reference-counted: the tables of orders may outlive the dataset by a moment. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/threads/queue.h"
#include "proto/base/why.h"

struct growth;

/* Its memory belongs to the listener. */
struct growth_listener {
        LIST_ENTRY(growth_listener) entry;
        /* There are more samples, or the stream has ended. Must not block, and not call this module. */
        void (*grown)(struct growth_listener *listener);
};

/* What people are shown. */
struct growth_report {
        uint64_t n_samples, n_shards, n_bytes;
        bool is_over;
        uint64_t n_late;    /* shards that were refused because they came too late */
        struct why waiting; /* what the stream waits for; "": nothing, or it is over */
        struct why trouble; /* the last thing that went wrong; "": nothing has */
};

int growth_new(struct growth **ret_growth); /* -ENOMEM */
struct growth *growth_ref(struct growth *growth);
void growth_unref(struct growth *growth); /* takes NULL */

/* How many samples there are; *ret_is_over (may be NULL): there will be no more. Any thread, no lock. */
uint64_t growth_n_samples(const struct growth *growth, bool *ret_is_over);

/* Calls the listener from now on, until growth_leave() has returned. */
void growth_listen(struct growth *growth, struct growth_listener *listener);
void growth_leave(struct growth *growth, struct growth_listener *listener);

/* The thread that takes in. Publishes all that was written of samples below n_samples. */
void growth_publish(struct growth *growth, uint64_t n_samples, bool is_over);

/* The report, to be changed between the two calls by the thread that takes in. n_samples and is_over are not read. */
struct growth_report *growth_report_begin(struct growth *growth);
void growth_report_end(struct growth *growth);

/* What people are shown now. Any thread. */
void growth_report(struct growth *growth, struct growth_report *ret_report);
