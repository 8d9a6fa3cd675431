#include "daemon/pipeline/schedule.h"

#include <errno.h>

#include "daemon/data/growth.h"
#include "daemon/pipeline/batch.h"
#include "daemon/pipeline/pipeline_rows.h"
#include "daemon/pipeline/replay/replay.h"
#include "daemon/pipeline/sample_states.h"
#include "proto/base/clock.h"

#define CHUNK_SAMPLES 8u /* planned for one stream before the next one is chosen: a tenth of a usual batch */

/* A job has memory for the orders of two epochs, and its ranks share it. When its ranks are further apart than that, a
 * rank with no sample in progress gives up its table and gets another one when it goes on. So a rank that waits for its
 * client holds no order table, and the ranks cannot deadlock: its client may itself wait for a rank that needs the
 * memory. A rank that is working keeps its table until its epoch ends or its ring is full. */
static void reclaim_orders(struct planner *planner, const struct stream *stream) {
        struct stream *other;

        TAILQ_FOREACH(other, &planner->streams, entry) {
                if (other == stream || other->job != stream->job)
                        continue;
                /* A prefetched table is not in use yet, so it can always be given back. */
                order_table_put(other->next_order);
                other->next_order = NULL;
                if (other->n_tasks == 0 && !other->batch) {
                        order_table_put(other->order);
                        other->order = NULL;
                }
        }
}

/* The order of the next epoch is made in the background while this one is consumed. If there is no room for it yet,
 * this is tried again with each batch. At the latest the order is made when it is needed. */
static void stream_prefetch_order(struct planner *planner, struct stream *stream) {
        struct order_spec spec = stream_order_spec(stream, stream->epoch + 1);

        if (stream->length == DLP_UNKNOWN) /* it may never end */
                return;
        if (!stream->next_order && stream->epoch + 1 < stream->end_epoch)
                order_table_get(planner->options.tables, &spec, &stream->next_order, NULL);
}

/* begin_ns 0: there was no trace then. */
static void trace_stream(const struct stream *stream, enum dlp_trace_kind kind, uint64_t begin_ns, uint64_t value) {
        struct trace_subject subject = { .rank = stream->rank, .epoch = stream->epoch, .step = stream->step };

        if (begin_ns == 0)
                return;
        subject.word = atomic_load_explicit(&stream->job->traced, memory_order_relaxed);
        trace_write(&subject, kind, DLP_TRACE_DONE, begin_ns, clock_now_ns(), value);
}

static void stream_begin_epoch(struct planner *planner, struct stream *stream) {
        uint64_t begin_ns = trace_is_on() ? clock_now_ns() : 0;
        struct order_spec spec;
        struct why why;
        int r = 0;

        if (stream->order && stream->order_epoch == stream->epoch)
                return;
        if (stream->order)
                order_table_put(stream->order);
        stream->order = NULL;
        if (stream->next_order && stream->order_epoch + 1 == stream->epoch) {
                stream->order = stream->next_order;
                stream->next_order = NULL;
        }
        if (stream->next_order)
                order_table_put(stream->next_order);
        stream->next_order = NULL;

        if (!stream->order) {
                spec = stream_order_spec(stream, stream->epoch);
                r = order_table_get(planner->options.tables, &spec, &stream->order, &why);
                if (r == -EAGAIN) {
                        reclaim_orders(planner, stream);
                        r = order_table_get(planner->options.tables, &spec, &stream->order, &why);
                }
        }
        if (r == -EAGAIN)
                stream->stopped_by = DLP_WAIT_ORDER; /* tried again when samples in progress come back */
        else if (r < 0)
                job_fail(stream->job, EBADMSG, why.text); /* reserved memory is not there: the node itself has none */
        else
                stream->order_epoch = stream->epoch;
        trace_stream(stream, DLP_TRACE_EPOCH, begin_ns, 0);
}

static void stream_next_step(struct stream *stream) {
        stream->batch = NULL;
        stream->idx_sample = 0;
        if (dlp_epoch_plan_is_over(&stream->plan, ++stream->step))
                stream_next_epoch(stream);
        if (stream->drains)
                stream_end(stream);
}

/* When will the client want the batch that is planned next? After it has consumed the batches before that one, counted
 * from its last release. A rank that starves has not released anything for a long time, so its time lies in the past
 * and becomes older than all others. A rank that consumes slowly wants its next batch far in the future. A new rank
 * wants its first batch since it was added.
 *
 * The time that a client takes for a batch is never taken as shorter than the time that we take to make one: otherwise
 * one fast rank would have all its slots filled before another one gets a single batch. This lower bound is the same
 * for all ranks: otherwise a rank that was served late would be taken for one that can wait. */
static uint64_t stream_wanted_at_ns(const struct planner *planner, const struct stream *stream) {
        const struct ring *ring = stream->ring;
        uint64_t n_ahead = ring->next_sequence - ring->n_released - (stream->batch ? 1 : 0);

        return ring->released_at_ns +
               n_ahead * (ring->eating_ns > planner->making_ns ? ring->eating_ns : planner->making_ns);
}

/* Takes a slot. Returns NULL if no slot is free, or if the client wrote an impossible value. */
static struct slot *stream_take_slot(struct planner *planner, struct stream *stream) {
        struct slot *slot;
        int r;

        r = ring_take(stream->ring, &slot);
        if (r == RING_NO_SLOT) {
                ring_watch(stream->ring, true);
                r = ring_take(stream->ring, &slot); /* a slot may be free since before the watch was set */
        }
        if (r == RING_NO_SLOT) {
                stream->stopped_by = DLP_WAIT_SLOT;
                return NULL;
        }
        if (r < 0) {
                stream_end(stream);
                atomic_store_explicit(&stream->broken, true, memory_order_relaxed);
                planner->options.broken(planner->options.userdata, stream);
                return NULL;
        }
        ring_watch(stream->ring, false);
        return slot;
}

/* Takes a slot for the next batch. Returns false if no slot is free. */
static bool stream_begin_batch(struct planner *planner, struct stream *stream) {
        uint64_t begin_ns = trace_is_on() ? clock_now_ns() : 0;
        struct slot *slot = stream_take_slot(planner, stream);

        if (!slot)
                return false;
        if (stream->ring->making_ns > 0)
                planner->making_ns = (7 * planner->making_ns + stream->ring->making_ns) / 8;
        stream->batch = &stream->batches[slot->idx];
        stream->idx_sample = 0;
        batch_begin(stream->batch, stream, stream->order);
        stream_prefetch_order(planner, stream);
        trace_stream(stream, DLP_TRACE_PLAN, begin_ns, stream->batch->n_samples);
        return true;
}

/* Sends a batch that is served again to the workers, one task for all of it. Its place comes next as before. */
static void stream_plan_replay(struct planner *planner, struct stream *stream) {
        static const struct batch_sample NONE;
        struct slot *slot = stream_take_slot(planner, stream);
        struct task *task;

        if (!slot)
                return;
        batch_begin_replay(&stream->batches[slot->idx], stream);
        task = planner_take_task(planner, stream);
        task_begin(task, &stream->batches[slot->idx], 0, &NONE);
        task_read_nothing(task);
        states_begin(planner, task, SAMPLE_REPLAY);
}

/* The job has failed elsewhere: this rank learns it in its turn, from a batch that holds only the reason. */
static void stream_end_failed(struct planner *planner, struct stream *stream) {
        struct why failure;
        uint32_t code;

        if (stream->batch) { /* the samples planned so far are in progress; the rest are never planned */
                batch_abandon(stream->batch, stream->idx_sample, planner->options.counters);
                stream->batch = NULL;
        }
        if (!stream_begin_batch(planner, stream))
                return;
        code = job_failure(stream->job, &failure);
        batch_fail_whole(stream->batch, code, &failure, planner->options.counters);
        stream->batch = NULL;
        stream_end(stream);
}

/* Looks up which samples the task takes: the next ones of the batch, as many as the task may have and as the order has
 * ready. */
static void look_up_rows(struct stream *stream, struct task *task) {
        const struct batch *batch = stream->batch;
        uint32_t n_left = batch->n_samples - stream->idx_sample, n = rows_at_once(stream);

        task->is_copied = n > 1;
        task->n_rows = task->idx_row = 0;
        task->own.idx_blamed = UINT32_MAX;
        while (task->n_rows < n && task->n_rows < n_left) {
                struct task_row *row = &task->rows[task->n_rows];

                uint32_t idx_sample = stream->idx_sample + task->n_rows;

                row->position = batch->positions ? batch->positions[idx_sample]
                                                 : dlp_epoch_plan_position(&stream->plan, batch->first + idx_sample);
                if (order_table_at(batch->order, row->position, &row->index) != 0)
                        return;
                task->n_rows++;
        }
}

/* Plans one sample, or several that are only copied. Returns false if the stream cannot go on now. */
static bool stream_plan_samples(struct planner *planner, struct stream *stream) {
        struct task *task = STAILQ_FIRST(&planner->free_tasks);
        struct batch_sample first;

        look_up_rows(stream, task);
        if (task->n_rows == 0) {
                stream->stopped_by = DLP_WAIT_ORDER;
                return false;
        }
        planner_take_task(planner, stream);
        first = task_row_sample(&task->rows[0]);
        task_begin(task, stream->batch, stream->idx_sample, &first);
        stream->idx_sample += task->n_rows;
        if (stream->idx_sample == stream->batch->n_samples)
                stream_next_step(stream);
        if (task->is_copied) {
                task->program = programs_with(stream->programs, first.candidate); /* functions draw by it */
                task->idx_field = 0;
                task_read_nothing(task);
        }
        states_begin(planner, task, task->is_copied ? SAMPLE_COPY : SAMPLE_LOCATE);
        return true;
}

static bool stream_is_runnable(const struct stream *stream) {
        return !stream->is_ended && stream->stopped_by == DLP_WAIT_NOTHING && STAILQ_EMPTY(&stream->large_waiting);
}

/* Has the stream ended? Then its epoch has a length, and the plan is made again. */
static bool stream_has_ended(struct stream *stream, const struct growth *growth) {
        bool is_over;
        uint64_t n_samples = growth_n_samples(growth, &is_over);

        if (is_over)
                stream_learn_length(stream, n_samples);
        return is_over;
}

/* May the next batch of a stream that goes on be begun? Only if all of it has arrived, for every rank: then it is the
 * same whatever the length of the stream will be. Its order says that it must be asked again when there is more, or
 * when there will be no more, unless that was so before it was asked. */
static bool stream_has_arrived(struct stream *stream) {
        const struct growth *growth = dataset_source(stream->dataset->dataset)->growth;

        if (order_table_has(stream->order, dlp_epoch_plan_needs(&stream->plan, stream->step)))
                return true;
        if (!stream_has_ended(stream, growth))
                stream->stopped_by = DLP_WAIT_SAMPLES;
        return false;
}

/* This rank has no batch in the epoch, so no batch can tell the client how long the epoch is. */
static bool stream_tell_length(struct planner *planner, struct stream *stream) {
        if (!stream_begin_batch(planner, stream))
                return false;
        batch_tell_length(stream->batch, planner->options.counters);
        stream->batch = NULL;
        stream_next_epoch(stream);
        return true;
}

/* Can the samples of a batch be looked up in its order? One that a sampler makes is not ready at first, and not again
 * when a stream had to give up its table and gets another one, though it has learned the length before. */
static bool stream_has_units(const struct stream *stream) {
        return !stream->job->terms.is_made ||
               (stream->plan.n_batches != DLP_UNKNOWN && order_table_n_units(stream->order) != DLP_UNKNOWN);
}

/* Is it known how long the epoch is whose order a sampler makes? Returns false if the stream cannot go on now. */
static bool stream_has_length(struct planner *planner, struct stream *stream) {
        uint64_t n_units = order_table_n_units(stream->order);
        struct why why;

        if (order_table_has_failed(stream->order, &why) ||
            (n_units != DLP_UNKNOWN && stream_learn_units(stream, n_units, &why) < 0)) {
                job_fail(stream->job, EINVAL, why.text);
                stream_end_failed(planner, stream);
                return false;
        }
        if (n_units == DLP_UNKNOWN) {
                stream->stopped_by = DLP_WAIT_ORDER;
                return false;
        }
        if (!dlp_epoch_plan_is_over(&stream->plan, stream->step))
                return true;
        stream_tell_length(planner, stream);
        return false;
}

/* Brings the stream to the point where it has a batch to plan. */
static bool stream_prepare(struct planner *planner, struct stream *stream) {
        if (atomic_load_explicit(&stream->job->failed, memory_order_acquire)) {
                stream_end_failed(planner, stream);
                return false;
        }
        if (stream->batch)
                return true;
        stream_begin_epoch(planner, stream);
        if (!stream->order)
                return false;
        if (stream->length == DLP_UNKNOWN && !stream_has_arrived(stream))
                return false;
        if (!stream_has_units(stream) && !stream_has_length(planner, stream))
                return false;
        if (replay_is_due(stream)) {
                stream_plan_replay(planner, stream);
                return false;
        }
        return stream_begin_batch(planner, stream);
}

static uint32_t stream_weight(const struct stream *stream) {
        return atomic_load_explicit(&stream->job->share.weight, memory_order_relaxed);
}

static bool stream_may_take(const struct planner *planner, const struct stream *stream) {
        return shares_may_take(&planner->shares, &stream->job->tasks, stream_weight(stream));
}

bool schedule_may_take(struct planner *planner, struct stream *stream) {
        shares_want(&planner->shares, &stream->job->tasks, stream_weight(stream));
        return stream_may_take(planner, stream);
}

/* Counts who wants tasks now, and who has some and will want more. */
static void count_wishes(struct planner *planner) {
        struct stream *stream;

        shares_begin(&planner->shares);
        TAILQ_FOREACH(stream, &planner->streams, entry)
                if (stream_is_runnable(stream) || stream->job->tasks.n_tasks > stream->job->tasks.n_stuck)
                        shares_want(&planner->shares, &stream->job->tasks, stream_weight(stream));
}

/* The stream wants more tasks than it may have now: the planner is woken when a quarter of those it has may be back. */
static void note_want(struct planner *planner, const struct stream *stream) {
        uint32_t n = (stream->job->tasks.n_tasks + 3) / 4;

        if (n == 0)
                n = 1;
        if (planner->n_wake_for == 0 || n < planner->n_wake_for)
                planner->n_wake_for = n;
}

/* Does the user or the job of this stream have fewer tasks for its weight than the other's? Within one job: does this
 * rank run dry first? */
static bool stream_is_before(const struct stream *stream, uint64_t at_ns, const struct stream *other,
                             uint64_t other_at_ns) {
        int r = shares_compare(&stream->job->tasks, stream_weight(stream), &other->job->tasks, stream_weight(other));

        return r != 0 ? r < 0 : at_ns < other_at_ns;
}

static struct stream *most_urgent(struct planner *planner) {
        struct stream *stream, *best = NULL;
        uint64_t best_at_ns = 0;

        planner->n_wake_for = 0;
        TAILQ_FOREACH(stream, &planner->streams, entry) {
                uint64_t at_ns;

                if (!stream_is_runnable(stream))
                        continue;
                if (!stream_may_take(planner, stream)) {
                        note_want(planner, stream);
                        continue;
                }
                at_ns = stream_wanted_at_ns(planner, stream);
                if (!best || stream_is_before(stream, at_ns, best, best_at_ns)) {
                        best = stream;
                        best_at_ns = at_ns;
                }
        }
        return best;
}

void schedule_plan(struct planner *planner) {
        struct stream *stream;

        count_wishes(planner);
        while ((stream = most_urgent(planner)))
                for (uint32_t i = 0; i < CHUNK_SAMPLES && stream_is_runnable(stream); i++)
                        if (!stream_may_take(planner, stream) || !stream_prepare(planner, stream) ||
                            !stream_plan_samples(planner, stream))
                                break;
}
