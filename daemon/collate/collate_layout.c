#include "daemon/collate/collate_layout.h"

#include <assert.h>
#include <errno.h>

#include "daemon/collate/packing.h"
#include "daemon/collate/padding.h"
#include "proto/base/shown/amounts.h"

/* The part of memory_limit that a ring with fields of varying size gets, unless the pipeline says how large they are.
 * If 1/VARYING_SHARE of it is less than VARYING_BYTES_MIN, the ring gets that, but at most 1/VARYING_SHARE_MIN. */
#define VARYING_SHARE     16u
#define VARYING_BYTES_MIN (64ull << 20)
#define VARYING_SHARE_MIN 4u

uint64_t layout_align(uint64_t offset) {
        return (offset + DLP_TENSOR_ALIGN - 1) / DLP_TENSOR_ALIGN * DLP_TENSOR_ALIGN;
}

uint64_t field_form_bytes(const struct field_form *form, const int64_t *shape) {
        uint64_t n_bytes = dlp_dtype_bytes(form->dtype);

        for (uint32_t i = 0; i < form->n_dims; i++)
                if (__builtin_mul_overflow(n_bytes, (uint64_t)shape[i], &n_bytes))
                        return UINT64_MAX;
        return n_bytes;
}

/* The first dimension of a ragged field is each sample's own. */
static bool form_varies(const struct field_form *form) {
        if (form->how == COLLATE_PADDED)
                return false;
        for (uint32_t i = form->how == COLLATE_RAGGED; i < form->n_dims; i++)
                if (form->shape[i] < 0)
                        return true;
        return false;
}

static bool takes_share(const struct field_form *form) {
        if (form->how == COLLATE_PADDED)
                return padding_takes_share(form);
        return form->how == COLLATE_RAGGED ? form->takes_share : form_varies(form);
}

static uint64_t varying_ring_bytes(uint64_t memory_limit) {
        uint64_t share = memory_limit / VARYING_SHARE, most = memory_limit / VARYING_SHARE_MIN;

        if (share < VARYING_BYTES_MIN)
                share = most < VARYING_BYTES_MIN ? most : VARYING_BYTES_MIN;
        return share;
}

/* A sample that does not fit later counts as damaged, and that must not depend on other jobs. So the room follows only
 * from the job's own terms and memory_limit. */
static int plan_varying(struct field_layout *field, const struct layout_limits *limits, uint32_t n_varying,
                        struct why *why) {
        const struct field_form *form = &field->form;
        uint64_t share = varying_ring_bytes(limits->memory_limit) / n_varying / limits->n_slots / limits->batch_size;
        uint64_t n_bytes = form->asked_bytes ? form->asked_bytes : share / form->unit_bytes * form->unit_bytes;

        if (n_bytes == 0)
                return why_set(why, -EOVERFLOW,
                               "batch_size: %u slots of %u samples whose %s has any size have no room for %llu bytes "
                               "each; ask for a smaller batch or fewer slots, let the pipeline give them one size, "
                               "begin it with decode(max_pixels=N), or raise memory_limit",
                               limits->n_slots, limits->batch_size, form->name, (unsigned long long)form->unit_bytes);
        field->sample_bytes = n_bytes < form->max_bytes ? n_bytes : form->max_bytes;
        return 0;
}

static int refuse_ring(const struct field_layout *field, const struct layout_limits *limits, struct why *why) {
        char size[BYTES_TEXT_MAX], most[BYTES_TEXT_MAX];

        return why_set(why, -EOVERFLOW,
                       "batch_size: %u samples whose %s has up to %s pass the limit of %s a ring; ask for a smaller "
                       "batch, or let the pipeline make them smaller",
                       limits->batch_size, field->form.name, format_bytes(size, field->sample_bytes),
                       format_bytes(most, DLP_PAYLOAD_MAX));
}

static int refuse_function(const struct field_form *form, const struct layout_limits *limits, struct why *why) {
        uint64_t n_bytes = form->input.n_bytes > form->result.n_bytes ? form->input.n_bytes : form->result.n_bytes;
        char size[BYTES_TEXT_MAX], most[BYTES_TEXT_MAX];

        return why_set(why, -EOVERFLOW,
                       "batch_size: %u samples with up to %s before or after the function of field %s pass the limit "
                       "of %s a ring; ask for a smaller batch, or let steps make them smaller",
                       limits->batch_size, format_bytes(size, n_bytes), form->name,
                       format_bytes(most, DLP_PAYLOAD_MAX));
}

static bool collate_layout_input_varies(const struct field_input *input) {
        for (uint32_t k = 0; input->n_bytes > 0 && k < input->n_dims; k++)
                if (input->shape[k] < 0)
                        return true;
        return false;
}

/* A function gets the samples of a batch as one array, or, where they vary, as one for each. */
static void plan_input(struct field_layout *field) {
        const struct field_input *input = &field->form.input;

        field->input_bytes = layout_align(input->n_bytes);
        if (!field->form.is_whole)
                return;
        if (!collate_layout_input_varies(input)) {
                field->input_bytes = input->n_bytes;
                return;
        }
        field->input_shape_at = (input->n_bytes + sizeof(int64_t) - 1) / sizeof(int64_t) * sizeof(int64_t);
        field->input_bytes = layout_align(field->input_shape_at + input->n_dims * sizeof(int64_t));
}

static int collate_layout_plan_field(struct field_layout *field, const struct layout_limits *limits, uint32_t n_varying,
                                     struct why *why) {
        const struct field_form *form = &field->form;
        uint64_t together;
        int r = 0;

        if (takes_share(form))
                r = plan_varying(field, limits, n_varying, why);
        else if (form->how == COLLATE_RAGGED)
                field->sample_bytes = form->max_bytes;
        else if (form->how == COLLATE_STACK)
                field->sample_bytes = field_form_bytes(form, form->shape);
        if (__builtin_add_overflow(field->sample_bytes, form->tail_bytes, &field->sample_bytes))
                field->sample_bytes = UINT64_MAX;
        if (r < 0)
                return r;
        if (form->how == COLLATE_PADDED)
                padding_plan(field);
        if (form->how == COLLATE_PACKED)
                return packing_plan(field, limits, why);
        if (form->how == COLLATE_RAGGED)
                field->sample_bytes = layout_align(field->sample_bytes);
        if (field->sample_bytes > DLP_PAYLOAD_MAX / limits->batch_size)
                return refuse_ring(field, limits, why);
        field->room_bytes = field->sample_bytes * limits->batch_size;
        plan_input(field);
        field->result_bytes = layout_align(form->result.n_bytes);
        if (form->input.n_bytes > DLP_PAYLOAD_MAX / limits->batch_size ||
            form->result.n_bytes > DLP_PAYLOAD_MAX / limits->batch_size)
                return refuse_function(form, limits, why);
        if (form->how == COLLATE_RAGGED && !field->is_spread && form->together_bytes > 0 &&
            !__builtin_add_overflow(form->together_bytes, form->more_bytes * limits->batch_size, &together) &&
            together < field->room_bytes)
                field->room_bytes = together;
        return 0;
}

/* Fields of fixed size come first: they share pages that every batch writes, however large the others become. */
static void place_fields(struct layout *layout) {
        for (int pass = 0; pass < 2; pass++)
                for (uint32_t i = 0; i < layout->n_fields; i++) {
                        struct field_layout *field = &layout->fields[i];
                        bool is_fixed = field->form.how == COLLATE_STACK && field->form.n_dims == 0;

                        if (is_fixed != (pass == 0))
                                continue;
                        field->offset = layout->slot_bytes;
                        layout->slot_bytes = layout_align(layout->slot_bytes + field->room_bytes);
                        field->input_offset = layout->slot_bytes;
                        layout->slot_bytes = layout_align(layout->slot_bytes + field->input_bytes * layout->batch_size);
                        field->result_offset = layout->slot_bytes;
                        layout->slot_bytes += field->result_bytes * layout->batch_size;
                        if (field->form.how == COLLATE_PADDED)
                                layout->slot_bytes = padding_place(field, layout->batch_size, layout->slot_bytes);
                        if (field->form.how == COLLATE_PACKED)
                                layout->slot_bytes = packing_place(field, layout, layout->slot_bytes);
                }
}

/* Tensors that come with a field. */
static unsigned n_added(const struct field_form *form) {
        return form->how == COLLATE_PADDED   ? padding_n_added(&form->pad)
               : form->how == COLLATE_PACKED ? packing_n_added(&form->pack)
                                             : 0;
}

static bool has_varying_input(const struct layout *layout) {
        for (uint32_t i = 0; i < layout->n_fields; i++)
                if (collate_layout_input_varies(&layout->fields[i].form.input))
                        return true;
        return false;
}

static void place_numbers(struct layout *layout) {
        for (uint32_t i = 0; i < layout->n_fields; i++)
                layout->has_whole |= layout->fields[i].form.is_whole;
        if (!layout->has_whole)
                return;
        layout->numbers_offset = layout->slot_bytes;
        layout->slot_bytes = layout_align(layout->slot_bytes + layout->batch_size * sizeof(int64_t));
}

int layout_plan(const struct field_form *forms, uint32_t n_fields, const struct layout_limits *limits,
                struct layout *ret_layout, struct why *why) {
        struct layout layout = { .n_fields = n_fields, .batch_size = limits->batch_size, .n_rows = limits->n_rows };
        uint32_t n_varying = 0;

        assert(n_fields <= DLP_TENSORS_MAX);
        for (uint32_t i = 0; i < n_fields; i++) {
                struct field_layout *field = &layout.fields[i];

                field->form = forms[i];
                field->varies = form_varies(&forms[i]);
                field->idx_tensor = layout.n_tensors;
                layout.n_tensors += 1 + n_added(&forms[i]);
                n_varying += takes_share(&forms[i]);
                if (forms[i].how == COLLATE_STACK)
                        continue;
                field->idx_places = layout.n_ragged++;
                field->is_spread = forms[i].how == COLLATE_RAGGED &&
                                   (limits->is_spread || forms[i].fails_late || forms[i].is_joined);
        }
        for (uint32_t i = 0; i < n_fields; i++) {
                int r = collate_layout_plan_field(&layout.fields[i], limits, n_varying, why);

                if (r < 0)
                        return r;
        }
        assert(layout.n_tensors <= DLP_TENSORS_MAX);
        layout.is_sparse = n_varying > 0 || layout.n_ragged > 0 || has_varying_input(&layout);
        place_fields(&layout);
        place_numbers(&layout);
        *ret_layout = layout;
        return 0;
}
