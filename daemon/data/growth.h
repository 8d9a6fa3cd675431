/* data/growth.h: how far a stream has come: a dataset whose samples become known while it is served.
 *
 * The thread that takes the samples in (data/intake/) publishes how many there are. Whoever has read that number may
 * read everything about the samples below it, too (a release store and an acquire load). The number only grows, until
 * the stream has ended. Whoever waits for more listens, and is called from the thread that takes in.
 *
 * The samples of a stream come one after the other, or in blocks (proto/order/blocks.h), each of which grows by itself:
 * which one should is asked for by orders, which know what they need next.
 *
 * It is reference-counted: the tables of orders may outlive the dataset by a moment. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/base/threads/queue.h"
#include "proto/base/why.h"
#include "proto/order/blocks.h"

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
        uint64_t silent_ns; /* since when the origin of its files does not answer, as `waiting` says; 0: it does */
        struct why trouble; /* the last thing that went wrong; "": nothing has */
};

int growth_new(struct growth **ret_growth); /* -ENOMEM */

/* Of n blocks, 1 at least, of up to (1 << shift) - 1 samples each. `wanted` is called when an order begins to wait, by
 * any thread, until growth_leave_blocks(); it must not block, and not call this module. -ENOMEM. */
int growth_new_blocks(uint32_t n, uint32_t shift, void (*wanted)(void *userdata), void *userdata,
                      struct growth **ret_growth);
struct growth *growth_ref(struct growth *growth);
void growth_unref(struct growth *growth); /* takes NULL */

/* How many samples there are; *ret_is_over (may be NULL): there will be no more. Any thread, no lock. */
uint64_t growth_n_samples(const struct growth *growth, bool *ret_is_over);

/* Calls the listener from now on, until growth_leave() has returned. */
void growth_listen(struct growth *growth, struct growth_listener *listener);
void growth_leave(struct growth *growth, struct growth_listener *listener);

/* The thread that takes in. Publishes all that was written of samples below n_samples. */
void growth_publish(struct growth *growth, uint64_t n_samples, bool is_over);

/* ---- in blocks -------------------------------------------------------------------------------------------------- */

/* NULL: samples come one after the other. Lives as long as the growth. */
const struct dlp_blocks *growth_blocks(const struct growth *growth);

/* The thread that takes this block in. It has n_samples now, all of which may be read; `is_whole`: and will have no
 * more. When all are, the stream is over. */
void growth_set_block(struct growth *growth, uint32_t block, uint64_t n_samples, bool is_whole);

/* Orders. The first n_samples of the block are needed next, or (`is_ahead`) after those. Any thread. */
void growth_want_block(struct growth *growth, uint32_t block, uint64_t n_samples, bool is_ahead);

/* A block that is wanted and has less, and whose number (`numbers` of each) is not in `taken` (a bit each); the one
 * that was asked for first, and what is needed next before what is needed later. Returns false if there is none, and
 * after a failure: the block that has failed would be wanted for ever. Any thread. */
bool growth_wanted_block(struct growth *growth, const _Atomic uint64_t *taken, const size_t *numbers,
                         uint32_t *ret_block);

/* No more comes of some block, because of what `why` says: orders that need more have failed. Only the first one
 * counts.
 */
void growth_fail(struct growth *growth, const struct why *why);

/* Any thread. `ret_why` may be NULL. */
bool growth_has_failed(struct growth *growth, struct why *ret_why);

/* The origin of its files does not answer, as `why` says; NULL: it does. Threads that take blocks in. */
void growth_set_silent(struct growth *growth, const struct why *why);

/* Since when; 0: it does. Any thread. */
uint64_t growth_silent_ns(struct growth *growth, struct why *ret_why);

/* wanted() is not called from now on. */
void growth_leave_blocks(struct growth *growth);

/* The report, to be changed between the two calls by the thread that takes in. n_samples and is_over are not read. */
struct growth_report *growth_report_begin(struct growth *growth);
void growth_report_end(struct growth *growth);

/* What people are shown now. Any thread. */
void growth_report(struct growth *growth, struct growth_report *ret_report);
