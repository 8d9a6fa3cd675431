#include "daemon/pipeline/batch.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/pipeline/compact.h"

static struct dlp_tensor_record *tensor_init(struct dlp_slot_record *record, const char *name, enum dlp_dtype dtype,
                                             uint64_t offset, uint32_t n_samples) {
        struct dlp_tensor_record *tensor = &record->tensors[record->n_tensors++];

        memset(tensor, 0, sizeof(*tensor));
        snprintf(tensor->name, sizeof(tensor->name), "%s", name);
        tensor->dtype = dtype;
        tensor->layout = DLP_DENSE;
        tensor->n_dims = 1;
        tensor->shape[0] = n_samples;
        tensor->strides[0] = (int64_t)dlp_dtype_bytes(dtype);
        tensor->offset = offset;
        return tensor;
}

/* Without gaps, in the sequence of its dimensions: what the trainer's frameworks call contiguous. */
static void tensor_set_picture(struct dlp_tensor_record *tensor, const struct pixel_format *format, uint32_t height,
                               uint32_t width) {
        bool channels_first = format->channels_first;

        tensor->n_dims = 4;
        tensor->shape[1] = channels_first ? format->n_channels : height;
        tensor->shape[2] = channels_first ? height : width;
        tensor->shape[3] = channels_first ? width : format->n_channels;
        tensor->strides[3] = (int64_t)dlp_dtype_bytes(format->dtype);
        for (uint32_t i = 3; i > 0; i--)
                tensor->strides[i - 1] = tensor->strides[i] * tensor->shape[i];
}

static void record_begin(struct batch *batch, const struct collation *collation) {
        struct dlp_slot_record *record = batch->slot->record;
        struct dlp_tensor_record *image;

        record->stream = batch->number;
        record->epoch = batch->epoch;
        record->step = batch->step;
        record->status = DLP_BATCH_OK;
        record->n_samples = batch->n_samples;
        record->n_tensors = 0;
        record->n_errors = 0;
        record->n_skipped = 0;
        record->n_planned = batch->n_samples;

        image = tensor_init(record, "image", collation->ragged ? DLP_DTYPE_BYTES : collation->format.dtype,
                            collation->images_offset, batch->n_samples);
        if (collation->ragged) {
                image->layout = DLP_RAGGED;
                image->n_dims = 2;
                image->shape[1] = -1;
                image->strides[0] = 0;
                image->strides[1] = 1;
        } else {
                tensor_set_picture(image, &collation->format, collation->height, collation->width);
        }
        tensor_init(record, "label", DLP_DTYPE_INT64, collation->labels_offset, batch->n_samples);
}

void batch_begin(struct batch *batch, struct stream *stream, struct order_table *order) {
        struct dlp_plan_batch planned = dlp_epoch_plan_batch(&stream->plan, stream->step);

        batch->order = order ? order_table_ref(order) : NULL;
        batch->number = stream->planned_number;
        batch->epoch = stream->epoch;
        batch->step = stream->step;
        batch->first = planned.first;
        batch->n_samples = planned.n_samples;
        batch->n_errors = 0;
        batch->failed = false;
        atomic_store_explicit(&batch->n_left, batch->n_samples, memory_order_relaxed);
        atomic_store_explicit(&batch->shape, 0, memory_order_relaxed);
        atomic_store_explicit(&batch->n_used_bytes, stream->collation.images_offset, memory_order_relaxed);
        atomic_store_explicit(&batch->n_skipped, 0, memory_order_relaxed);
        atomic_store_explicit(&batch->read_ns, 0, memory_order_relaxed);
        atomic_store_explicit(&batch->queued_ns, 0, memory_order_relaxed);
        atomic_store_explicit(&batch->decode_ns, 0, memory_order_relaxed);
        record_begin(batch, &stream->collation);
}

/* Everything that the workers wrote is seen here: n_left was counted down with acq_rel. */
static void batch_publish(struct batch *batch, struct counters *counters) {
        struct stream *stream = batch->stream;
        struct dlp_slot_record *record = batch->slot->record;
        uint64_t shape = atomic_load_explicit(&batch->shape, memory_order_relaxed);

        if (stream->collation.varies)
                tensor_set_picture(&record->tensors[0], &stream->collation.format, (uint32_t)(shape >> 32),
                                   (uint32_t)shape);
        record->n_errors = batch->n_errors;
        record->read_ns = atomic_load_explicit(&batch->read_ns, memory_order_relaxed);
        record->queued_ns = atomic_load_explicit(&batch->queued_ns, memory_order_relaxed);
        record->decode_ns = atomic_load_explicit(&batch->decode_ns, memory_order_relaxed);
        if (batch->failed) {
                record->status = DLP_BATCH_FAILED;
                record->n_samples = record->n_planned = 0;
                record->n_tensors = 0;
                memcpy(record->text, batch->failure.text, sizeof(record->text));
                if (batch->number == atomic_load_explicit(&stream->number, memory_order_relaxed) &&
                    job_fail(stream->job, batch->failure.text))
                        counter_add(&counters->n_failed_jobs, 1);
        } else {
                /* A batch that nobody wants any more has places that nobody filled. */
                if (atomic_load_explicit(&batch->n_skipped, memory_order_relaxed) > 0 && batch_is_wanted(batch))
                        batch_compact(batch);
                counter_add(&counters->n_batches, 1);
        }
        /* An old epoch's memory goes with its last batch, not when the slot is used again. And before ring_complete():
         * then the batch is the planner's again. */
        order_table_put(batch->order);
        batch->order = NULL;
        /* Whom it was for has left, and from then on samples are dropped unread: the batch may be incomplete. A client
         * that goes on to another daemon still takes what is published, so this is not, nor is anything behind it. */
        if (atomic_load_explicit(&stream->removed, memory_order_relaxed))
                return;
        if (ring_complete(stream->ring, batch->slot))
                stream_wake(stream);
}

static void samples_done(struct batch *batch, uint32_t n, struct counters *counters) {
        /* acq_rel: each worker's pixels are released by its own countdown and acquired by the last one. */
        if (atomic_fetch_sub_explicit(&batch->n_left, n, memory_order_acq_rel) == n)
                batch_publish(batch, counters);
}

void batch_sample_done(struct batch *batch, struct counters *counters) {
        samples_done(batch, 1, counters);
}

void batch_abandon(struct batch *batch, uint32_t idx_first, struct counters *counters) {
        struct why failure;

        job_failure(batch->stream->job, &failure);
        if (!failure.text[0])
                why_set(&failure, 0, "the rank went on elsewhere before this batch was complete");
        batch_failed(batch, idx_first, &failure);
        samples_done(batch, batch->n_samples - idx_first, counters);
}

void batch_fail_whole(struct batch *batch, const struct why *why, struct counters *counters) {
        batch_failed(batch, 0, why);
        samples_done(batch, batch->n_samples, counters);
}

bool batch_is_wanted(const struct batch *batch) {
        const struct stream *stream = batch->stream;

        return !atomic_load_explicit(&stream->removed, memory_order_relaxed) &&
               atomic_load_explicit(&stream->number, memory_order_relaxed) == batch->number;
}

int batch_agree_shape(struct batch *batch, uint32_t height, uint32_t width, struct why *why) {
        uint64_t mine = (uint64_t)height << 32 | width, theirs = 0;

        if (atomic_compare_exchange_strong_explicit(&batch->shape, &theirs, mine, memory_order_relaxed,
                                                    memory_order_relaxed) ||
            theirs == mine)
                return 0;
        return why_set(why, -EMEDIUMTYPE,
                       "is %u x %u pixels after the pipeline, another sample of its batch is %u x %u; use "
                       "batch_size 1, or a pipeline that gives one size",
                       width, height, (uint32_t)theirs, (uint32_t)(theirs >> 32));
}

void batch_forget_shape(struct batch *batch) {
        if (batch->n_samples == 1)
                atomic_store_explicit(&batch->shape, 0, memory_order_relaxed);
}

int batch_place(struct batch *batch, uint32_t idx_sample, uint64_t n_bytes, uint64_t *ret_offset, struct why *why) {
        const struct collation *collation = &batch->stream->collation;
        uint64_t room = (n_bytes + DLP_TENSOR_ALIGN - 1) / DLP_TENSOR_ALIGN * DLP_TENSOR_ALIGN;
        uint64_t offset;

        /* A file whose length the index could not learn. Nobody may take more than the longest one, or who comes last
         * would be the one without room, and that is chance. */
        if (room > collation->sample_bytes)
                return why_set(why, -EFBIG, "is %llu bytes, the largest that the index knows is %llu",
                               (unsigned long long)n_bytes,
                               (unsigned long long)index_max_length(dataset_index(batch->stream->dataset->dataset)));
        offset = atomic_fetch_add_explicit(&batch->n_used_bytes, room, memory_order_relaxed);
        assert(offset + room <= collation->slot_bytes); /* each sample is placed once: nothing fails after this */
        batch->slot->places[idx_sample] = (struct dlp_place){ .offset = offset, .n_bytes = n_bytes };
        *ret_offset = offset;
        return 0;
}

/* Keeps the text of a substitution, as long as there is room for it. */
static int32_t keep_error(struct batch *batch, const struct why *reason) {
        const struct dlp_control *control = batch->stream->ring->control;
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
        struct stream *stream = batch->stream;
        int64_t *labels = (int64_t *)(batch->slot->base + stream->collation.labels_offset);
        const struct dlp_columns *columns = &batch->slot->columns;

        labels[idx_sample] = index_label(dataset_index(stream->dataset->dataset), candidate);
        columns->indices[idx_sample] = (int64_t)index;
        columns->substitutes[idx_sample] = -1;
        columns->idx_errors[idx_sample] = -1;
        if (reason->text[0]) {
                columns->substitutes[idx_sample] = (int64_t)candidate;
                columns->idx_errors[idx_sample] = keep_error(batch, reason);
                atomic_fetch_add_explicit(&stream->n_substituted, 1, memory_order_relaxed);
        }
}

void batch_took(struct batch *batch, uint64_t read_ns, uint64_t queued_ns, uint64_t decode_ns) {
        atomic_fetch_add_explicit(&batch->read_ns, read_ns, memory_order_relaxed);
        atomic_fetch_add_explicit(&batch->queued_ns, queued_ns, memory_order_relaxed);
        atomic_fetch_add_explicit(&batch->decode_ns, decode_ns, memory_order_relaxed);
}

void batch_failed(struct batch *batch, uint32_t idx_sample, const struct why *why) {
        pthread_mutex_lock(&batch->lock);
        if (!batch->failed || idx_sample < batch->idx_failed) {
                batch->failed = true;
                batch->idx_failed = idx_sample;
                batch->failure = *why;
        }
        pthread_mutex_unlock(&batch->lock);
}
