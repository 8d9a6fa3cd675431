#include "daemon/collate/mix/mixing.h"

#include <string.h>

#include "daemon/collate/mix/blend.h"

#define STRETCH_BYTES 8192u /* two of them, of a sample and its partner, stay in the first-level cache */

/* One field of a batch. */
struct mixed {
        const struct mix_terms *terms;
        const struct mix_draw *draws; /* one for all samples with MIX_BATCH, else one for each */
        blend_function blend;
        bool is_picture; /* else it is a label or such, and never cut */
        uint8_t *samples;
        uint64_t n_bytes, stride; /* of one sample; from one to the next */
        uint32_t n_samples, element_bytes;
        uint32_t height, width;           /* of the pictures of the part; 0: there are none */
        uint64_t row_bytes, column_bytes; /* of the picture: a row of a plane or of pixels; an element or a pixel */
};

static const struct mix_draw *draw_of(const struct mixed *mixed, uint32_t i) {
        return &mixed->draws[mixed->terms->mode == MIX_BATCH ? 0 : i];
}

/* A stretch of the bytes of each sample. */
struct stretch {
        uint64_t begin, end;
};

/* The part of row `row` that is in the box and in the stretch. Returns false if there is none. Planes follow one
 * another, so that a row's number says where in its plane it is. */
static bool cut_of_row(const struct mixed *mixed, const struct mix_box *box, const struct stretch *stretch,
                       uint64_t row, struct stretch *ret_cut) {
        uint64_t y = row % mixed->height, at = row * mixed->row_bytes;
        struct stretch cut = { at + box->left * mixed->column_bytes, at + box->right * mixed->column_bytes };

        cut.begin = cut.begin > stretch->begin ? cut.begin : stretch->begin;
        cut.end = cut.end < stretch->end ? cut.end : stretch->end;
        *ret_cut = cut;
        return y >= box->top && y < box->bottom && cut.begin < cut.end;
}

static bool mixing_is_cut(const struct mixed *mixed, const struct mix_draw *draw) {
        return draw->is_cut && mixed->is_picture;
}

/* Does the draw change anything in this stretch? */
static bool is_touched(const struct mixed *mixed, const struct mix_draw *draw, const struct stretch *stretch) {
        struct stretch cut;

        if (!mixing_is_cut(mixed, draw))
                return draw->lam < 1;
        for (uint64_t row = stretch->begin / mixed->row_bytes; row * mixed->row_bytes < stretch->end; row++)
                if (cut_of_row(mixed, &draw->box, stretch, row, &cut))
                        return true;
        return false;
}

/* The stretch of one sample gets that of its partner mixed in. */
static void mixing_change(const struct mixed *mixed, const struct mix_draw *draw, const struct stretch *stretch,
                          uint8_t *to, const uint8_t *with) {
        struct stretch cut;

        if (!mixing_is_cut(mixed, draw)) {
                if (draw->lam < 1)
                        mixed->blend(to, with, (stretch->end - stretch->begin) / mixed->element_bytes, draw->lam);
                return;
        }
        for (uint64_t row = stretch->begin / mixed->row_bytes; row * mixed->row_bytes < stretch->end; row++)
                if (cut_of_row(mixed, &draw->box, stretch, row, &cut))
                        memcpy(to + (cut.begin - stretch->begin), with + (cut.begin - stretch->begin),
                               cut.end - cut.begin);
}

static uint8_t *mixing_at(const struct mixed *mixed, uint32_t i, const struct stretch *stretch) {
        return mixed->samples + i * mixed->stride + stretch->begin;
}

/* From the last sample to the first: each partner is still as it was, except that of the first sample. */
static void mix_with_previous(const struct mixed *mixed, const struct stretch *stretch, uint8_t *kept) {
        memcpy(kept, mixing_at(mixed, mixed->n_samples - 1, stretch), stretch->end - stretch->begin);
        for (uint32_t i = mixed->n_samples - 1; i > 0; i--)
                mixing_change(mixed, draw_of(mixed, i), stretch, mixing_at(mixed, i, stretch),
                              mixing_at(mixed, i - 1, stretch));
        mixing_change(mixed, draw_of(mixed, 0), stretch, mixing_at(mixed, 0, stretch), kept);
}

/* The two samples of a pair are each other's partners. The middle one of an odd batch is its own. */
static void mix_with_mirrored(const struct mixed *mixed, const struct stretch *stretch, uint8_t *kept) {
        for (uint32_t i = 0; 2 * i < mixed->n_samples; i++) {
                uint32_t k = mixed->n_samples - 1 - i;
                const struct mix_draw *draw = draw_of(mixed, i), *other = draw_of(mixed, k);

                if (!is_touched(mixed, draw, stretch) && !is_touched(mixed, other, stretch))
                        continue;
                memcpy(kept, mixing_at(mixed, i, stretch), stretch->end - stretch->begin);
                mixing_change(mixed, draw, stretch, mixing_at(mixed, i, stretch),
                              i == k ? kept : mixing_at(mixed, k, stretch));
                if (i < k)
                        mixing_change(mixed, other, stretch, mixing_at(mixed, k, stretch), kept);
        }
}

/* The size of pictures is in the record: each batch may have its own. */
static void find_size(struct mixed *mixed, const struct layout *layout, const struct field_form *form,
                      const struct dlp_slot_record *record) {
        const struct field_layout *pictures;
        const int64_t *shape;

        if (form->mix_picture == FIELD_NONE)
                return;
        pictures = &layout->fields[form->mix_picture];
        shape = record->tensors[pictures->idx_tensor].shape + 1 + pictures->form.padded_dim;
        mixed->height = (uint32_t)shape[0];
        mixed->width = (uint32_t)shape[1];
}

static void mixing_describe(struct mixed *mixed, const struct layout *layout, const struct field_layout *field,
                            const struct dlp_slot_record *record) {
        const struct dlp_tensor_record *tensor = &record->tensors[field->idx_tensor];

        mixed->element_bytes = (uint32_t)dlp_dtype_bytes(tensor->dtype);
        mixed->n_bytes = mixed->element_bytes;
        for (uint32_t i = 1; i < tensor->n_dims; i++)
                mixed->n_bytes *= (uint64_t)tensor->shape[i];
        mixed->stride = (uint64_t)tensor->strides[0];
        mixed->is_picture = field->form.n_padded_dims > 1;
        if (mixed->is_picture) {
                mixed->row_bytes = (uint64_t)tensor->strides[field->form.padded_dim + 1];
                mixed->column_bytes = (uint64_t)tensor->strides[field->form.padded_dim + 2];
        }
        find_size(mixed, layout, &field->form, record);
}

uint32_t mixing_n_draws(const struct layout *layout) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < layout->n_fields; i++) {
                const struct mix_terms *terms = &layout->fields[i].form.mix;
                uint32_t n_own = !mix_is_some(terms) ? 0 : terms->mode == MIX_BATCH ? 1 : layout->batch_size;

                n = n_own > n ? n_own : n;
        }
        return n;
}

static void mixing_draw_all(const struct mixed *mixed, const struct mix_key *key, struct mix_draw *draws) {
        for (uint32_t i = 0; i < (mixed->terms->mode == MIX_BATCH ? 1 : mixed->n_samples); i++)
                mix_draw(mixed->terms, key->seed, key->epoch, key->position, i, mixed->n_samples, mixed->height,
                         mixed->width, &draws[i]);
}

void mixing_run(const struct layout *layout, uint32_t idx_field, const struct mix_key *key,
                const struct dlp_slot_record *record, uint8_t *slot, struct mix_draw *draws) {
        const struct field_layout *field = &layout->fields[idx_field];
        struct mixed mixed = { .terms = &field->form.mix,
                               .draws = draws,
                               .blend = blend_of(field->form.dtype),
                               .samples = slot + field->offset,
                               .n_samples = record->n_samples };
        _Alignas(64) uint8_t kept[STRETCH_BYTES];

        if (!mix_is_some(mixed.terms) || record->n_tensors == 0 || record->n_samples == 0)
                return;
        mixing_describe(&mixed, layout, field, record);
        mixing_draw_all(&mixed, key, draws);
        for (uint64_t begin = 0; begin < mixed.n_bytes; begin += STRETCH_BYTES) {
                uint64_t end = begin + STRETCH_BYTES < mixed.n_bytes ? begin + STRETCH_BYTES : mixed.n_bytes;
                struct stretch stretch = { begin, end };

                if (mixed.terms->mode == MIX_BATCH && !is_touched(&mixed, &draws[0], &stretch))
                        continue;
                if (mixed.terms->partner == MIX_PREVIOUS)
                        mix_with_previous(&mixed, &stretch, kept);
                else
                        mix_with_mirrored(&mixed, &stretch, kept);
        }
}
