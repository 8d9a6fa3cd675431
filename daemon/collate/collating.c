#include "daemon/collate/collating.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/collate/packing.h"
#include "daemon/collate/padding.h"

void collating_init(struct collating *collating, const struct layout *layout, uint8_t *slot, struct dlp_place *places) {
        collating->layout = layout;
        collating->slot = slot;
        collating->places = places;
        pthread_mutex_init(&collating->lock, NULL);
        collating_begin(collating);
}

void collating_fini(struct collating *collating) {
        pthread_mutex_destroy(&collating->lock);
}

static struct dlp_place *places_of(const struct collating *collating, const struct field_layout *field) {
        return collating->places + (size_t)field->idx_places * collating->layout->batch_size;
}

static struct dlp_extent *extents_of(const struct collating *collating, const struct field_layout *field) {
        return (struct dlp_extent *)(void *)places_of(collating, field);
}

void collating_begin(struct collating *collating) {
        for (uint32_t i = 0; i < collating->layout->n_fields; i++) {
                const struct field_layout *field = &collating->layout->fields[i];

                if (field->form.how == COLLATE_PADDED) /* samples of a batch that nobody wants are never placed */
                        memset(extents_of(collating, field), 0,
                               collating->layout->batch_size * sizeof(struct dlp_extent));
                collating->is_said[i] = false;
                memset(collating->shapes[i], 0, sizeof(collating->shapes[i])); /* a batch may end without a shape */
                atomic_store_explicit(&collating->n_used_bytes[i], 0, memory_order_relaxed);
        }
}

/* ---- places ---------------------------------------------------------------------------------------------------- */

/* The first sample decides the shape. */
static bool collating_agree(struct collating *collating, uint32_t idx_field, const int64_t *shape, int64_t *ret_shape) {
        size_t n_bytes = collating->layout->fields[idx_field].form.n_dims * sizeof(*shape);
        bool is_same = true;

        pthread_mutex_lock(&collating->lock);
        if (!collating->is_said[idx_field]) {
                memcpy(collating->shapes[idx_field], shape, n_bytes);
                collating->is_said[idx_field] = true;
        } else if (memcmp(collating->shapes[idx_field], shape, n_bytes) != 0) {
                memcpy(ret_shape, collating->shapes[idx_field], n_bytes);
                is_same = false;
        }
        pthread_mutex_unlock(&collating->lock);
        return is_same;
}

/* A ragged sample's number of rows is its own. */
static bool agree_on_rows(struct collating *collating, uint32_t idx_field, const int64_t *shape, int64_t *ret_shape) {
        int64_t row[FIELD_DIMS_MAX];

        memcpy(row, shape, collating->layout->fields[idx_field].form.n_dims * sizeof(*row));
        row[0] = -1;
        return collating_agree(collating, idx_field, row, ret_shape);
}

static uint8_t *place_ragged(struct collating *collating, uint32_t idx_field, uint32_t idx_sample, uint64_t n_bytes) {
        const struct field_layout *field = &collating->layout->fields[idx_field];
        uint64_t room = layout_align(n_bytes);
        uint64_t used = field->is_spread ? field->sample_bytes * idx_sample
                                         : atomic_fetch_add_explicit(&collating->n_used_bytes[idx_field], room,
                                                                     memory_order_relaxed);

        assert(used + room <= field->room_bytes); /* each sample is placed once */
        places_of(collating, field)[idx_sample] = (struct dlp_place){ .offset = field->offset + used,
                                                                      .n_bytes = n_bytes };
        return collating->slot + field->offset + used;
}

static int place_padded(struct collating *collating, const struct field_layout *field, uint32_t idx_sample,
                        const int64_t *shape, uint8_t **ret_bytes) {
        struct dlp_extent extent = { { 1, 1 } };

        for (uint32_t k = 0; k < field->form.n_padded_dims; k++) {
                extent.n[k] = (uint64_t)shape[field->form.padded_dim + k];
                if (extent.n[k] > field->padded.limits[k])
                        return -EFBIG;
        }
        extents_of(collating, field)[idx_sample] = extent;
        *ret_bytes = padding_at(field, collating->slot, idx_sample, &extent);
        return 0;
}

/* Its place says where it is from the tensor's first element. */
static uint8_t *place_packed(struct collating *collating, const struct field_layout *field, uint32_t idx_sample) {
        const struct pack_place *place = &collating->packs[idx_sample];
        uint8_t *bytes = packing_at(field, collating->slot, place);

        places_of(collating, field)[idx_sample] = (struct dlp_place){
                .offset = (uint64_t)(bytes - collating->slot) - field->offset,
                .n_bytes = place->n_elements * dlp_dtype_bytes(field->form.dtype),
        };
        return bytes;
}

int collating_place(struct collating *collating, uint32_t idx_field, uint32_t idx_sample, const int64_t *shape,
                    uint64_t n_bytes, uint8_t **ret_bytes, int64_t ret_shape[FIELD_DIMS_MAX]) {
        const struct field_layout *field = &collating->layout->fields[idx_field];

        if (field->form.how == COLLATE_PADDED)
                return place_padded(collating, field, idx_sample, shape, ret_bytes);
        if (field->form.how == COLLATE_PACKED) {
                *ret_bytes = place_packed(collating, field, idx_sample);
                return 0;
        }

        /* In a ragged field, too, no sample may take more than the longest one. Otherwise the last sample would find no
         * room, and which one is last is chance. */
        if (n_bytes > field->sample_bytes)
                return -EFBIG;
        if (field->form.how == COLLATE_RAGGED) {
                if (field->varies && !agree_on_rows(collating, idx_field, shape, ret_shape))
                        return COLLATE_DIFFERS;
                *ret_bytes = place_ragged(collating, idx_field, idx_sample, n_bytes);
                return 0;
        }
        if (field->varies && !collating_agree(collating, idx_field, shape, ret_shape))
                return COLLATE_DIFFERS;
        *ret_bytes = collating->slot + field->offset + n_bytes * idx_sample;
        return 0;
}

void collating_hide(struct collating *collating, uint32_t idx_field, uint32_t idx_sample, uint8_t *tokens,
                    uint64_t seed, uint32_t epoch, uint64_t sample) {
        const struct field_layout *field = &collating->layout->fields[idx_field];
        const struct dlp_extent *extent;

        if (field->form.how != COLLATE_PADDED || field->form.pad.labels != PADDING_LABELS_WRITTEN)
                return;
        extent = &extents_of(collating, field)[idx_sample];
        mlm_hide(&field->form.mlm, seed, epoch, sample, field->form.dtype, tokens, extent->n[0],
                 padding_labels_at(field, collating->slot, idx_sample, extent));
}

void collating_leave_out(struct collating *collating, uint32_t idx_field, uint32_t idx_sample) {
        places_of(collating,
                  &collating->layout->fields[idx_field])[idx_sample] = (struct dlp_place){ .offset = DLP_PLACE_ABSENT };
}

void collating_forget(struct collating *collating) {
        pthread_mutex_lock(&collating->lock);
        for (uint32_t i = 0; i < collating->layout->n_fields; i++)
                collating->is_said[i] = false;
        pthread_mutex_unlock(&collating->lock);
}

/* ---- the record ------------------------------------------------------------------------------------------------ */

/* Without gaps, except for the samples' tails, in the order of its dimensions: what frameworks call contiguous. */
static void describe_stack(struct dlp_tensor_record *tensor, const struct field_form *form, const int64_t *shape) {
        tensor->layout = DLP_DENSE;
        tensor->n_dims = form->n_dims + 1;
        for (uint32_t i = 0; i < form->n_dims; i++)
                tensor->shape[i + 1] = shape[i];
        tensor->strides[form->n_dims] = (int64_t)dlp_dtype_bytes(form->dtype);
        for (uint32_t i = form->n_dims; i > 0; i--)
                tensor->strides[i - 1] = tensor->strides[i] * tensor->shape[i];
        tensor->strides[0] += (int64_t)form->tail_bytes;
}

/* The strides are those within a sample. If no sample of the batch has the field, its rows are of any size: of 1. */
static void describe_ragged(struct dlp_tensor_record *tensor, const struct field_layout *field, const int64_t *said) {
        const struct field_form *form = &field->form;

        tensor->layout = DLP_RAGGED;
        tensor->idx_places = field->idx_places;
        tensor->n_dims = form->n_dims + 1;
        for (uint32_t i = 0; i < form->n_dims; i++)
                tensor->shape[i + 1] = i == 0 || form->shape[i] >= 0 ? form->shape[i]
                                       : said && said[i] > 0         ? said[i]
                                                                     : 1;
        for (uint32_t i = form->n_dims; i > 0; i--)
                tensor->strides[i] = i == form->n_dims ? (int64_t)dlp_dtype_bytes(form->dtype)
                                                       : tensor->strides[i + 1] * tensor->shape[i + 1];
}

void collating_describe(const struct collating *collating, uint32_t n_samples, struct dlp_slot_record *record) {
        const struct layout *layout = collating->layout;

        record->n_tensors = layout->n_tensors;
        for (uint32_t i = 0; i < layout->n_fields; i++) {
                const struct field_layout *field = &layout->fields[i];
                struct dlp_tensor_record *tensor = &record->tensors[field->idx_tensor];

                memset(tensor, 0, sizeof(*tensor));
                snprintf(tensor->name, sizeof(tensor->name), "%s", field->form.name);
                tensor->dtype = field->form.dtype;
                tensor->offset = field->offset;
                tensor->shape[0] = n_samples;
                tensor->layout = DLP_WHOLE; /* packed: until packing_finish() describes it */
                if (field->form.how == COLLATE_RAGGED)
                        describe_ragged(tensor, field, collating->is_said[i] ? collating->shapes[i] : NULL);
                else if (field->form.how == COLLATE_STACK) /* a padded one is described when it is padded */
                        describe_stack(tensor, &field->form, field->varies ? collating->shapes[i] : field->form.shape);
        }
}

void collating_move(const struct collating *collating, const struct dlp_slot_record *record, uint32_t from,
                    uint32_t to) {
        for (uint32_t i = 0; i < collating->layout->n_fields; i++) {
                const struct field_layout *field = &collating->layout->fields[i];
                uint64_t n_bytes = (uint64_t)record->tensors[field->idx_tensor].strides[0];
                uint8_t *rows = collating->slot + field->offset;

                if (field->form.how == COLLATE_PADDED)
                        padding_move(field, collating->slot, extents_of(collating, field), from, to);
                if (field->form.is_whole && field->form.input.n_bytes > 0)
                        memcpy(collating->slot + field->input_offset + to * field->input_bytes,
                               collating->slot + field->input_offset + from * field->input_bytes, field->input_bytes);
                if (field->form.how == COLLATE_STACK)
                        memcpy(rows + to * n_bytes, rows + from * n_bytes, n_bytes);
                else
                        places_of(collating, field)[to] = places_of(collating, field)[from];
        }
        if (collating->packs) /* its elements stay where they are */
                collating->packs[to] = collating->packs[from];
}

/* Each sample has a place of its own, and they are in the sequence of the batch, so that none lands on one that is
 * still to be moved. */
static void join_ragged(const struct collating *collating, const struct field_layout *field, uint32_t n_samples) {
        struct dlp_place *places = places_of(collating, field);
        uint64_t offset = field->offset;

        for (uint32_t i = 0; i < n_samples; i++) {
                if (places[i].offset == DLP_PLACE_ABSENT)
                        continue;
                if (places[i].n_bytes > 0)
                        memmove(collating->slot + offset, collating->slot + places[i].offset, places[i].n_bytes);
                places[i].offset = offset;
                offset += places[i].n_bytes;
        }
}

uint64_t collating_n_elements(const struct collating *collating, uint32_t idx_field,
                              const struct dlp_slot_record *record) {
        const struct field_layout *field = &collating->layout->fields[idx_field];
        uint64_t n_element = dlp_dtype_bytes(field->form.dtype), n = 0;

        if (record->n_tensors == 0)
                return 0;
        if (field->form.how == COLLATE_STACK)
                return record->n_samples * (uint64_t)record->tensors[field->idx_tensor].shape[1];
        for (uint32_t i = 0; i < record->n_samples; i++) {
                if (field->form.how == COLLATE_PACKED)
                        n += collating->packs[i].n_elements;
                else if (places_of(collating, field)[i].offset == DLP_PLACE_ABSENT)
                        continue;
                else if (field->form.how == COLLATE_PADDED)
                        n += extents_of(collating, field)[i].n[0];
                else
                        n += places_of(collating, field)[i].n_bytes / n_element;
        }
        return n;
}

void collating_finish(const struct collating *collating, struct dlp_slot_record *record) {
        for (uint32_t i = 0; i < collating->layout->n_fields && record->n_tensors > 0; i++) {
                const struct field_layout *field = &collating->layout->fields[i];

                if (field->form.how == COLLATE_PADDED)
                        padding_finish(field, collating->slot, extents_of(collating, field), record->n_samples,
                                       &record->tensors[field->idx_tensor]);
                else if (field->form.how == COLLATE_PACKED)
                        packing_finish(field, collating->slot, collating->packs, record->n_samples, collating->n_rows,
                                       &record->tensors[field->idx_tensor]);
                else if (field->form.is_joined)
                        join_ragged(collating, field, record->n_samples);
        }
}
