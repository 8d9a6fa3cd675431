#include "daemon/collate/padding.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/base/half.h"
#include "daemon/collate/elements.h"

/* ---- when a rank attaches -------------------------------------------------------------------------------------- */

unsigned padding_n_added(const struct padding_terms *terms) {
        return 1 + (terms->labels != PADDING_LABELS_NONE);
}

bool padding_takes_share(const struct field_form *form) {
        return form->n_padded_dims == 1 && form->pad.to[0] == 0 && form->pad.most[0] == 0 &&
               form->shape[form->padded_dim] < 0 && (form->takes_share || form->max_bytes == UINT64_MAX);
}

uint64_t padding_pattern(enum dlp_dtype dtype, double value) {
        float single = (float)value;
        uint64_t pattern = 0;
        uint32_t bits;

        memcpy(&bits, &single, sizeof(bits));
        switch (dtype) {
        case DLP_DTYPE_FLOAT16:
                return half_from_float32(bits);
        case DLP_DTYPE_BFLOAT16:
                return bfloat16_from_float32(bits);
        case DLP_DTYPE_FLOAT32:
                return bits;
        case DLP_DTYPE_FLOAT64:
                memcpy(&pattern, &value, sizeof(pattern));
                return pattern;
        default: /* whole numbers within +-2^53: collation_pad.c has checked it */
                return (uint64_t)(int64_t)value;
        }
}

static uint64_t padding_round_up(uint64_t n, uint64_t multiple) {
        return (n + multiple - 1) / multiple * multiple;
}

/* The most elements that a sample may have in the k-th padded dimension; UINT64_MAX: its place's share decides. */
static uint64_t padding_limit_of(const struct field_form *form, uint64_t n_planes, uint64_t element_bytes, uint32_t k) {
        int64_t size = form->shape[form->padded_dim + k];
        uint64_t longest = UINT64_MAX;

        if (form->pad.to[k] > 0)
                return form->pad.to[k];
        if (size >= 0)
                longest = (uint64_t)size;
        else if (form->n_padded_dims > 1 && form->bounds[k] > 0)
                longest = form->bounds[k];
        else if (form->n_padded_dims == 1 && !form->takes_share && form->max_bytes != UINT64_MAX)
                longest = form->max_bytes / (n_planes * element_bytes);
        return form->pad.most[k] > 0 && form->pad.most[k] < longest ? form->pad.most[k] : longest;
}

void padding_plan(struct field_layout *field) {
        const struct field_form *form = &field->form;
        struct padded_layout *padded = &field->padded;
        uint32_t end = form->padded_dim + form->n_padded_dims;

        *padded = (struct padded_layout){ .pattern = padding_pattern(form->dtype, form->pad.value),
                                          .element_bytes = dlp_dtype_bytes(form->dtype),
                                          .n_planes = 1,
                                          .limits = { 1, 1 },
                                          .room = { 1, 1 } };
        for (uint32_t i = 0; i < form->padded_dim; i++)
                padded->n_planes *= (uint64_t)form->shape[i];
        for (uint32_t i = end; i < form->n_dims; i++)
                padded->element_bytes *= (uint64_t)form->shape[i];
        for (uint32_t k = 0; k < form->n_padded_dims; k++) {
                uint64_t limit = padding_limit_of(form, padded->n_planes, padded->element_bytes, k), share;

                if (limit == UINT64_MAX) { /* only of one dimension: padding_takes_share() */
                        share = field->sample_bytes / (padded->n_planes * padded->element_bytes);
                        limit = share < form->pad.multiple ? share : share / form->pad.multiple * form->pad.multiple;
                }
                padded->limits[k] = limit;
                padded->room[k] = padding_round_up(limit > 0 ? limit : 1, form->pad.multiple);
        }
        if (__builtin_mul_overflow(padded->room[0], padded->room[1], &field->sample_bytes) ||
            __builtin_mul_overflow(field->sample_bytes, padded->n_planes * padded->element_bytes, &field->sample_bytes))
                field->sample_bytes = UINT64_MAX;
}

uint64_t padding_place(struct field_layout *field, uint32_t batch_size, uint64_t offset) {
        struct padded_layout *padded = &field->padded;
        uint64_t n = padded->room[0] * padded->room[1] * batch_size;

        padded->mask_offset = offset;
        offset = layout_align(offset + n);
        if (field->form.pad.labels == PADDING_LABELS_NONE)
                return offset;
        padded->labels_offset = offset;
        return layout_align(offset + n * sizeof(int64_t));
}

/* ---- samples --------------------------------------------------------------------------------------------------- */

int padding_fit(const struct field_layout *field, int64_t *shape) {
        const struct field_form *form = &field->form;

        for (uint32_t k = 0; k < form->n_padded_dims; k++) {
                int64_t *size = &shape[form->padded_dim + k];

                if ((uint64_t)*size <= field->padded.limits[k])
                        continue;
                if (!form->pad.truncates)
                        return -EFBIG;
                *size = (int64_t)field->padded.limits[k];
        }
        return 0;
}

int padding_refuse(const struct field_layout *field, const int64_t *shape, struct why *why) {
        const struct field_form *form = &field->form;
        const uint64_t *limits = field->padded.limits;

        if (form->n_padded_dims > 1)
                return why_set(
                        why, -EFBIG,
                        "is %lld x %lld pixels (height x width) after the pipeline; pad has room for %llu x %llu: "
                        "raise its max or to, or make pictures smaller",
                        (long long)shape[form->padded_dim], (long long)shape[form->padded_dim + 1],
                        (unsigned long long)limits[0], (unsigned long long)limits[1]);
        return why_set(why, -EFBIG,
                       "has %lld elements; pad has room for %llu%s: raise its %s, or cut longer samples with "
                       "truncate=true",
                       (long long)shape[form->padded_dim], (unsigned long long)limits[0],
                       padding_takes_share(form) ? " (a share of memory_limit)" : "",
                       form->pad.to[0] > 0 ? "to" : "max");
}

/* Elements before the sample's first one, where it is first written. */
static uint64_t elements_before(const struct field_layout *field, const struct dlp_extent *extent) {
        bool is_final = field->form.pad.is_left && field->form.pad.to[0] > 0;

        return is_final && extent->n[0] != DLP_PLACE_ABSENT ? field->padded.room[0] - extent->n[0] : 0;
}

uint8_t *padding_at(const struct field_layout *field, uint8_t *slot, uint32_t idx_sample,
                    const struct dlp_extent *extent) {
        return slot + field->offset + field->sample_bytes * idx_sample +
               elements_before(field, extent) * field->padded.element_bytes;
}

int64_t *padding_labels_at(const struct field_layout *field, uint8_t *slot, uint32_t idx_sample,
                           const struct dlp_extent *extent) {
        int64_t *labels = (int64_t *)(void *)(slot + field->padded.labels_offset);

        return labels + field->padded.room[0] * idx_sample + elements_before(field, extent);
}

static bool is_absent(const struct dlp_extent *extent) {
        return extent->n[0] == DLP_PLACE_ABSENT;
}

/* The number of elements; 0 if it is absent. */
static uint64_t padding_length_of(const struct dlp_extent *extent, uint32_t k) {
        return is_absent(extent) ? 0 : extent->n[k];
}

static uint64_t padding_row_bytes(const struct padded_layout *padded) {
        return padded->room[1] * padded->element_bytes;
}

static uint64_t padding_plane_bytes(const struct padded_layout *padded) {
        return padded->room[0] * padding_row_bytes(padded);
}

uint64_t padding_row_stride(const struct field_layout *field) {
        return field->form.how == COLLATE_PADDED && field->form.n_padded_dims > 1 ? padding_row_bytes(&field->padded)
                                                                                  : 0;
}

uint64_t padding_plane_stride(const struct field_layout *field) {
        bool stays = field->form.n_padded_dims > 1 || field->form.padded_dim > 0;

        return field->form.how == COLLATE_PADDED && stays ? padding_plane_bytes(&field->padded) : 0;
}

void padding_move(const struct field_layout *field, uint8_t *slot, const struct dlp_extent *extents, uint32_t from,
                  uint32_t to) {
        const struct padded_layout *padded = &field->padded;
        uint64_t n_bytes = padding_length_of(&extents[from], 0) * padding_row_bytes(padded);
        const uint8_t *begin = padding_at(field, slot, from, &extents[from]);
        uint8_t *into = padding_at(field, slot, to, &extents[from]);

        for (uint64_t i = 0; i < padded->n_planes && n_bytes > 0; i++)
                memcpy(into + i * padding_plane_bytes(padded), begin + i * padding_plane_bytes(padded), n_bytes);
        if (field->form.pad.labels == PADDING_LABELS_WRITTEN)
                memcpy(padding_labels_at(field, slot, to, &extents[from]),
                       padding_labels_at(field, slot, from, &extents[from]),
                       padding_length_of(&extents[from], 0) * sizeof(int64_t));
}

/* ---- a whole batch --------------------------------------------------------------------------------------------- */

/* A batch that is being completed: its lengths. */
struct finishing {
        const struct field_layout *field;
        const struct padded_layout *padded;
        uint8_t *slot;
        const struct dlp_extent *extents;
        uint32_t n_samples;
        uint64_t lengths[PADDED_DIMS_MAX];
};

static void padding_measure(struct finishing *f) {
        const struct padding_terms *terms = &f->field->form.pad;

        for (uint32_t k = 0; k < PADDED_DIMS_MAX; k++) {
                uint64_t longest = 1;

                for (uint32_t i = 0; i < f->n_samples; i++)
                        if (padding_length_of(&f->extents[i], k) > longest)
                                longest = padding_length_of(&f->extents[i], k);
                f->lengths[k] = k >= f->field->form.n_padded_dims ? 1
                                : terms->to[k] > 0                ? f->padded->room[k]
                                                                  : padding_round_up(longest, terms->multiple);
                assert(f->lengths[k] <= f->padded->room[k]);
        }
}

static void padding_fill(uint8_t *bytes, uint64_t n_bytes, uint64_t size, uint64_t pattern) {
        for (uint64_t i = 0; i < n_bytes; i += size)
                switch (size) {
                case 1:
                        memset(bytes, (uint8_t)pattern, n_bytes);
                        return;
                case 2:
                        *(uint16_t *)(void *)(bytes + i) = (uint16_t)pattern;
                        break;
                case 4:
                        *(uint32_t *)(void *)(bytes + i) = (uint32_t)pattern;
                        break;
                default:
                        *(uint64_t *)(void *)(bytes + i) = pattern;
                }
}

/* Rows that are `stride` bytes apart until now: to where they are without gaps, and what is missing is filled. In this
 * sequence no row lands on one that is still to be moved. */
static void padding_join(const struct finishing *f, uint8_t *rows, uint64_t stride, uint64_t element_bytes,
                         uint64_t size, uint64_t pattern) {
        const struct padding_terms *terms = &f->field->form.pad;
        uint64_t length = f->lengths[0], was_before, before, n;

        for (uint32_t i = 0; i < f->n_samples; i++) {
                uint8_t *row = rows + i * length * element_bytes;

                n = padding_length_of(&f->extents[i], 0);
                before = terms->is_left ? length - n : 0;
                was_before = terms->is_left && terms->to[0] > 0 ? before : 0; /* padding_at() */
                if (n > 0)
                        memmove(row + before * element_bytes, rows + i * stride + was_before * element_bytes,
                                n * element_bytes);
                padding_fill(row + (terms->is_left ? 0 : n * element_bytes), (length - n) * element_bytes, size,
                             pattern);
        }
}

/* Right of each picture and below it; or after each row of features. */
static void fill_around(const struct finishing *f) {
        const struct padded_layout *padded = f->padded;
        uint64_t size = dlp_dtype_bytes(f->field->form.dtype), line = f->lengths[1] * padded->element_bytes;

        for (uint32_t i = 0; i < f->n_samples; i++)
                for (uint64_t plane = 0; plane < padded->n_planes; plane++) {
                        uint8_t *rows = f->slot + f->field->offset + f->field->sample_bytes * i +
                                        plane * padding_plane_bytes(padded);
                        uint64_t n_rows = padding_length_of(&f->extents[i], 0);
                        uint64_t n_real = padding_length_of(&f->extents[i], 1) * padded->element_bytes;

                        for (uint64_t y = 0; y < f->lengths[0]; y++) {
                                uint64_t from = y < n_rows ? n_real : 0;

                                padding_fill(rows + y * padding_row_bytes(padded) + from, line - from, size,
                                             padded->pattern);
                        }
                }
}

static void make_mask(const struct finishing *f) {
        uint8_t *mask = f->slot + f->padded->mask_offset;
        bool is_left = f->field->form.pad.is_left, is_flat = f->field->form.n_padded_dims == 1;

        for (uint32_t i = 0; i < f->n_samples; i++) {
                uint64_t n_rows = is_flat ? 1 : f->lengths[0], length = f->lengths[is_flat ? 0 : 1];

                for (uint64_t y = 0; y < n_rows; y++, mask += length) {
                        uint64_t n = is_flat || y < padding_length_of(&f->extents[i], 0)
                                             ? padding_length_of(&f->extents[i], is_flat ? 0 : 1)
                                             : 0;

                        memset(mask, is_left ? 0 : 1, is_left ? length - n : n);
                        memset(mask + (is_left ? length - n : n), is_left ? 1 : 0, is_left ? n : length - n);
                }
        }
}

/* What follows a sample's last element is unknown, so that shifted labels have nothing there. */
static void make_labels(const struct finishing *f) {
        const struct field_form *form = &f->field->form;
        uint64_t size = f->padded->element_bytes, length = f->lengths[0];
        uint64_t shift = form->pad.labels == PADDING_LABELS_SHIFTED;

        for (uint32_t i = 0; i < f->n_samples; i++) {
                int64_t *labels = (int64_t *)(void *)(f->slot + f->padded->labels_offset) + i * length;
                const uint8_t *row = f->slot + f->field->offset + i * length * size;
                uint64_t n = padding_length_of(&f->extents[i], 0), first = form->pad.is_left ? length - n : 0;

                for (uint64_t k = 0; k < length; k++)
                        labels[k] = k >= first && k + shift < first + n
                                            ? element_whole(form->dtype, row + (k + shift) * size)
                                            : LABEL_IGNORED;
        }
}

/* ---- the record ------------------------------------------------------------------------------------------------ */

static void padding_name_added(struct dlp_tensor_record *tensor, const char *field, const char *what) {
        char name[2 * DLP_TENSOR_NAME_MAX] = "";

        if (what[0] == COLLATION_WHOLE_NAME[0])
                snprintf(name, sizeof(name), "%s", what + 1);
        else
                snprintf(name, sizeof(name), "%s_%s", field, what);
        memset(tensor, 0, sizeof(*tensor));
        memcpy(tensor->name, name, sizeof(tensor->name) - 1); /* the program has checked its length */
}

static void describe_dense(const struct finishing *f, enum dlp_dtype dtype, uint64_t offset,
                           struct dlp_tensor_record *tensor) {
        uint32_t n = f->field->form.n_padded_dims;

        tensor->dtype = dtype;
        tensor->n_dims = 1 + n;
        tensor->offset = offset;
        tensor->shape[0] = f->n_samples;
        for (uint32_t k = 0; k < n; k++)
                tensor->shape[1 + k] = (int64_t)f->lengths[k];
        tensor->strides[n] = (int64_t)dlp_dtype_bytes(dtype);
        for (uint32_t i = n; i > 0; i--)
                tensor->strides[i - 1] = tensor->strides[i] * tensor->shape[i];
}

static void describe_extents(const struct finishing *f, struct dlp_tensor_record *tensor) {
        const struct field_form *form = &f->field->form;

        tensor->layout = DLP_PADDED;
        tensor->padded_dim = (uint8_t)(form->padded_dim + 1);
        tensor->n_padded_dims = (uint8_t)form->n_padded_dims;
        tensor->pads_left = (uint8_t)form->pad.is_left;
        tensor->idx_places = f->field->idx_places;
}

/* The field's own tensor; `room` says how far apart what it has lies. */
static void padding_describe_field(const struct finishing *f, const uint64_t *room, struct dlp_tensor_record *tensor) {
        const struct field_form *form = &f->field->form;
        int64_t sizes[FIELD_DIMS_MAX];

        describe_extents(f, tensor);
        tensor->n_dims = form->n_dims + 1;
        for (uint32_t i = 0; i < form->n_dims; i++) {
                bool is_padded = i >= form->padded_dim && i < form->padded_dim + form->n_padded_dims;

                tensor->shape[i + 1] = is_padded ? (int64_t)f->lengths[i - form->padded_dim] : form->shape[i];
                sizes[i] = is_padded ? (int64_t)room[i - form->padded_dim] : form->shape[i];
        }
        tensor->strides[form->n_dims] = (int64_t)dlp_dtype_bytes(form->dtype);
        for (uint32_t i = form->n_dims; i > 0; i--)
                tensor->strides[i - 1] = tensor->strides[i] * sizes[i - 1];
}

void padding_finish(const struct field_layout *field, uint8_t *slot, const struct dlp_extent *extents,
                    uint32_t n_samples, struct dlp_tensor_record *tensors) {
        struct finishing f = {
                .field = field, .padded = &field->padded, .slot = slot, .extents = extents, .n_samples = n_samples
        };
        const struct field_form *form = &field->form;
        uint64_t size = dlp_dtype_bytes(form->dtype);
        bool is_flat = form->n_padded_dims == 1 && form->padded_dim == 0;

        padding_measure(&f);
        if (is_flat)
                padding_join(&f, slot + field->offset, field->sample_bytes, field->padded.element_bytes, size,
                             field->padded.pattern);
        else
                fill_around(&f);
        padding_describe_field(&f, is_flat ? f.lengths : field->padded.room, &tensors[0]);
        make_mask(&f);
        padding_name_added(&tensors[1], form->name, form->pad.mask[0] ? form->pad.mask : "mask");
        describe_dense(&f, DLP_DTYPE_BOOL, field->padded.mask_offset, &tensors[1]);
        if (form->pad.labels == PADDING_LABELS_NONE)
                return;
        if (form->pad.labels == PADDING_LABELS_WRITTEN)
                padding_join(&f, slot + field->padded.labels_offset, field->padded.room[0] * sizeof(int64_t),
                             sizeof(int64_t), sizeof(int64_t), (uint64_t)(int64_t)LABEL_IGNORED);
        else
                make_labels(&f);
        padding_name_added(&tensors[2], form->name, "labels");
        describe_dense(&f, DLP_DTYPE_INT64, field->padded.labels_offset, &tensors[2]);
        describe_extents(&f, &tensors[2]);
}
