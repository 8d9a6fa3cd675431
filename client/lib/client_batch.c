/* A slot's record, as the caller sees it.
 *
 * Descriptions are pointers into the daemon's page: the daemon does not change them while the slot is held. Offsets and
 * sizes that are used to find bytes are checked against the slot first, so that a damaged page gives an error and not a
 * stray pointer. */

#include <errno.h>
#include <string.h>

#include "client/lib/loader.h"

/* The public constants have the same values as the contract's. */
_Static_assert((int)DLC_BYTES == (int)DLP_DTYPE_BYTES && (int)DLC_UINT8 == (int)DLP_DTYPE_UINT8, "dtype");
_Static_assert((int)DLC_INT32 == (int)DLP_DTYPE_INT32 && (int)DLC_INT64 == (int)DLP_DTYPE_INT64, "dtype");
_Static_assert((int)DLC_FLOAT16 == (int)DLP_DTYPE_FLOAT16 && (int)DLC_BFLOAT16 == (int)DLP_DTYPE_BFLOAT16, "dtype");
_Static_assert((int)DLC_FLOAT32 == (int)DLP_DTYPE_FLOAT32 && (int)DLC_FLOAT64 == (int)DLP_DTYPE_FLOAT64, "dtype");
_Static_assert((int)DLC_BOOL == (int)DLP_DTYPE_BOOL && (int)DLC_INT8 == (int)DLP_DTYPE_INT8, "dtype");
_Static_assert((int)DLC_INT16 == (int)DLP_DTYPE_INT16 && (int)DLC_UINT16 == (int)DLP_DTYPE_UINT16, "dtype");
_Static_assert((int)DLC_TEXT == (int)DLP_DTYPE_TEXT && (int)DLC_TEXTS == (int)DLP_DTYPE_TEXTS, "dtype");
_Static_assert((int)DLC_UINT32 == (int)DLP_DTYPE_UINT32 && (int)DLC_UINT64 == (int)DLP_DTYPE_UINT64, "dtype");
_Static_assert(DLC_ABSENT == DLP_PLACE_ABSENT, "absent fields are handed out as they are");
_Static_assert(sizeof(struct dlc_place) == sizeof(struct dlp_place), "places are handed out as they are");
_Static_assert(offsetof(struct dlc_place, n_bytes) == offsetof(struct dlp_place, n_bytes), "the same");
_Static_assert(sizeof(struct dlc_extent) == sizeof(struct dlp_extent), "extents are handed out as they are");

/* Do all elements of a dense tensor lie within `room` bytes? */
static bool dense_fits(const struct dlp_tensor_record *record, uint64_t room) {
        uint64_t last = 0, end;

        for (uint32_t i = 0; i < record->n_dims; i++) {
                uint64_t step;

                if (record->shape[i] < 1 || record->strides[i] < 0 ||
                    __builtin_mul_overflow((uint64_t)record->shape[i] - 1, (uint64_t)record->strides[i], &step) ||
                    __builtin_add_overflow(last, step, &last))
                        return false;
        }
        return !__builtin_add_overflow(last, dlp_dtype_bytes(record->dtype), &end) && end <= room;
}

/* The bytes of a ragged sample, of a row if its first dimension varies; 0 if the record makes no sense. */
static uint64_t ragged_unit(const struct dlp_tensor_record *record, bool *ret_varies) {
        uint64_t n_bytes = dlp_dtype_bytes(record->dtype);

        *ret_varies = record->n_dims > 1 && record->shape[1] == -1;
        for (uint32_t i = record->n_dims; i > 1; i--) {
                if ((uint64_t)record->strides[i - 1] != n_bytes)
                        return 0;
                if (i > 2 || !*ret_varies)
                        if (record->shape[i - 1] < 1 ||
                            __builtin_mul_overflow(n_bytes, (uint64_t)record->shape[i - 1], &n_bytes))
                                return 0;
        }
        return n_bytes;
}

static bool ragged_fits(const struct dlp_tensor_record *record, const struct dlp_place *places, uint32_t n_samples,
                        uint64_t slot_bytes) {
        bool varies;
        uint64_t unit = ragged_unit(record, &varies);

        if (!places || unit == 0)
                return false;
        for (uint32_t i = 0; i < n_samples; i++) {
                if (places[i].offset == DLP_PLACE_ABSENT && places[i].n_bytes == 0)
                        continue;
                if (places[i].offset > slot_bytes || places[i].n_bytes > slot_bytes - places[i].offset ||
                    (varies ? places[i].n_bytes % unit != 0 : places[i].n_bytes != unit))
                        return false;
        }
        return true;
}

/* Does no sample have more elements than the tensor? */
static bool padding_fits(const struct dlp_tensor_record *record, const struct dlp_extent *extents, uint32_t n_samples) {
        if (!extents || record->n_padded_dims < 1 || record->n_padded_dims > DLP_PADDED_DIMS_MAX ||
            record->padded_dim < 1 || record->padded_dim + record->n_padded_dims > record->n_dims ||
            record->pads_left > 1)
                return false;
        for (uint32_t i = 0; i < n_samples; i++)
                for (uint32_t k = 0; k < record->n_padded_dims && extents[i].n[0] != DLP_PLACE_ABSENT; k++)
                        if (extents[i].n[k] > (uint64_t)record->shape[record->padded_dim + k])
                                return false;
        return true;
}

static bool fill_extents(const struct dli_ring *ring, uint32_t idx_slot, const struct dlp_slot_record *slot,
                         const struct dlp_tensor_record *record, struct dlc_tensor *tensor) {
        const void *extents = dlp_places(ring->control, idx_slot, record->idx_places);

        tensor->extents = extents;
        tensor->padded_dim = record->padded_dim;
        tensor->n_padded_dims = record->n_padded_dims;
        tensor->pads_left = record->pads_left;
        return padding_fits(record, extents, slot->n_samples);
}

/* Does it describe the whole batch, so that its first dimension does not count samples? */
static bool client_batch_is_whole(const struct dlp_tensor_record *record) {
        return record->layout == DLP_WHOLE || record->layout == DLP_PACKED;
}

/* Do the pieces of all samples lie within the rows, which have no gaps? */
static bool pieces_fit(const struct dlp_tensor_record *record, const struct dlp_place *places, uint32_t n_samples) {
        uint64_t size = dlp_dtype_bytes(record->dtype);
        uint64_t room = (uint64_t)record->shape[0] * (uint64_t)record->strides[0];

        if (!places || record->n_dims != 2 || (uint64_t)record->strides[1] != size)
                return false;
        for (uint32_t i = 0; i < n_samples; i++)
                if (places[i].offset > room || places[i].n_bytes > room - places[i].offset ||
                    places[i].n_bytes % size != 0)
                        return false;
        return true;
}

static bool fill_tensor(const struct dli_ring *ring, uint32_t idx_slot, const struct dlp_slot_record *slot,
                        const struct dlp_tensor_record *record, struct dlc_tensor *tensor) {
        uint64_t slot_bytes = ring->control->slot_bytes;
        uint8_t *base = (uint8_t *)ring->page + dlp_slot_offset(ring->control, idx_slot);

        if (record->n_dims < 1 || record->n_dims > DLP_DIMS_MAX || record->dtype >= DLP_N_DTYPES ||
            record->name[DLP_TENSOR_NAME_MAX - 1] != '\0' ||
            (!client_batch_is_whole(record) && record->shape[0] != slot->n_samples))
                return false;

        tensor->name = record->name;
        tensor->dtype = record->dtype;
        tensor->n_dims = record->n_dims;
        tensor->shape = record->shape;
        tensor->strides = record->strides;
        tensor->extents = NULL;
        tensor->padded_dim = tensor->n_padded_dims = tensor->pads_left = 0;
        tensor->is_whole = client_batch_is_whole(record);

        if (record->layout == DLP_RAGGED) {
                const struct dlp_place *places = dlp_places(ring->control, idx_slot, record->idx_places);

                tensor->data = base; /* places are offsets from the slot's beginning */
                tensor->places = (const struct dlc_place *)places;
                return ragged_fits(record, places, slot->n_samples, slot_bytes);
        }
        if ((record->layout != DLP_DENSE && record->layout != DLP_PADDED && !client_batch_is_whole(record)) ||
            record->offset > slot_bytes)
                return false;
        tensor->data = base + record->offset;
        tensor->places = NULL;
        if (!dense_fits(record, slot_bytes - record->offset))
                return false;
        if (record->layout == DLP_PACKED) {
                const struct dlp_place *places = dlp_places(ring->control, idx_slot, record->idx_places);

                tensor->places = (const struct dlc_place *)places;
                return pieces_fit(record, places, slot->n_samples);
        }
        return record->layout != DLP_PADDED || fill_extents(ring, idx_slot, slot, record, tensor);
}

/* The samples that lie in the slot: those that the order planned, or their substitutes. */
static const int64_t *served(const struct dli_ring *ring, uint32_t idx_slot, const struct dlp_columns *columns,
                             const struct dlp_slot_record *record) {
        int64_t *column = ring->served + (size_t)idx_slot * ring->control->batch_size;

        if (record->n_errors == 0)
                return columns->indices;
        for (uint32_t i = 0; i < record->n_samples; i++)
                column[i] = columns->substitutes[i] >= 0 ? columns->substitutes[i] : columns->indices[i];
        return column;
}

int dli_batch_fill(struct dlc_loader *loader, struct dli_ring *ring, uint32_t idx_slot,
                   const struct dlp_slot_record *record) {
        struct dli_lease *lease = &ring->leases[idx_slot];
        uint32_t batch_size = ring->control->batch_size;
        struct dlp_columns columns;

        if (record->n_samples < 1 || record->n_samples > batch_size ||
            record->n_skipped > batch_size - record->n_samples || record->n_tensors > DLP_TENSORS_MAX ||
            record->n_errors > record->n_samples)
                return -EPROTO;
        for (uint32_t i = 0; i < record->n_tensors; i++)
                if (!fill_tensor(ring, idx_slot, record, &record->tensors[i], &lease->tensors[i]))
                        return -EPROTO;
        /* Columns are handed out without a copy: the daemon's page is read-only here, and the slot is ours. */
        columns = dlp_columns(ring->control, idx_slot);
        lease->batch.indices = columns.indices;
        lease->batch.substitutes = record->n_errors > 0 ? columns.substitutes : NULL;
        lease->batch.served = served(ring, idx_slot, &columns, record);

        lease->batch.epoch = record->epoch;
        lease->batch.step = record->step;
        lease->batch.n_samples = record->n_samples;
        lease->batch.n_tensors = record->n_tensors;
        lease->batch.tensors = lease->tensors;
        lease->batch.n_substituted = record->n_errors;
        lease->batch.idx_slot = idx_slot;
        lease->batch.sequence = ring->n_before + record->sequence;
        lease->batch.planned_ns = record->planned_ns;
        lease->batch.ready_ns = record->ready_ns;
        lease->batch.n_skipped = record->n_skipped;
        lease->position = dlp_epoch_plan_position_after(&loader->plan, record->step);
        lease->batch.is_replay = record->status == DLP_BATCH_REPLAY;
        lease->batch.position = lease->batch.is_replay ? lease->position
                                                       : dlp_epoch_plan_position_after(&loader->plan, record->step + 1);
        return 0;
}
