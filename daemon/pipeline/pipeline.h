/* pipeline/pipeline.h: joins the floors below: plan -> read -> decode -> augment -> collate -> publish.
 *
 *   main thread   pipeline_add, _seek, _remove            through the planner's commands
 *   planner       batches of indices into free slots      planner_thread.h
 *   reader        bytes of samples into buffers           io/reader.h
 *   workers       bytes into pixels in their place        worker_thread.h; the last of a batch publishes it
 *
 * Everything is made at the start and limited: at most as many samples are under way as there are tasks. Only the
 * number of workers can change (pool.h). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "daemon/base/budget.h"
#include "daemon/base/settings.h"
#include "daemon/pipeline/counters.h"
#include "daemon/pipeline/feed_make.h"
#include "daemon/pipeline/workers/pool.h"

struct pipeline;
struct reader_report;

struct pipeline_options {
        const struct settings *settings; /* in force, for as long as it runs */
        struct cells *cells;             /* all processes of the daemon, also those of others; NULL: there are none */
        struct budget *budget;
        void (*broken)(void *userdata,
                       struct feed *feed); /* planner thread: the feed's client wrote an impossible value */
        void (*desk_filled)(void *userdata, struct feed *feed); /* any thread: samples wait at its desk for processes
                                                                 * that have room; the feed may be gone by then */
        void *userdata;
};

/* Starts all threads. -ENOMEM with the numbers if buffers and scratch alone exceed the budget. */
int pipeline_start(const struct pipeline_options *options, struct pipeline **ret_pipeline, struct why *why);

/* All feeds must have been removed; waits until the last sample under way is back. Returns 0, or -ETIMEDOUT if a read
 * hangs in the kernel (a dead network mount): then threads and memory must be left as they are, and the process ends.
 */
int pipeline_stop(struct pipeline *pipeline);

/* Makes a feed; blocks while its memory is touched, so not on the main thread. If memory is short while removed
 * feeds are still being freed, waits up to a second for them. Ownership as in feed_new(). */
int pipeline_make_feed(struct pipeline *pipeline, const struct feed_options *options, struct feed **ret_feed,
                       struct why *why);

/* Touches the pages of the ring that pipeline_make_feed() left out, after the first batch has been published or is
 * late; blocks. Call it once, between add and remove, not on the main thread. The feed is not freed before this
 * returns. */
void pipeline_touch_feed(struct pipeline *pipeline, struct feed *feed);
void pipeline_skip_touching(struct pipeline *pipeline,
                            struct feed *feed); /* instead of touching: pages come when they are written */

/* Main thread. From add to remove the caller may use the feed's constant fields and its ring's counts; after remove
 * it must not touch it. A feed that was never added is freed with feed_free(). */
void pipeline_add(struct pipeline *pipeline, struct feed *feed);
uint64_t pipeline_seek(struct pipeline *pipeline, struct feed *feed, const struct cursor *cursor);
/* Serves all ranks of a job some batches again, each of them n_batches (replay/replay.h). `feeds` are all of its
 * ranks; the end, which may be asked for with any of them, is for all. How far that is: feed->replay. */
void pipeline_replay(struct pipeline *pipeline, struct feed *const *feeds, uint32_t n_feeds, uint32_t n_batches);
void pipeline_end_replay(struct pipeline *pipeline, struct feed *feed);
void pipeline_drain(struct pipeline *pipeline,
                    struct feed *feed); /* completes the batches that are begun, begins no more */
void pipeline_remove(struct pipeline *pipeline, struct feed *feed);

/* Memory that clients hold after they have left; the caller checks it now and then. */
struct lent_list *pipeline_held(struct pipeline *pipeline);

/* The pool of workers. Main thread. */
struct pool *pipeline_pool(struct pipeline *pipeline);

/* After a reload: as many workers as the settings say, and their nice value and that of the threads that make orders.
 * Returns as pool_configure(). Main thread. */
int pipeline_configure(struct pipeline *pipeline, struct why *why);

/* All counters so far, summed up for this call; valid until the next call. Main thread. */
struct counters *pipeline_counters(struct pipeline *pipeline);
const struct reader_report *pipeline_reader_report(const struct pipeline *pipeline);
uint32_t pipeline_read_depth(const struct pipeline *pipeline); /* fewer than configured if memory_limit is small */
uint32_t pipeline_n_workers(const struct pipeline *pipeline);  /* the current number */
uint32_t pipeline_n_reading(const struct pipeline *pipeline);  /* samples that are being read at this moment */

/* Bytes that the daemon itself uses, independent of attached ranks; the rest of its account belongs to jobs and
 * datasets. Main thread. */
struct pipeline_memory {
        uint64_t read_buffers;
        uint64_t worker_scratch;
        uint64_t large_picture_scratch;
};

void pipeline_memory(const struct pipeline *pipeline, struct pipeline_memory *ret_memory);
