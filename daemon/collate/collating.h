/* collate/collating.h: collates one batch: where the fields of its samples go, and how the result is described.
 *
 * Workers ask for the place of a field of a sample and write there without asking each other. When the last one is
 * done, the slot's record is written: what is where, as proto/layout.h defines it. Then the gaps of samples that were
 * left out are closed: what the client gets depends only on which samples are damaged. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "daemon/collate/collate_layout.h"

struct pack_place;

/* Positive outcome of collating_place(). */
#define COLLATE_DIFFERS 1

struct collating {
        const struct layout *layout;
        uint8_t *slot;            /* its first byte */
        struct dlp_place *places; /* layout->n_ragged arrays of batch_size; NULL if nothing is ragged or padded */

        struct pack_place *packs; /* where the samples go that are packed; set for each batch. NULL: none are */
        uint32_t n_rows;          /* of a packed batch */

        pthread_mutex_t lock; /* guards what follows; a leaf */
        bool is_said[DLP_TENSORS_MAX];
        int64_t shapes[DLP_TENSORS_MAX][FIELD_DIMS_MAX]; /* of all samples, set by the first of them */

        _Alignas(64) _Atomic uint64_t
                n_used_bytes[DLP_TENSORS_MAX]; /* ragged: bytes of the room that samples have been given */
};

/* Once for a slot. The layout stays the caller's. */
void collating_init(struct collating *collating, const struct layout *layout, uint8_t *slot, struct dlp_place *places);
void collating_fini(struct collating *collating);

/* A new batch in the same slot. Nobody else may be at work on it. */
void collating_begin(struct collating *collating);

/* Where field `idx_field` of sample `idx_sample` (in the batch) goes: `n_bytes`, of `shape`. Returns 0; COLLATE_DIFFERS
 * if another sample of the batch has another shape, which is written to `ret_shape`; -EFBIG if a sample may not be so
 * large (layout->fields[idx_field].sample_bytes; of a padded field its limits, to which its shape was cut if it is to
 * be: padding_fit()). A ragged field of a sample is placed once, unless it is_spread: nothing may fail after it. Any
 * worker. */
int collating_place(struct collating *collating, uint32_t idx_field, uint32_t idx_sample, const int64_t *shape,
                    uint64_t n_bytes, uint8_t **ret_bytes, int64_t ret_shape[FIELD_DIMS_MAX]);

/* The same for a field whose shape never varies: it always has its place. */
static inline uint8_t *collating_row(const struct collating *collating, uint32_t idx_field, uint32_t idx_sample) {
        const struct field_layout *field = &collating->layout->fields[idx_field];

        return collating->slot + field->offset + field->sample_bytes * idx_sample;
}

/* A padded field of sample `idx_sample` has been written to `tokens`, its place. With `mlm` some of them are hidden,
 * and labels written; else nothing is done. `seed` is that of its part of the pipeline. Any worker. */
void collating_hide(struct collating *collating, uint32_t idx_field, uint32_t idx_sample, uint8_t *tokens,
                    uint64_t seed, uint32_t epoch, uint64_t sample);

/* A ragged or padded field that a sample does not have: its place says so. Any worker. */
void collating_leave_out(struct collating *collating, uint32_t idx_field, uint32_t idx_sample);

/* The sample that set the shape could not be served after all. Only for a batch of one sample: in a larger one others
 * may have used that shape.
 */
void collating_forget(struct collating *collating);

/* Writes the tensors of a whole batch of n_samples into the record. Thread: the one that completes the batch. */
void collating_describe(const struct collating *collating, uint32_t n_samples, struct dlp_slot_record *record);

/* Moves all fields of sample `from`, and what a function that gets the whole batch is given of them, to the place of
 * sample `to` < `from`. What lies in a slot is never looked at: a
 * client that writes there spoils its own batch. After collating_describe(), whose strides it uses. */
void collating_move(const struct collating *collating, const struct dlp_slot_record *record, uint32_t from,
                    uint32_t to);

/* How many elements of a field of one dimension the samples of a whole batch have, without padding. */
uint64_t collating_n_elements(const struct collating *collating, uint32_t idx_field,
                              const struct dlp_slot_record *record);

/* The batch has record->n_samples, and none of them moves any more: pads, and joins what is ragged. Last of all;
 * nothing to do if the record has no tensors. */
void collating_finish(const struct collating *collating, struct dlp_slot_record *record);
