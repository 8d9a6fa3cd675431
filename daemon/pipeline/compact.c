#include "daemon/pipeline/compact.h"

#include <string.h>

#define LEFT_OUT (-1) /* in place of an index, until the gaps are closed */

void batch_skip(struct batch *batch, uint32_t idx_sample) {
        batch->slot->columns.indices[idx_sample] = LEFT_OUT;
        atomic_fetch_add_explicit(&batch->n_skipped, 1, memory_order_relaxed);
        atomic_fetch_add_explicit(&batch->stream->counters.n_skipped, 1, memory_order_relaxed);
}

void batch_compact(struct batch *batch) {
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
