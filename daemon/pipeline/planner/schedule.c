#include "daemon/pipeline/planner/schedule.h"

#include <errno.h>

#include "daemon/data/growth.h"
#include "daemon/pipeline/batch.h"
#include "daemon/pipeline/pipeline_rows.h"
#include "daemon/pipeline/replay/replay.h"
#include "daemon/pipeline/sample_states.h"
#include "proto/base/clock.h"

#define CHUNK_SAMPLES 8u /* planned for one feed before the next one is chosen: a tenth of a usual batch */

/* A job has memory for the orders of two epochs, and its ranks share it. When its ranks are further apart than that, a
 * rank with no sample in progress gives up its table and gets another one when it goes on. So a rank that waits for its
 * client holds no order table, and the ranks cannot deadlock: its client may itself wait for a rank that needs the
 * memory. A rank that is working keeps its table until its epoch ends or its ring is full. */
static void reclaim_orders(struct planner *planner, const struct feed *feed) {
        struct feed *other;

        TAILQ_FOREACH(other, &planner->feeds, entry) {
                if (other == feed || other->job != feed->job)
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
static void feed_prefetch_order(struct planner *planner, struct feed *feed) {
        struct order_spec spec = feed_order_spec(feed, feed->epoch + 1);

        if (feed->length == DLP_UNKNOWN) /* it may never end */
                return;
        if (!feed->next_order && feed->epoch + 1 < feed->end_epoch)
                order_table_get(planner->options.tables, &spec, &feed->next_order, NULL);
}

/* begin_ns 0: there was no trace then. */
static void schedule_trace(const struct feed *feed, enum dlp_trace_kind kind, uint64_t begin_ns, uint64_t value) {
        struct trace_subject subject = { .rank = feed->rank, .epoch = feed->epoch, .step = feed->step };

        if (begin_ns == 0)
                return;
        subject.word = atomic_load_explicit(&feed->job->traced, memory_order_relaxed);
        trace_write(&subject, kind, DLP_TRACE_DONE, begin_ns, clock_now_ns(), value);
}

static void feed_begin_epoch(struct planner *planner, struct feed *feed) {
        uint64_t begin_ns = trace_is_on() ? clock_now_ns() : 0;
        struct order_spec spec;
        struct why why;
        int r = 0;

        if (feed->order && feed->order_epoch == feed->epoch)
                return;
        if (feed->order)
                order_table_put(feed->order);
        feed->order = NULL;
        if (feed->next_order && feed->order_epoch + 1 == feed->epoch) {
                feed->order = feed->next_order;
                feed->next_order = NULL;
        }
        if (feed->next_order)
                order_table_put(feed->next_order);
        feed->next_order = NULL;

        if (!feed->order) {
                spec = feed_order_spec(feed, feed->epoch);
                r = order_table_get(planner->options.tables, &spec, &feed->order, &why);
                if (r == -EAGAIN) {
                        reclaim_orders(planner, feed);
                        r = order_table_get(planner->options.tables, &spec, &feed->order, &why);
                }
        }
        if (r == -EAGAIN)
                feed->stopped_by = DLP_WAIT_ORDER; /* tried again when samples in progress come back */
        else if (r < 0)
                job_fail(feed->job, EBADMSG, why.text); /* reserved memory is not there: the node itself has none */
        else
                feed->order_epoch = feed->epoch;
        schedule_trace(feed, DLP_TRACE_EPOCH, begin_ns, 0);
}

static void feed_next_step(struct feed *feed) {
        feed->batch = NULL;
        feed->idx_sample = 0;
        if (dlp_epoch_plan_is_over(&feed->plan, ++feed->step))
                feed_next_epoch(feed);
        if (feed->drains)
                feed_end(feed);
}

/* When will the client want the batch that is planned next? After it has consumed the batches before that one, counted
 * from its last release. A rank that starves has not released anything for a long time, so its time lies in the past
 * and becomes older than all others. A rank that consumes slowly wants its next batch far in the future. A new rank
 * wants its first batch since it was added.
 *
 * The time that a client takes for a batch is never taken as shorter than the time that we take to make one: otherwise
 * one fast rank would have all its slots filled before another one gets a single batch. This lower bound is the same
 * for all ranks: otherwise a rank that was served late would be taken for one that can wait. */
static uint64_t feed_wanted_at_ns(const struct planner *planner, const struct feed *feed) {
        const struct ring *ring = feed->ring;
        uint64_t n_ahead = ring->next_sequence - ring->n_released - (feed->batch ? 1 : 0);

        return ring->released_at_ns +
               n_ahead * (ring->consume_ns > planner->making_ns ? ring->consume_ns : planner->making_ns);
}

/* Takes a slot. Returns NULL if no slot is free, or if the client wrote an impossible value. */
static struct slot *feed_take_slot(struct planner *planner, struct feed *feed) {
        struct slot *slot;
        int r;

        r = ring_take(feed->ring, &slot);
        if (r == RING_NO_SLOT) {
                ring_watch(feed->ring, true);
                r = ring_take(feed->ring, &slot); /* a slot may be free since before the watch was set */
        }
        if (r == RING_NO_SLOT) {
                feed->stopped_by = DLP_WAIT_SLOT;
                return NULL;
        }
        if (r < 0) {
                feed_end(feed);
                atomic_store_explicit(&feed->broken, true, memory_order_relaxed);
                planner->options.broken(planner->options.userdata, feed);
                return NULL;
        }
        ring_watch(feed->ring, false);
        return slot;
}

/* Takes a slot for the next batch. Returns false if no slot is free. */
static bool feed_begin_batch(struct planner *planner, struct feed *feed) {
        uint64_t begin_ns = trace_is_on() ? clock_now_ns() : 0;
        struct slot *slot = feed_take_slot(planner, feed);

        if (!slot)
                return false;
        if (feed->ring->making_ns > 0)
                planner->making_ns = (7 * planner->making_ns + feed->ring->making_ns) / 8;
        feed->batch = &feed->batches[slot->idx];
        feed->idx_sample = 0;
        batch_begin(feed->batch, feed, feed->order);
        feed_prefetch_order(planner, feed);
        schedule_trace(feed, DLP_TRACE_PLAN, begin_ns, feed->batch->n_samples);
        return true;
}

/* Sends a batch that is served again to the workers, one task for all of it. Its place comes next as before. */
static void feed_plan_replay(struct planner *planner, struct feed *feed) {
        static const struct batch_sample NONE;
        struct slot *slot = feed_take_slot(planner, feed);
        struct task *task;

        if (!slot)
                return;
        batch_begin_replay(&feed->batches[slot->idx], feed);
        task = planner_take_task(planner, feed);
        task_begin(task, &feed->batches[slot->idx], 0, &NONE);
        task_read_nothing(task);
        states_begin(planner, task, SAMPLE_REPLAY);
}

/* The job has failed elsewhere: this rank learns it in its turn, from a batch that holds only the reason. */
static void feed_end_failed(struct planner *planner, struct feed *feed) {
        struct why failure;
        uint32_t code;

        if (feed->batch) { /* the samples planned so far are in progress; the rest are never planned */
                batch_abandon(feed->batch, feed->idx_sample, planner->options.counters);
                feed->batch = NULL;
        }
        if (!feed_begin_batch(planner, feed))
                return;
        code = job_failure(feed->job, &failure);
        batch_fail_whole(feed->batch, code, &failure, planner->options.counters);
        feed->batch = NULL;
        feed_end(feed);
}

/* Looks up which samples the task takes: the next ones of the batch, as many as the task may have and as the order has
 * ready. */
static void look_up_rows(struct feed *feed, struct task *task) {
        const struct batch *batch = feed->batch;
        uint32_t n_left = batch->n_samples - feed->idx_sample, n = rows_at_once(feed);

        task->is_copied = n > 1;
        task->n_rows = task->idx_row = 0;
        task->function.idx_blamed = UINT32_MAX;
        while (task->n_rows < n && task->n_rows < n_left) {
                struct task_row *row = &task->rows[task->n_rows];

                uint32_t idx_sample = feed->idx_sample + task->n_rows;

                row->position = batch->positions ? batch->positions[idx_sample]
                                                 : dlp_epoch_plan_position(&feed->plan, batch->first + idx_sample);
                if (order_table_at(batch->order, row->position, &row->index) != 0)
                        return;
                task->n_rows++;
        }
}

/* Plans one sample, or several that are only copied. Returns false if the feed cannot go on now. */
static bool feed_plan_samples(struct planner *planner, struct feed *feed) {
        struct task *task = STAILQ_FIRST(&planner->free_tasks);
        struct batch_sample first;

        look_up_rows(feed, task);
        if (task->n_rows == 0) {
                feed->stopped_by = DLP_WAIT_ORDER;
                return false;
        }
        planner_take_task(planner, feed);
        first = task_row_sample(&task->rows[0]);
        task_begin(task, feed->batch, feed->idx_sample, &first);
        feed->idx_sample += task->n_rows;
        if (feed->idx_sample == feed->batch->n_samples)
                feed_next_step(feed);
        if (task->is_copied) {
                task->program = programs_with(feed->programs, first.candidate); /* functions draw by it */
                task->idx_field = 0;
                task_read_nothing(task);
        }
        states_begin(planner, task, task->is_copied ? SAMPLE_COPY : SAMPLE_LOCATE);
        return true;
}

static bool feed_is_runnable(const struct feed *feed) {
        return !feed->is_ended && feed->stopped_by == DLP_WAIT_NOTHING && STAILQ_EMPTY(&feed->large_waiting);
}

/* Has the stream ended? Then its epoch has a length, and the plan is made again. */
static bool feed_sees_stream_end(struct feed *feed, const struct growth *growth) {
        bool is_over;
        uint64_t n_samples = growth_n_samples(growth, &is_over);

        if (is_over)
                feed_learn_length(feed, n_samples);
        return is_over;
}

/* May the next batch of a stream that goes on be begun? Only if all of it has arrived, for every rank: then it is the
 * same whatever the length of the stream will be. Its order says that it must be asked again when there is more, or
 * when there will be no more, unless that was so before it was asked. */
static bool feed_has_arrived(struct planner *planner, struct feed *feed) {
        struct growth *growth = dataset_source(feed->dataset->dataset)->growth;
        uint64_t timeout_s = planner->options.settings->outage_timeout, silent_ns, now_ns;
        struct why why, silent;

        if (order_table_has(feed->order, dlp_epoch_plan_needs(&feed->plan, feed->step)))
                return true;
        if (growth_has_failed(growth, &why)) {
                job_fail(feed->job, EBADMSG, why.text);
                feed_end_failed(planner, feed);
                return false;
        }
        silent_ns = growth_silent_ns(growth, &silent);
        now_ns = clock_now_ns();
        if (silent_ns != 0 && now_ns > silent_ns && now_ns - silent_ns >= timeout_s * 1000000000u) {
                why_set(&why, 0, "%s could not be read for %llu s (outage_timeout): %s", feed->dataset->name,
                        (unsigned long long)(now_ns - silent_ns) / 1000000000u, silent.text);
                job_fail(feed->job, EBADMSG, why.text);
                feed_end_failed(planner, feed);
                return false;
        }
        if (!feed_sees_stream_end(feed, growth))
                feed->stopped_by = DLP_WAIT_SAMPLES;
        return false;
}

/* This rank has no batch in the epoch, so no batch can tell the client how long the epoch is. */
static bool feed_tell_length(struct planner *planner, struct feed *feed) {
        if (!feed_begin_batch(planner, feed))
                return false;
        batch_tell_length(feed->batch, planner->options.counters);
        feed->batch = NULL;
        feed_next_epoch(feed);
        return true;
}

/* Can the samples of a batch be looked up in its order? One that a sampler makes is not ready at first, and not again
 * when a stream had to give up its table and gets another one, though it has learned the length before. */
static bool feed_has_units(const struct feed *feed) {
        return !feed->job->terms.is_made ||
               (feed->plan.n_batches != DLP_UNKNOWN && order_table_n_units(feed->order) != DLP_UNKNOWN);
}

/* Is it known how long the epoch is whose order a sampler makes? Returns false if the feed cannot go on now. */
static bool feed_has_length(struct planner *planner, struct feed *feed) {
        uint64_t n_units = order_table_n_units(feed->order);
        struct why why;

        if (order_table_has_failed(feed->order, &why) ||
            (n_units != DLP_UNKNOWN && feed_learn_units(feed, n_units, &why) < 0)) {
                job_fail(feed->job, EINVAL, why.text);
                feed_end_failed(planner, feed);
                return false;
        }
        if (n_units == DLP_UNKNOWN) {
                feed->stopped_by = DLP_WAIT_ORDER;
                return false;
        }
        if (!dlp_epoch_plan_is_over(&feed->plan, feed->step))
                return true;
        feed_tell_length(planner, feed);
        return false;
}

/* Brings the feed to the point where it has a batch to plan. */
static bool feed_prepare(struct planner *planner, struct feed *feed) {
        if (atomic_load_explicit(&feed->job->failed, memory_order_acquire)) {
                feed_end_failed(planner, feed);
                return false;
        }
        if (feed->batch)
                return true;
        feed_begin_epoch(planner, feed);
        if (!feed->order)
                return false;
        if (feed->length == DLP_UNKNOWN && !feed_has_arrived(planner, feed))
                return false;
        if (!feed_has_units(feed) && !feed_has_length(planner, feed))
                return false;
        if (replay_is_due(feed)) {
                feed_plan_replay(planner, feed);
                return false;
        }
        return feed_begin_batch(planner, feed);
}

static uint32_t feed_weight(const struct feed *feed) {
        return atomic_load_explicit(&feed->job->share.weight, memory_order_relaxed);
}

static bool feed_may_take(const struct planner *planner, const struct feed *feed) {
        return shares_may_take(&planner->shares, &feed->job->tasks, feed_weight(feed));
}

bool schedule_may_take(struct planner *planner, struct feed *feed) {
        shares_want(&planner->shares, &feed->job->tasks, feed_weight(feed));
        return feed_may_take(planner, feed);
}

/* Counts who wants tasks now, and who has some and will want more. */
static void count_wishes(struct planner *planner) {
        struct feed *feed;

        shares_begin(&planner->shares);
        TAILQ_FOREACH(feed, &planner->feeds, entry)
                if (feed_is_runnable(feed) || feed->job->tasks.n_tasks > feed->job->tasks.n_stuck)
                        shares_want(&planner->shares, &feed->job->tasks, feed_weight(feed));
}

/* The feed wants more tasks than it may have now: the planner is woken when a quarter of those it has may be back. */
static void note_want(struct planner *planner, const struct feed *feed) {
        uint32_t n = (feed->job->tasks.n_tasks + 3) / 4;

        if (n == 0)
                n = 1;
        if (planner->n_wake_for == 0 || n < planner->n_wake_for)
                planner->n_wake_for = n;
}

/* Does the user or the job of this feed have fewer tasks for its weight than the other's? Within one job: does this
 * rank run dry first? */
static bool feed_is_before(const struct feed *feed, uint64_t at_ns, const struct feed *other, uint64_t other_at_ns) {
        int r = shares_compare(&feed->job->tasks, feed_weight(feed), &other->job->tasks, feed_weight(other));

        return r != 0 ? r < 0 : at_ns < other_at_ns;
}

static struct feed *most_urgent(struct planner *planner) {
        struct feed *feed, *best = NULL;
        uint64_t best_at_ns = 0;

        planner->n_wake_for = 0;
        TAILQ_FOREACH(feed, &planner->feeds, entry) {
                uint64_t at_ns;

                if (!feed_is_runnable(feed))
                        continue;
                if (!feed_may_take(planner, feed)) {
                        note_want(planner, feed);
                        continue;
                }
                at_ns = feed_wanted_at_ns(planner, feed);
                if (!best || feed_is_before(feed, at_ns, best, best_at_ns)) {
                        best = feed;
                        best_at_ns = at_ns;
                }
        }
        return best;
}

void schedule_plan(struct planner *planner) {
        struct feed *feed;

        count_wishes(planner);
        while ((feed = most_urgent(planner)))
                for (uint32_t i = 0; i < CHUNK_SAMPLES && feed_is_runnable(feed); i++)
                        if (!feed_may_take(planner, feed) || !feed_prepare(planner, feed) ||
                            !feed_plan_samples(planner, feed))
                                break;
}
