/* pipeline/batch.h: from a taken slot to a published one.
 *
 * The planner begins a batch; each of its samples ends exactly once: served, or failed, or abandoned unplanned. Whoever
 * ends the last one writes what is left of the record, publishes and wakes the client. */
#pragma once

#include "daemon/pipeline/counters.h"
#include "daemon/pipeline/stream.h"

/* Planner: the batch of the stream's cursor, in the slot that it belongs to. Takes a reference to the order. */
void batch_begin(struct batch *batch, struct stream *stream, struct order_table *order);

/* Planner: the samples from `idx_first` on will not come (a seek, a failed job): the batch is void. */
void batch_abandon(struct batch *batch, uint32_t idx_first, struct counters *counters);

/* Planner: the whole batch is nothing but this reason. */
void batch_fail_whole(struct batch *batch, const struct why *why, struct counters *counters);

/* Does anybody still want this batch? Any thread; an old answer costs only work. */
bool batch_is_wanted(const struct batch *batch);

/* The sample that said how large all of its batch are could not be served after all. Only if the batch is it alone:
 * others may have agreed. */
void batch_forget_shape(struct batch *batch);

/* Workers. `idx_sample` is in its place: `candidate` is what it is; if it is a substitute, `reason` says why the sample
 * of the order was not. */
void batch_served(struct batch *batch, uint32_t idx_sample, uint64_t index, uint64_t candidate,
                  const struct why *reason);

/* Workers: a sample (or a try of it) waited so long for its bytes and for a worker, and took so long. */
void batch_took(struct batch *batch, uint64_t read_ns, uint64_t queued_ns, uint64_t decode_ns);

/* Workers: it could not be served, and the batch is to fail with this reason. */
void batch_failed(struct batch *batch, uint32_t idx_sample, const struct why *why);

/* Workers: one sample has ended. The last one publishes. */
void batch_sample_done(struct batch *batch, struct counters *counters);
