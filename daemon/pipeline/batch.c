#include "daemon/pipeline/batch.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/collate/mix/mixing.h"
#include "daemon/collate/packing.h"
#include "daemon/pipeline/replay/replay.h"
#include "proto/base/clock.h"
#include "proto/order/philox.h"

struct trace_subject batch_subject(const struct batch *batch) {
        const struct feed *feed = batch->feed;

        return (struct trace_subject){ .word = atomic_load_explicit(&feed->job->traced, memory_order_relaxed),
                                       .rank = feed->rank,
                                       .epoch = batch->epoch,
                                       .step = batch->step };
}

static void record_begin(struct batch *batch) {
        struct dlp_slot_record *record = batch->slot->record;

        record->stream = batch->n_seeks;
        record->epoch = batch->epoch;
        record->step = batch->step;
        record->status = DLP_BATCH_OK;
        record->n_samples = batch->n_samples;
        record->n_tensors = 0;
        record->n_errors = 0;
        record->n_skipped = 0;
        record->n_planned = batch->n_samples;
        record->epoch_units = batch->feed->plan.terms.n_positions;
}

/* Where the sample at position `at` goes in row `row`, of which `begin` elements are taken. Returns how many it takes.
 */
static uint32_t batch_pack(struct batch *batch, const struct order_table *order, uint64_t at, uint32_t idx_sample,
                           uint32_t row, uint32_t begin) {
        const struct dlp_piece *piece = &order_table_made(order)->pieces[at];

        batch->packs[idx_sample] = (struct pack_place){ .row = row,
                                                        .at = begin,
                                                        .skip = piece->begin,
                                                        .n_elements = piece->n_elements,
                                                        .length = order_table_length(order, at) };
        return piece->n_elements;
}

/* Looks up which positions the units of the batch have. */
static uint32_t list_positions(struct batch *batch, const struct dlp_epoch_plan *plan,
                               const struct order_table *table) {
        const struct dlp_order *order = order_table_made(table);
        uint32_t n = 0;

        for (uint32_t i = 0; i < batch->n_units; i++) {
                uint64_t unit = dlp_epoch_plan_position(plan, batch->first + i);
                uint32_t n_packed = 0;

                for (uint64_t at = order->starts[unit]; at < order->starts[unit + 1]; at++) {
                        assert(n < batch->feed->batch_samples); /* n_unit_max() of the grouper */
                        if (batch->packs)
                                n_packed += batch_pack(batch, table, at, n, i, n_packed);
                        batch->positions[n++] = at;
                }
        }
        batch->collating.n_rows = batch->n_units;
        return n;
}

static void counts_begin(struct batch *batch, uint32_t n_left) {
        batch->n_errors = 0;
        batch->failed = false;
        atomic_store_explicit(&batch->n_left, n_left, memory_order_relaxed);
        atomic_store_explicit(&batch->n_skipped, 0, memory_order_relaxed);
        atomic_store_explicit(&batch->read_ns, 0, memory_order_relaxed);
        atomic_store_explicit(&batch->queued_ns, 0, memory_order_relaxed);
        atomic_store_explicit(&batch->decode_ns, 0, memory_order_relaxed);
}

static bool batch_is_ready(const struct feed *feed, struct order_table *order) {
        return feed->plan.n_batches != DLP_UNKNOWN && order && order_table_n_units(order) != DLP_UNKNOWN;
}

void batch_begin(struct batch *batch, struct feed *feed, struct order_table *order) {
        struct dlp_plan_batch planned = { 0 };

        if (!dlp_epoch_plan_is_over(&feed->plan, feed->step)) /* else only the epoch's length is told */
                planned = dlp_epoch_plan_batch(&feed->plan, feed->step);

        batch->order = order ? order_table_ref(order) : NULL;
        batch->n_seeks = feed->planned_seeks;
        batch->epoch = feed->epoch;
        batch->step = feed->step;
        batch->first = planned.first;
        batch->n_units = batch->n_samples = planned.n_samples;
        batch->position = planned.n_samples > 0 ? dlp_epoch_plan_position(&feed->plan, planned.first) : 0;
        if (batch->positions && planned.n_samples > 0 &&
            batch_is_ready(feed, order)) /* else it will hold a failure only */
                batch->n_samples = list_positions(batch, &feed->plan, order);
        batch->n_kept = batch->n_samples;
        counts_begin(batch, batch->n_samples);
        collating_begin(&batch->collating);
        record_begin(batch);
        replay_note_begun(feed, batch);
}

/* It is one task, which copies it. */
void batch_begin_replay(struct batch *batch, struct feed *feed) {
        batch->order = NULL;
        batch->n_seeks = feed->planned_seeks;
        batch->epoch = feed->epoch;
        batch->step = feed->step;
        batch->first = 0;
        batch->n_units = batch->n_samples = 0;
        counts_begin(batch, 1);
        record_begin(batch);
        batch->slot->record->status = DLP_BATCH_REPLAY;
        replay_take(feed, batch);
}

/* Of the first field of tokens: others, such as labels, have as many of the same text. */
static uint64_t n_tokens(const struct batch *batch) {
        const struct layout *layout = &batch->feed->layout;

        for (uint32_t i = 0; i < layout->n_fields; i++) {
                const struct field_form *form = &layout->fields[i].form;
                bool is_whole_number = form->dtype != DLP_DTYPE_BYTES && form->dtype != DLP_DTYPE_TEXT &&
                                       form->dtype != DLP_DTYPE_TEXTS;

                if (form->n_dims == 1 && is_whole_number &&
                    codec_is_tokens(program_codec(programs_first(batch->feed->programs), i)))
                        return collating_n_elements(&batch->collating, i, batch->slot->record);
        }
        return 0;
}

static void count_published(struct batch *batch, uint64_t begin_ns, struct counters *counters) {
        struct feed *feed = batch->feed;
        uint64_t end_ns = clock_now_ns(), collate_ns = end_ns - begin_ns;

        if (trace_is_on()) {
                struct trace_subject subject = batch_subject(batch);

                trace_write(&subject, DLP_TRACE_COLLATE, 0, begin_ns, end_ns, batch->n_samples);
        }

        counter_add(&counters->collate_ns, collate_ns);
        counter_add(&feed->counters.n_samples, batch->slot->record->n_samples);
        counter_add(&feed->job->tallies[batch->slot->idx % TALLIES].n_tokens, n_tokens(batch));
        stage_sums_add(&feed->job->tallies[batch->slot->idx % TALLIES].stages, STAGE_COLLATE, collate_ns);
}

static void fail_record(struct batch *batch, struct counters *counters) {
        struct feed *feed = batch->feed;
        struct dlp_slot_record *record = batch->slot->record;

        record->status = DLP_BATCH_FAILED;
        record->code = batch->failure_code;
        record->n_samples = record->n_planned = 0;
        record->n_tensors = 0;
        memcpy(record->text, batch->failure.text, sizeof(record->text));
        if (batch->n_seeks == atomic_load_explicit(&feed->n_seeks, memory_order_relaxed) &&
            job_fail(feed->job, batch->failure_code, batch->failure.text))
                counter_add(&counters->n_failed_jobs, 1);
}

/* The draws of a view are those of a job whose `draws` is larger by it, as for samples. */
static void mix_samples(const struct batch *batch) {
        const struct feed *feed = batch->feed;
        const struct job_terms *terms = &feed->job->terms;

        for (uint32_t i = 0; i < feed->layout.n_fields; i++) {
                const struct codec *codec = program_codec(programs_first(feed->programs), i);
                struct codec_input input = { .seed = dlp_philox_seed(terms->seed, terms->draws + codec_draws(codec)) };
                struct mix_key key = { .seed = codec_seed(codec, &input),
                                       .epoch = (uint32_t)batch->epoch,
                                       .position = batch->position };

                mixing_run(&feed->layout, i, &key, batch->slot->record, batch->slot->base, batch->draws);
        }
}

/* ---- samples that are left out ---------------------------------------------------------------------------------
 *
 * A sample's place in the slot is fixed before it is known whether the sample can be served, so that workers write
 * without asking each other. When the last sample has ended, those after a gap move up, in their order: what the client
 * gets depends only on which samples are damaged. Where functions get whole batches, samples may be made again after
 * that, in their new places, and further ones may be left out. */

#define LEFT_OUT (-1) /* in place of an index, until the gaps are closed */

void batch_skip(struct batch *batch, uint32_t idx_sample) {
        batch->slot->columns.indices[idx_sample] = LEFT_OUT;
        atomic_fetch_add_explicit(&batch->n_skipped, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&batch->feed->counters.n_skipped, 1, memory_order_relaxed);
}

/* After all samples of the batch have been served or left out, and collating_describe(). */
static void move_up(struct batch *batch) {
        struct dlp_slot_record *record = batch->slot->record;
        const struct dlp_columns *columns = &batch->slot->columns;
        uint32_t n = 0;

        for (uint32_t i = 0; i < batch->n_kept; i++) {
                if (columns->indices[i] == LEFT_OUT)
                        continue;
                if (n < i) {
                        columns->indices[n] = columns->indices[i];
                        collating_move(&batch->collating, record, i, n);
                        if (batch->samples)
                                batch->samples[n] = batch->samples[i];
                }
                columns->substitutes[n] = -1;
                columns->idx_errors[n] = -1;
                n++;
        }
        batch->n_kept = record->n_samples = n;
        record->n_skipped = batch->n_samples - n;
        for (uint32_t i = 0; i < record->n_tensors; i++)
                record->tensors[i].shape[0] = n;
        if (n == 0)
                record->n_tensors = 0; /* there is nothing to describe, not even a size */
}

void batch_close_gaps(struct batch *batch) {
        collating_describe(&batch->collating, batch->n_samples, batch->slot->record);
        /* A batch that is no longer wanted has places that were never filled, so its gaps are not closed. */
        if (atomic_load_explicit(&batch->n_skipped, memory_order_relaxed) > 0 && batch_is_wanted(batch))
                move_up(batch);
}

static void complete_record(struct batch *batch, struct counters *counters) {
        struct dlp_slot_record *record = batch->slot->record;
        uint64_t begin_ns = clock_now_ns();

        record->n_errors = batch->n_errors;
        batch_close_gaps(batch);
        collating_finish(&batch->collating, record);
        if (batch->draws && batch_is_wanted(batch))
                mix_samples(batch);
        counter_add(&counters->n_batches, 1);
        count_published(batch, begin_ns, counters);
}

/* All that the workers wrote is visible here: n_left was counted down with acq_rel. */
static void batch_publish(struct batch *batch, struct counters *counters) {
        struct feed *feed = batch->feed;
        struct dlp_slot_record *record = batch->slot->record;

        record->read_ns = atomic_load_explicit(&batch->read_ns, memory_order_relaxed);
        record->queued_ns = atomic_load_explicit(&batch->queued_ns, memory_order_relaxed);
        record->decode_ns = atomic_load_explicit(&batch->decode_ns, memory_order_relaxed);
        if (batch->failed)
                fail_record(batch, counters);
        else if (batch->replays)
                counter_add(&feed->counters.n_samples_again, record->n_samples);
        else
                complete_record(batch, counters);
        replay_note_finished(batch, !batch->failed && batch_is_wanted(batch));
        /* The memory of an old epoch's order is given back with the epoch's last batch, not only when the slot is used
         * again. This must come before ring_complete(): after that call the batch belongs to the planner again. */
        order_table_put(batch->order);
        batch->order = NULL;
        /* The rank has left, and since then its samples have been dropped unread: the batch may be incomplete. A client
         * that continues with another daemon still takes what is published, so neither this batch nor a later one is
         * published. */
        if (atomic_load_explicit(&feed->has_left, memory_order_relaxed))
                return;
        if (ring_complete(feed->ring, batch->slot))
                feed_wake(feed);
}

void batch_samples_done(struct batch *batch, uint32_t n_samples, struct counters *counters) {
        /* acq_rel: each worker's pixels are released by its own countdown and acquired by the last one. */
        if (atomic_fetch_sub_explicit(&batch->n_left, n_samples, memory_order_acq_rel) == n_samples)
                batch_publish(batch, counters);
}

void batch_sample_done(struct batch *batch, struct counters *counters) {
        batch_samples_done(batch, 1, counters);
}

/* One that has failed, or holds no sample, or that nobody wants, is not worth a function's time. */
bool batch_samples_are_last(struct batch *batch, uint32_t n_samples, struct counters *counters) {
        if (atomic_fetch_sub_explicit(&batch->n_left, n_samples, memory_order_acq_rel) != n_samples)
                return false;
        if (batch->samples && !batch->failed && batch_is_wanted(batch)) {
                batch_close_gaps(batch);
                if (batch->n_kept > 0)
                        return true;
        }
        batch_publish(batch, counters);
        return false;
}

void batch_whole_done(struct batch *batch, struct counters *counters) {
        batch_publish(batch, counters);
}

void batch_abandon(struct batch *batch, uint32_t idx_first, struct counters *counters) {
        struct why failure;
        uint32_t code = job_failure(batch->feed->job, &failure);

        if (!failure.text[0])
                why_set(&failure, 0, "the rank seeked elsewhere before this batch was complete");
        batch_failed(batch, idx_first, code, &failure);
        batch_samples_done(batch, batch->n_samples - idx_first, counters);
}

void batch_tell_length(struct batch *batch, struct counters *counters) {
        batch_publish(batch, counters);
}

void batch_fail_whole(struct batch *batch, uint32_t code, const struct why *why, struct counters *counters) {
        batch_failed(batch, 0, code, why);
        batch_samples_done(batch, batch->n_samples, counters);
}

bool batch_is_wanted(const struct batch *batch) {
        const struct feed *feed = batch->feed;

        return !atomic_load_explicit(&feed->has_left, memory_order_relaxed) &&
               atomic_load_explicit(&feed->n_seeks, memory_order_relaxed) == batch->n_seeks;
}

void batch_forget_shape(struct batch *batch) {
        if (batch->n_samples == 1)
                collating_forget(&batch->collating);
}

/* Keeps the text of a substitution if there is still room for it. */
static int32_t keep_error(struct batch *batch, const struct why *reason) {
        const struct dlp_control *control = batch->feed->ring->control;
        uint32_t idx;

        pthread_mutex_lock(&batch->lock);
        idx = batch->n_errors++;
        pthread_mutex_unlock(&batch->lock);
        if (idx >= DLP_SLOT_ERRORS_MAX)
                return -1;
        snprintf(dlp_error_text(control, batch->slot->idx, idx), DLP_SLOT_ERROR_BYTES, "%.*s",
                 (int)DLP_SLOT_ERROR_BYTES - 1, reason->text);
        return (int32_t)idx;
}

void batch_served(struct batch *batch, uint32_t idx_sample, uint64_t index, uint64_t candidate,
                  const struct why *reason) {
        struct feed *feed = batch->feed;
        const struct dlp_columns *columns = &batch->slot->columns;

        columns->indices[idx_sample] = (int64_t)index;
        columns->substitutes[idx_sample] = -1;
        columns->idx_errors[idx_sample] = -1;
        if (reason) {
                columns->substitutes[idx_sample] = (int64_t)candidate;
                columns->idx_errors[idx_sample] = keep_error(batch, reason);
                counter_add(&feed->counters.n_substituted, 1);
        }
}

void batch_took(struct batch *batch, uint64_t read_ns, uint64_t queued_ns, uint64_t decode_ns) {
        atomic_fetch_add_explicit(&batch->read_ns, read_ns, memory_order_relaxed);
        atomic_fetch_add_explicit(&batch->queued_ns, queued_ns, memory_order_relaxed);
        atomic_fetch_add_explicit(&batch->decode_ns, decode_ns, memory_order_relaxed);
}

void batch_failed(struct batch *batch, uint32_t idx_sample, uint32_t code, const struct why *why) {
        pthread_mutex_lock(&batch->lock);
        if (!batch->failed || idx_sample < batch->idx_failed) {
                batch->failed = true;
                batch->idx_failed = idx_sample;
                batch->failure = *why;
                batch->failure_code = code;
        }
        pthread_mutex_unlock(&batch->lock);
}
