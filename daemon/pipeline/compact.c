#include "daemon/pipeline/compact.h"

#include <string.h>

#define LEFT_OUT (-1) /* in place of an index, until the gaps are closed */

void batch_skip(struct batch *batch, uint32_t idx_sample) {
        batch->slot->columns.indices[idx_sample] = LEFT_OUT;
        atomic_fetch_add_explicit(&batch->n_skipped, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&batch->stream->n_skipped, 1, memory_order_relaxed);
}

/* The columns, and labels as the index says them. Rows of pixels are the one thing that is read back from the slot, and
 * they are moved without being looked at: a client that scribbles there spoils its own picture. */
static void move_sample(struct batch *batch, uint32_t from, uint32_t to) {
        const struct stream *stream = batch->stream;
        const struct collation *collation = &stream->collation;
        const struct dlp_columns *columns = &batch->slot->columns;
        int64_t *labels = (int64_t *)(batch->slot->base + collation->labels_offset);
        uint8_t *images = batch->slot->base + collation->images_offset;
        uint64_t row_bytes = (uint64_t)batch->slot->record->tensors[0].strides[0];

        columns->indices[to] = columns->indices[from];
        labels[to] = index_label(dataset_index(stream->dataset->dataset), (uint64_t)columns->indices[from]);
        if (collation->ragged)
                batch->slot->places[to] = batch->slot->places[from];
        else
                memcpy(images + to * row_bytes, images + from * row_bytes, row_bytes);
}

void batch_compact(struct batch *batch) {
        struct dlp_slot_record *record = batch->slot->record;
        const struct dlp_columns *columns = &batch->slot->columns;
        uint32_t n = 0;

        for (uint32_t i = 0; i < batch->n_samples; i++) {
                if (columns->indices[i] == LEFT_OUT)
                        continue;
                if (n < i)
                        move_sample(batch, i, n);
                columns->substitutes[n] = -1;
                columns->idx_errors[n] = -1;
                n++;
        }
        record->n_samples = n;
        record->n_skipped = batch->n_samples - n;
        for (uint32_t i = 0; i < record->n_tensors; i++)
                record->tensors[i].shape[0] = n;
        if (n == 0)
                record->n_tensors = 0; /* there is nothing to describe, not even a size */
}
