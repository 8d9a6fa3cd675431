/* pipeline/batch.h: from a taken slot to a published one.
 *
 * The planner begins a batch. Each of its samples ends exactly once: served, failed, or abandoned before it was
 * planned. The thread that ends the last sample completes the record, publishes the slot and wakes the client. */
#pragma once

#include "daemon/base/base_trace.h"
#include "daemon/pipeline/counters.h"
#include "daemon/pipeline/feed.h"

/* What events about this batch are about. While trace_is_on(). Any thread that works on it. */
struct trace_subject batch_subject(const struct batch *batch);

/* Planner: the batch of the feed's cursor, in the slot that it belongs to. Takes a reference to the order. */
void batch_begin(struct batch *batch, struct feed *feed, struct order_table *order);

/* Planner: the next batch that is served again (pipeline/replay/), in the slot that it belongs to. */
void batch_begin_replay(struct batch *batch, struct feed *feed);

/* Planner: publishes a batch without samples, which tells the client how long the epoch is: this rank has no batch of
 * it that could. */
void batch_tell_length(struct batch *batch, struct counters *counters);

/* Planner: the samples from `idx_first` on will not be planned (a seek, a failed job): the batch is not delivered. */
void batch_abandon(struct batch *batch, uint32_t idx_first, struct counters *counters);

/* Planner: the batch has no samples and consists of this reason only; `code` as of batch_failed(). */
void batch_fail_whole(struct batch *batch, uint32_t code, const struct why *why, struct counters *counters);

/* Is this batch still wanted? Any thread; an outdated answer only costs work. */
bool batch_is_wanted(const struct batch *batch);

/* The sample that set the shape for all samples of its batch could not be served after all. Only for a batch of one
 * sample: in a larger one others may have used that shape. */
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

/* The same, but true if the last one was among them and functions or plug-ins get the batch whole before it is
 * published. Then it
 * is the caller's, with its gaps closed, until batch_whole_done(). */
bool batch_samples_are_last(struct batch *batch, uint32_t n_samples, struct counters *counters);
void batch_whole_done(struct batch *batch, struct counters *counters);

/* Workers: this sample is left out of its batch. */
void batch_skip(struct batch *batch, uint32_t idx_sample);

/* Closes the gaps of samples that were left out. The caller of batch_samples_are_last(). */
void batch_close_gaps(struct batch *batch);
void batch_samples_done(struct batch *batch, uint32_t n_samples, struct counters *counters);
