/* collate/padding.h: samples of a batch made equally long.
 *
 * How long a batch becomes is known when its last sample is there. Until then each sample is at the beginning of a
 * place that is as long as the longest sample may be. Then
 *
 *      values     are moved together, so that their tensor has no gaps: a copy of what is real, within the cache for
 *                 tokens. With to=N each sample is where it stays from the start
 *      pictures   stay: rows and samples are as far apart as those of the largest picture that may come, which the
 *                 tensor's strides say. No pixel is moved
 *      features   of sound, whose last dimension is padded, stay likewise
 *
 * and what the others lack is filled. Of each field the record has the tensor, FIELD_mask (bool: true is real, as in
 * Hugging Face's attention_mask and pixel_mask) and, if they are asked for, FIELD_labels (int64, LABEL_IGNORED where
 * nothing is real). At least one element of a batch is always there, also if all its samples are empty. */
#pragma once

#include "daemon/collate/collate_layout.h"

/* ---- when a rank attaches -------------------------------------------------------------------------------------- */

/* Is the longest sample unknown, so that the field gets a share of memory_limit? */
bool padding_takes_share(const struct field_form *form);

/* The bits of an element that holds the value. */
uint64_t padding_pattern(enum dlp_dtype dtype, double value);

/* Tensors that come with the field. */
unsigned padding_n_added(const struct padding_terms *terms);

/* Sets field->padded and the sample's bytes. If the field takes a share, field->sample_bytes is that share. */
void padding_plan(struct field_layout *field);

/* Places mask and labels from `offset` on, for a batch of this size. Returns where they end. */
uint64_t padding_place(struct field_layout *field, uint32_t batch_size, uint64_t offset);

/* ---- a batch --------------------------------------------------------------------------------------------------- */

/* Does a sample of this shape fit? Cuts the shape if the field truncates. -EFBIG. */
int padding_fit(const struct field_layout *field, int64_t *shape);

/* Why it does not fit: -EFBIG with both numbers. */
int padding_refuse(const struct field_layout *field, const int64_t *shape, struct why *why);

/* Where an element of a sample's first row is written, `extent` being its size. */
uint8_t *padding_at(const struct field_layout *field, uint8_t *slot, uint32_t idx_sample,
                    const struct dlp_extent *extent);

/* The same of the labels that are written with it: PADDING_LABELS_WRITTEN. */
int64_t *padding_labels_at(const struct field_layout *field, uint8_t *slot, uint32_t idx_sample,
                           const struct dlp_extent *extent);

/* Bytes from row to row of a picture, and from plane to plane (from row to row of features). 0: they follow one
 * another. */
uint64_t padding_row_stride(const struct field_layout *field);
uint64_t padding_plane_stride(const struct field_layout *field);

/* Moves what is real of sample `from` to the place of sample `to` < `from`. */
void padding_move(const struct field_layout *field, uint8_t *slot, const struct dlp_extent *extents, uint32_t from,
                  uint32_t to);

/* Completes a batch of n_samples >= 1, whose extents are known, and describes it in the tensors from `tensors` on. */
void padding_finish(const struct field_layout *field, uint8_t *slot, const struct dlp_extent *extents,
                    uint32_t n_samples, struct dlp_tensor_record *tensors);
