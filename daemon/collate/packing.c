#include "daemon/collate/packing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "daemon/collate/elements.h"
#include "daemon/collate/padding.h"

const char *const PACKING_STRATEGIES[] = { "bfd", "wrapped", "first_fit" };
const char *const PACKING_LONG[] = { "default", "error", "truncate", "skip", "split" };
const char *const PACKING_SHUFFLE[] = { "default", "true", "false" };

/* ---- when a rank attaches -------------------------------------------------------------------------------------- */

unsigned packing_n_added(const struct packing_terms *terms) {
        return 2 + (terms->labels != PADDING_LABELS_NONE) + terms->has_seqlens;
}

int packing_plan(struct field_layout *field, const struct layout_limits *limits, struct why *why) {
        uint64_t size = field->form.pack.size, n_bytes = dlp_dtype_bytes(field->form.dtype);

        if (size * limits->n_rows > INT32_MAX)
                return why_set(
                        why, -EOVERFLOW,
                        "batch_size: %u rows of pack(%u) have more elements than cu_seqlens can count (%d); ask for "
                        "a smaller batch",
                        limits->n_rows, field->form.pack.size, INT32_MAX);
        field->sample_bytes = size * n_bytes;
        field->room_bytes = field->sample_bytes * limits->n_rows;
        field->packed.pattern = padding_pattern(field->form.dtype, field->form.pack.value);
        return 0;
}

uint64_t packing_place(struct field_layout *field, const struct layout *layout, uint64_t offset) {
        uint64_t n = (uint64_t)field->form.pack.size * layout->n_rows;

        field->packed.positions_offset = offset;
        offset = layout_align(offset + n * sizeof(int64_t));
        field->packed.segments_offset = offset;
        offset = layout_align(offset + n * sizeof(int32_t));
        if (field->form.pack.labels != PADDING_LABELS_NONE) {
                field->packed.labels_offset = offset;
                offset = layout_align(offset + n * sizeof(int64_t));
        }
        if (field->form.pack.has_seqlens) { /* each piece may be followed by a gap, and each row has an end */
                field->packed.seqlens_offset = offset;
                offset = layout_align(offset + (2ull * layout->batch_size + layout->n_rows + 1) * sizeof(int32_t));
        }
        return offset;
}

/* ---- samples --------------------------------------------------------------------------------------------------- */

uint8_t *packing_at(const struct field_layout *field, uint8_t *slot, const struct pack_place *place) {
        return slot + field->offset + field->sample_bytes * place->row + place->at * dlp_dtype_bytes(field->form.dtype);
}

int packing_check(const struct pack_place *place, uint64_t n_elements, struct why *why) {
        if (n_elements == place->length)
                return 0;
        return why_set(why, -EBADMSG,
                       "has %llu elements, but %u by the column of lengths, by which it was packed: correct the column",
                       (unsigned long long)n_elements, place->length);
}

/* ---- a whole batch --------------------------------------------------------------------------------------------- */

/* A batch that is being completed. */
struct finishing {
        const struct field_layout *field;
        uint8_t *slot;
        uint64_t size, n_element; /* of a row, in elements; of an element, in bytes */
        int64_t *positions, *labels;
        int32_t *segments, *seqlens;
        uint32_t n_seqlens;
};

static void packing_begin_piece(struct finishing *f, uint64_t at) {
        if (f->seqlens)
                f->seqlens[f->n_seqlens++] = (int32_t)at;
}

/* Elements `at` to before `end`, counted through all rows, are nobody's. */
static void fill_gap(struct finishing *f, uint64_t at, uint64_t end) {
        if (at == end)
                return;
        packing_begin_piece(f, at);
        for (uint64_t i = at; i < end; i++)
                memcpy(f->slot + f->field->offset + i * f->n_element, &f->field->packed.pattern, f->n_element);
        memset(&f->positions[at], 0, (end - at) * sizeof(*f->positions));
        memset(&f->segments[at], 0, (end - at) * sizeof(*f->segments));
        for (uint64_t i = at; f->labels && i < end; i++)
                f->labels[i] = LABEL_IGNORED;
}

static void label_piece(struct finishing *f, uint64_t at, uint32_t n) {
        const uint8_t *elements = f->slot + f->field->offset;
        bool is_shifted = f->field->form.pack.labels == PADDING_LABELS_SHIFTED;

        for (uint32_t k = 0; k < n; k++) {
                bool has_label = is_shifted ? k + 1 < n : k > 0;

                f->labels[at + k] = has_label ? element_whole(f->field->form.dtype,
                                                              elements + (at + k + is_shifted) * f->n_element)
                                              : LABEL_IGNORED;
        }
}

static void fill_piece(struct finishing *f, uint64_t at, uint32_t n, int32_t segment) {
        packing_begin_piece(f, at);
        for (uint32_t k = 0; k < n; k++) {
                f->positions[at + k] = k;
                f->segments[at + k] = segment;
        }
        if (f->labels)
                label_piece(f, at, n);
}

/* Samples that were left out are gaps. */
static void packing_fill_rows(struct finishing *f, const struct pack_place *places, uint32_t n_samples,
                              uint32_t n_rows) {
        uint64_t at = 0;
        int32_t segment = 0;
        uint32_t row = 0;

        for (uint32_t i = 0; i < n_samples; i++) {
                uint64_t begin = places[i].row * f->size + places[i].at;

                for (; row < places[i].row; row++) { /* no piece goes over the end of a row */
                        fill_gap(f, at, (row + 1) * f->size);
                        at = (row + 1) * f->size;
                        segment = 0;
                }
                fill_gap(f, at, begin);
                fill_piece(f, begin, places[i].n_elements, ++segment);
                at = begin + places[i].n_elements;
        }
        for (; row < n_rows; row++) {
                fill_gap(f, at, (row + 1) * f->size);
                at = (row + 1) * f->size;
        }
        packing_begin_piece(f, n_rows * f->size);
}

/* ---- the record ------------------------------------------------------------------------------------------------ */

static void packing_describe(const struct finishing *f, const char *what, enum dlp_dtype dtype, uint64_t offset,
                             const int64_t *shape, uint32_t n_dims, struct dlp_tensor_record *tensor) {
        char name[2 * DLP_TENSOR_NAME_MAX] = "";

        memset(tensor, 0, sizeof(*tensor));
        snprintf(name, sizeof(name), "%s%s", what[0] == '_' || !what[0] ? f->field->form.name : "", what);
        memcpy(tensor->name, name, sizeof(tensor->name) - 1); /* the program has checked its length */
        tensor->layout = DLP_WHOLE;
        tensor->dtype = dtype;
        tensor->offset = offset;
        tensor->n_dims = n_dims;
        memcpy(tensor->shape, shape, n_dims * sizeof(*shape));
        tensor->strides[n_dims - 1] = (int64_t)dlp_dtype_bytes(dtype);
        if (n_dims > 1)
                tensor->strides[0] = tensor->strides[1] * shape[1];
}

static void describe_all(const struct finishing *f, uint32_t n_rows, struct dlp_tensor_record *tensors) {
        const struct packed_layout *packed = &f->field->packed;
        const int64_t shape[] = { n_rows, (int64_t)f->size };
        const int64_t n_seqlens = f->n_seqlens;

        packing_describe(f, "", f->field->form.dtype, f->field->offset, shape, 2, tensors);
        tensors++->layout = DLP_PACKED;
        packing_describe(f, "_positions", DLP_DTYPE_INT64, packed->positions_offset, shape, 2, tensors++);
        packing_describe(f, "_segments", DLP_DTYPE_INT32, packed->segments_offset, shape, 2, tensors++);
        if (f->labels)
                packing_describe(f, "_labels", DLP_DTYPE_INT64, packed->labels_offset, shape, 2, tensors++);
        if (f->seqlens)
                packing_describe(f, "cu_seqlens", DLP_DTYPE_INT32, packed->seqlens_offset, &n_seqlens, 1, tensors);
}

static void *packing_part_of(const struct finishing *f, uint64_t offset) {
        return f->slot + offset;
}

void packing_finish(const struct field_layout *field, uint8_t *slot, const struct pack_place *places,
                    uint32_t n_samples, uint32_t n_rows, struct dlp_tensor_record *tensors) {
        struct finishing f = { .field = field,
                               .slot = slot,
                               .size = field->form.pack.size,
                               .n_element = dlp_dtype_bytes(field->form.dtype) };
        uint32_t idx_places = field->idx_places;

        f.positions = packing_part_of(&f, field->packed.positions_offset);
        f.segments = packing_part_of(&f, field->packed.segments_offset);
        if (field->form.pack.labels != PADDING_LABELS_NONE)
                f.labels = packing_part_of(&f, field->packed.labels_offset);
        if (field->form.pack.has_seqlens)
                f.seqlens = packing_part_of(&f, field->packed.seqlens_offset);
        packing_fill_rows(&f, places, n_samples, n_rows);
        describe_all(&f, n_rows, tensors);
        tensors[0].idx_places = idx_places;
}
