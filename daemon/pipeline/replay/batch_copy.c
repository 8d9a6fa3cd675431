#include "daemon/pipeline/replay/batch_copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- what a batch consists of ---------------------------------------------------------------------------------- */

/* One walk over all pieces of a batch serves counting, copying out and copying in. `at` runs through the copy. */
struct copy_walk {
        enum {
                WALK_COUNTS,
                WALK_TAKES,
                WALK_PUTS,
        } does;
        uint8_t *at;
        uint64_t n_bytes;
};

static void piece(struct copy_walk *walk, void *in_slot, uint64_t n_bytes) {
        walk->n_bytes += n_bytes;
        if (walk->does == WALK_COUNTS || n_bytes == 0)
                return;
        if (walk->does == WALK_TAKES)
                memcpy(walk->at, in_slot, n_bytes);
        else
                memcpy(in_slot, walk->at, n_bytes);
        walk->at += n_bytes;
}

/* From the first byte of a tensor's first element to the last byte of its last one. */
static uint64_t batch_copy_span_of(const struct dlp_tensor_record *tensor) {
        uint64_t span = dlp_dtype_bytes(tensor->dtype);

        for (uint32_t i = 0; i < tensor->n_dims; i++) {
                if (tensor->shape[i] <= 0)
                        return 0;
                span += (uint64_t)(tensor->shape[i] - 1) * (uint64_t)tensor->strides[i];
        }
        return span;
}

/* The arrays of places must be known before this: where samples are is in them. */
static void walk_tensor(struct copy_walk *walk, const struct ring *ring, const struct slot *slot,
                        const struct dlp_slot_record *record, const struct dlp_tensor_record *tensor) {
        const struct dlp_place *places;

        if (tensor->layout != DLP_RAGGED) {
                piece(walk, slot->base + tensor->offset, batch_copy_span_of(tensor));
                return;
        }
        places = dlp_places(ring->control, slot->idx, tensor->idx_places);
        for (uint32_t i = 0; i < record->n_samples; i++)
                if (places[i].offset != DLP_PLACE_ABSENT)
                        piece(walk, slot->base + places[i].offset, places[i].n_bytes);
}

static void walk_batch(struct copy_walk *walk, const struct ring *ring, const struct slot *slot,
                       const struct dlp_slot_record *record) {
        const struct dlp_control *control = ring->control;
        uint32_t n_errors = record->n_errors < DLP_SLOT_ERRORS_MAX ? record->n_errors : DLP_SLOT_ERRORS_MAX;

        piece(walk, slot->columns.indices, record->n_samples * sizeof(int64_t));
        piece(walk, slot->columns.substitutes, record->n_samples * sizeof(int64_t));
        piece(walk, slot->columns.idx_errors, record->n_samples * sizeof(int32_t));
        for (uint32_t i = 0; i < n_errors; i++)
                piece(walk, dlp_error_text(control, slot->idx, i), DLP_SLOT_ERROR_BYTES);
        for (uint32_t i = 0; i < control->n_ragged; i++)
                piece(walk, dlp_places(control, slot->idx, i), record->n_samples * sizeof(struct dlp_place));
        for (uint32_t i = 0; i < record->n_tensors; i++)
                walk_tensor(walk, ring, slot, record, &record->tensors[i]);
}

/* ---- keeping --------------------------------------------------------------------------------------------------- */

int batch_copy_take(struct batch_copy *kept, const struct ring *ring, const struct slot *slot, struct budget *budget) {
        struct copy_walk walk = { .does = WALK_COUNTS };
        uint64_t n_bytes;
        struct why why;
        int r;

        *kept = (struct batch_copy){ 0 };
        if (slot->record->n_samples == 0)
                return 0;
        walk_batch(&walk, ring, slot, slot->record);
        n_bytes = walk.n_bytes + sizeof(*kept->record);
        r = budget_reserve(budget, n_bytes, "a batch that is to be served again", &why);
        if (r < 0)
                return r;
        kept->n_bytes = n_bytes;
        kept->record = aligned_alloc(_Alignof(struct dlp_slot_record), sizeof(*kept->record));
        kept->bytes = malloc(walk.n_bytes);
        if (!kept->record || !kept->bytes) {
                batch_copy_free(kept, budget);
                return -ENOMEM;
        }
        *kept->record = *slot->record;
        walk = (struct copy_walk){ .does = WALK_TAKES, .at = kept->bytes };
        walk_batch(&walk, ring, slot, slot->record);
        return 0;
}

void batch_copy_put(const struct batch_copy *kept, const struct ring *ring, const struct slot *slot) {
        const struct dlp_slot_record *from = kept->record;
        struct dlp_slot_record *record = slot->record;
        struct copy_walk walk = { .does = WALK_PUTS, .at = kept->bytes };

        record->n_samples = from->n_samples;
        record->n_planned = from->n_planned;
        record->n_errors = from->n_errors;
        record->n_skipped = from->n_skipped;
        record->n_tensors = from->n_tensors;
        memcpy(record->tensors, from->tensors, sizeof(record->tensors));
        walk_batch(&walk, ring, slot, record);
}

void batch_copy_free(struct batch_copy *kept, struct budget *budget) {
        free(kept->record);
        free(kept->bytes);
        budget_release(budget, kept->n_bytes);
        *kept = (struct batch_copy){ 0 };
}
