/* How the fields of a batch's samples lie in a slot, and how the result is described. */

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collate/collating.h"
#include "tests/support/suite.h"

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define BATCH               5u

static const struct layout_limits LIMITS = { .batch_size = BATCH, .n_slots = 4, .memory_limit = 1ull << 30 };

static const struct field_form IMAGE = {
        .name = "image",
        .dtype = DLP_DTYPE_UINT8,
        .n_dims = 3,
        .shape = { 4, 6, 3 },
};
static const struct field_form ANY_IMAGE = {
        .name = "any",
        .dtype = DLP_DTYPE_FLOAT32,
        .n_dims = 3,
        .shape = { -1, -1, 3 },
        .unit_bytes = 12,
        .max_bytes = 12000,
        .asked_bytes = 1200,
};
static const struct field_form LABEL = { .name = "label", .dtype = DLP_DTYPE_INT64 };
static const struct field_form BOX = { .name = "box", .dtype = DLP_DTYPE_FLOAT64, .n_dims = 1, .shape = { 4 } };
static const struct field_form TEXT = {
        .name = "text",
        .dtype = DLP_DTYPE_BYTES,
        .how = COLLATE_RAGGED,
        .n_dims = 1,
        .shape = { -1 },
        .max_bytes = 1000,
        .together_bytes = 3 * 1024,
};
static const struct field_form MORE_TEXT = {
        .name = "more",
        .dtype = DLP_DTYPE_BYTES,
        .how = COLLATE_RAGGED,
        .n_dims = 1,
        .shape = { -1 },
        .max_bytes = 10,
};

/* A slot of these fields, with a batch begun in it. */
struct fixture {
        struct layout layout;
        struct collating collating;
        struct dlp_slot_record record;
        struct dlp_place *places;
        uint8_t *slot;
};

static void begin(struct fixture *f, const struct field_form *forms, uint32_t n) {
        memset(f, 0, sizeof(*f));
        ck_assert_int_eq(layout_plan(forms, n, &LIMITS, &f->layout, NULL), 0);
        f->places = calloc((size_t)f->layout.n_ragged * BATCH + 1, sizeof(*f->places));
        f->slot = aligned_alloc(DLP_SLOT_ALIGN,
                                (f->layout.slot_bytes + DLP_SLOT_ALIGN) / DLP_SLOT_ALIGN * DLP_SLOT_ALIGN);
        memset(f->slot, 0xee, f->layout.slot_bytes);
        collating_init(&f->collating, &f->layout, f->slot, f->places);
}

static void end(struct fixture *f) {
        collating_fini(&f->collating);
        free(f->places);
        free(f->slot);
}

START_TEST(fields_lie_apart_aligned_and_within_the_slot) {
        const struct field_form forms[] = { IMAGE, ANY_IMAGE, LABEL, TEXT, BOX, MORE_TEXT };
        struct layout layout;

        ck_assert_int_eq(layout_plan(forms, ARRAY_LENGTH(forms), &LIMITS, &layout, NULL), 0);
        ck_assert_uint_eq(layout.n_ragged, 2);
        ck_assert(layout.is_sparse);
        ck_assert_uint_eq(layout.fields[0].sample_bytes, 4 * 6 * 3);
        ck_assert_uint_eq(layout.fields[1].sample_bytes, 1200);
        ck_assert_uint_eq(layout.fields[2].sample_bytes, 8);
        ck_assert_uint_eq(layout.fields[3].room_bytes, 3 * 1024);
        ck_assert_uint_eq(layout.fields[4].sample_bytes, 32);
        ck_assert_uint_eq(layout.fields[5].room_bytes, BATCH * DLP_TENSOR_ALIGN);
        for (uint32_t i = 0; i < layout.n_fields; i++) {
                const struct field_layout *field = &layout.fields[i];

                ck_assert_uint_eq(field->offset % DLP_TENSOR_ALIGN, 0);
                ck_assert_uint_le(field->offset + field->room_bytes, layout.slot_bytes);
                for (uint32_t k = 0; k < i; k++)
                        ck_assert(field->offset >= layout.fields[k].offset + layout.fields[k].room_bytes ||
                                  field->offset + field->room_bytes <= layout.fields[k].offset);
        }
}
END_TEST

START_TEST(fields_of_varying_size_share_what_memory_limit_gives_them) {
        struct field_form forms[] = { ANY_IMAGE, ANY_IMAGE };
        struct layout one, two;

        forms[0].asked_bytes = forms[1].asked_bytes = 0;
        forms[0].max_bytes = forms[1].max_bytes = UINT64_MAX;
        ck_assert_int_eq(layout_plan(forms, 1, &LIMITS, &one, NULL), 0);
        ck_assert_int_eq(layout_plan(forms, 2, &LIMITS, &two, NULL), 0);
        ck_assert_uint_le(two.slot_bytes, one.slot_bytes + 2 * DLP_TENSOR_ALIGN);
        ck_assert_uint_ge(two.fields[0].sample_bytes, one.fields[0].sample_bytes / 2 - 12);
        ck_assert_uint_eq(two.fields[1].sample_bytes, two.fields[0].sample_bytes);
        ck_assert_uint_eq(two.fields[0].sample_bytes % 12, 0);
}
END_TEST

START_TEST(a_field_without_room_or_too_large_is_refused_by_name) {
        struct layout_limits limits = LIMITS;
        struct field_form form = ANY_IMAGE;
        struct layout layout;
        struct why why;

        limits.memory_limit = 400; /* a quarter of it among 20 samples: 5 bytes */
        form.asked_bytes = 0;
        ck_assert_int_eq(layout_plan(&form, 1, &limits, &layout, &why), -EOVERFLOW);
        ck_assert_ptr_nonnull(strstr(why.text, "any"));
        ck_assert_ptr_nonnull(strstr(why.text, "decode(max_pixels=N)"));

        form = IMAGE;
        form.shape[0] = form.shape[1] = 1 << 20;
        ck_assert_int_eq(layout_plan(&form, 1, &LIMITS, &layout, &why), -EOVERFLOW);
        ck_assert_ptr_nonnull(strstr(why.text, "image"));
        form.shape[0] = form.shape[1] = INT64_MAX;
        ck_assert_int_eq(layout_plan(&form, 1, &LIMITS, &layout, &why), -EOVERFLOW);
}
END_TEST

static uint8_t *place(struct fixture *f, uint32_t idx_field, uint32_t idx_sample, const int64_t *shape,
                      uint64_t n_bytes) {
        int64_t other[FIELD_DIMS_MAX];
        uint8_t *bytes = NULL;

        ck_assert_int_eq(collating_place(&f->collating, idx_field, idx_sample, shape, n_bytes, &bytes, other), 0);
        ck_assert(bytes >= f->slot);
        ck_assert(bytes + n_bytes <= f->slot + f->layout.slot_bytes);
        return bytes;
}

/* Each byte says which field, sample and place within it it is. */
static uint8_t byte_of(uint32_t idx_field, uint32_t idx_sample, uint64_t k) {
        return (uint8_t)(idx_field * 71 + idx_sample * 29 + k);
}

static uint64_t text_bytes(uint32_t idx_field, uint32_t idx_sample) {
        return idx_field == 1 ? (idx_sample * 377) % 1000 : idx_sample * 2;
}

static void fill(struct fixture *f, uint32_t idx_sample) {
        for (uint32_t i = 0; i < f->layout.n_fields; i++) {
                const struct field_layout *field = &f->layout.fields[i];
                bool is_ragged = field->form.how == COLLATE_RAGGED;
                uint64_t n_bytes = is_ragged ? text_bytes(i, idx_sample) : field->sample_bytes;
                int64_t length = (int64_t)n_bytes;
                uint8_t *bytes = place(f, i, idx_sample, is_ragged ? &length : field->form.shape, n_bytes);

                for (uint64_t k = 0; k < n_bytes; k++)
                        bytes[k] = byte_of(i, idx_sample, k);
        }
}

/* As a client would find it: by the record alone. Sample `sample` lies in place `at`. */
static void check(const struct fixture *f, uint32_t at, uint32_t sample) {
        for (uint32_t i = 0; i < f->record.n_tensors; i++) {
                const struct dlp_tensor_record *tensor = &f->record.tensors[i];
                const struct dlp_place *where = &f->places[tensor->idx_places * BATCH + at];
                const uint8_t *bytes = f->slot + (tensor->layout == DLP_RAGGED
                                                          ? where->offset
                                                          : tensor->offset + at * (uint64_t)tensor->strides[0]);
                uint64_t n_bytes = tensor->layout == DLP_RAGGED ? where->n_bytes : (uint64_t)tensor->strides[0];

                if (tensor->layout == DLP_RAGGED)
                        ck_assert_uint_eq(n_bytes, text_bytes(i, sample));
                for (uint64_t k = 0; k < n_bytes; k++)
                        ck_assert_uint_eq(bytes[k], byte_of(i, sample, k));
        }
}

START_TEST(a_batch_of_many_fields_is_found_by_its_record_also_after_gaps_were_closed) {
        const struct field_form forms[] = { IMAGE, TEXT, LABEL, MORE_TEXT, BOX };
        const uint32_t sequence[BATCH] = { 3, 0, 4, 1, 2 }; /* workers come as they please */
        struct fixture f;

        begin(&f, forms, ARRAY_LENGTH(forms));
        for (uint32_t round = 0; round < 3; round++) {
                collating_begin(&f.collating);
                for (uint32_t i = 0; i < BATCH; i++)
                        fill(&f, sequence[i]);
                collating_describe(&f.collating, BATCH, &f.record);
                ck_assert_uint_eq(f.record.n_tensors, ARRAY_LENGTH(forms));
                for (uint32_t i = 0; i < BATCH; i++)
                        check(&f, i, i);
        }
        ck_assert_str_eq(f.record.tensors[0].name, "image");
        ck_assert_uint_eq(f.record.tensors[0].n_dims, 4);
        ck_assert_int_eq(f.record.tensors[0].strides[1], 18);
        ck_assert_uint_eq(f.record.tensors[2].n_dims, 1);
        ck_assert_int_eq(f.record.tensors[4].shape[1], 4);
        ck_assert_uint_ne(f.record.tensors[1].idx_places, f.record.tensors[3].idx_places);

        collating_move(&f.collating, &f.record, 2, 1);
        collating_move(&f.collating, &f.record, 4, 2);
        check(&f, 0, 0);
        check(&f, 1, 2);
        check(&f, 2, 4);
        end(&f);
}
END_TEST

START_TEST(the_first_sample_decides_the_shape_of_a_field_that_varies) {
        const int64_t small[] = { 2, 3, 3 }, other[] = { 3, 2, 3 };
        int64_t said[FIELD_DIMS_MAX] = { 0 };
        struct fixture f;
        uint8_t *bytes;

        begin(&f, &ANY_IMAGE, 1);
        ck_assert_ptr_eq(place(&f, 0, 1, small, 72), f.slot + f.layout.fields[0].offset + 72);
        ck_assert_int_eq(collating_place(&f.collating, 0, 0, other, 72, &bytes, said), COLLATE_DIFFERS);
        ck_assert_mem_eq(said, small, sizeof(small));
        place(&f, 0, 0, small, 72);
        collating_describe(&f.collating, 2, &f.record);
        ck_assert_int_eq(f.record.tensors[0].shape[0], 2);
        ck_assert_int_eq(f.record.tensors[0].shape[1], 2);
        ck_assert_int_eq(f.record.tensors[0].shape[2], 3);
        ck_assert_int_eq(f.record.tensors[0].strides[0], 72);

        collating_forget(&f.collating);
        place(&f, 0, 0, other, 72);
        collating_begin(&f.collating); /* nobody says anything: described as nothing, not as the batch before */
        collating_describe(&f.collating, 2, &f.record);
        ck_assert_int_eq(f.record.tensors[0].shape[1], 0);
        end(&f);
}
END_TEST

START_TEST(the_first_sample_decides_the_rows_of_a_ragged_field_and_each_has_its_own_number_of_them) {
        const struct field_form masks = {
                .name = "masks",
                .dtype = DLP_DTYPE_UINT8,
                .how = COLLATE_RAGGED,
                .n_dims = 3,
                .shape = { -1, -1, -1 },
                .unit_bytes = 1,
                .max_bytes = UINT64_MAX,
                .fails_late = true,
                .takes_share = true,
        };
        const struct field_form forms[] = { masks, ANY_IMAGE };
        const int64_t two[] = { 2, 3, 4 }, none[] = { 0, 3, 4 }, other[] = { 2, 4, 3 };
        int64_t said[FIELD_DIMS_MAX] = { 0 };
        struct fixture f;
        uint8_t *bytes;

        begin(&f, forms, 2);
        ck_assert_uint_eq(f.layout.fields[0].sample_bytes % DLP_TENSOR_ALIGN, 0);
        ck_assert_uint_ge(f.layout.fields[0].sample_bytes, (LIMITS.memory_limit >> 6) / BATCH / LIMITS.n_slots);
        ck_assert_uint_lt(f.layout.fields[0].room_bytes, LIMITS.memory_limit >> 4);
        place(&f, 0, 3, two, 24);
        place(&f, 0, 0, none, 0);
        ck_assert_int_eq(collating_place(&f.collating, 0, 1, other, 24, &bytes, said), COLLATE_DIFFERS);
        ck_assert_int_eq(said[1], 3);
        ck_assert_int_eq(said[2], 4);
        collating_leave_out(&f.collating, 0, 1);
        collating_describe(&f.collating, 4, &f.record);
        ck_assert_int_eq(f.record.tensors[0].shape[1], -1);
        ck_assert_int_eq(f.record.tensors[0].shape[2], 3);
        ck_assert_int_eq(f.record.tensors[0].shape[3], 4);
        ck_assert_int_eq(f.record.tensors[0].strides[1], 12);
        ck_assert_uint_eq(f.places[3].n_bytes, 24);

        collating_begin(&f.collating);
        collating_leave_out(&f.collating, 0, 0);
        collating_describe(&f.collating, 1, &f.record); /* no sample has it: rows that a client accepts */
        ck_assert_int_eq(f.record.tensors[0].shape[2], 1);
        ck_assert_int_eq(f.record.tensors[0].strides[1], 1);
        end(&f);
}
END_TEST

START_TEST(a_sample_beyond_the_longest_has_no_place) {
        const struct field_form forms[] = { TEXT, ANY_IMAGE };
        const int64_t length[] = { 1025 }, shape[] = { 10, 11, 3 };
        int64_t said[FIELD_DIMS_MAX];
        struct fixture f;
        uint8_t *bytes;

        begin(&f, forms, 2);
        ck_assert_int_eq(collating_place(&f.collating, 0, 0, length, 1025, &bytes, said), -EFBIG);
        ck_assert_int_eq(collating_place(&f.collating, 1, 0, shape, 1320, &bytes, said), -EFBIG);
        end(&f);
}
END_TEST

/* A function gets arrays of the whole batch, or each sample with its shape. */
START_TEST(what_a_function_gets_of_a_whole_batch_has_no_gaps_and_moves_with_its_sample) {
        struct field_form forms[] = { IMAGE, LABEL, BOX, TEXT };
        const struct field_layout *fields;
        struct fixture f;

        forms[0].is_whole = forms[1].is_whole = forms[2].is_whole = true;
        forms[1].input = (struct field_input){ .n_bytes = 3, .dtype = DLP_DTYPE_UINT8, .n_dims = 1, .shape = { 3 } };
        forms[2].input = (struct field_input){ .n_bytes = 100, .dtype = DLP_DTYPE_UINT8, .n_dims = 1, .shape = { -1 } };
        begin(&f, forms, ARRAY_LENGTH(forms));
        fields = f.layout.fields;
        ck_assert_int_eq(f.layout.has_whole, true);
        ck_assert_uint_eq(fields[0].sample_bytes, 72);
        ck_assert_uint_eq(fields[1].input_bytes, 3);
        ck_assert_uint_eq(fields[1].input_shape_at, 0);
        ck_assert_uint_eq(fields[2].input_bytes, DLP_TENSOR_ALIGN);
        ck_assert_uint_eq(fields[2].input_shape_at, 104);
        ck_assert_uint_le(f.layout.numbers_offset + BATCH * sizeof(int64_t), f.layout.slot_bytes);
        for (uint32_t i = 0; i < ARRAY_LENGTH(forms); i++) {
                ck_assert_uint_le(fields[i].offset + fields[i].room_bytes, f.layout.numbers_offset);
                ck_assert_uint_le(fields[i].input_offset + BATCH * fields[i].input_bytes, f.layout.numbers_offset);
        }
        collating_describe(&f.collating, BATCH, &f.record);
        for (uint32_t i = 0; i < BATCH; i++)
                for (uint32_t k = 1; k < 3; k++)
                        memset(f.slot + fields[k].input_offset + i * fields[k].input_bytes, (int)(10 * k + i),
                               fields[k].input_bytes);
        collating_move(&f.collating, &f.record, 2, 1);
        collating_move(&f.collating, &f.record, 4, 2);
        for (uint32_t i = 0; i < 3; i++)
                for (uint32_t k = 1; k < 3; k++)
                        for (uint32_t at = 0; at < fields[k].input_bytes; at++)
                                ck_assert_uint_eq(f.slot[fields[k].input_offset + i * fields[k].input_bytes + at],
                                                  10 * k + 2 * i);
        end(&f);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "layouts", fields_lie_apart_aligned_and_within_the_slot, 0 },
                { "layouts", fields_of_varying_size_share_what_memory_limit_gives_them, 0 },
                { "layouts", a_field_without_room_or_too_large_is_refused_by_name, 0 },
                { "batches", a_batch_of_many_fields_is_found_by_its_record_also_after_gaps_were_closed, 0 },
                { "batches", the_first_sample_decides_the_shape_of_a_field_that_varies, 0 },
                { "batches", the_first_sample_decides_the_rows_of_a_ragged_field_and_each_has_its_own_number_of_them,
                  0 },
                { "batches", a_sample_beyond_the_longest_has_no_place, 0 },
                { "batches", what_a_function_gets_of_a_whole_batch_has_no_gaps_and_moves_with_its_sample, 0 },
        };

        return suite_run("collate", rows, ARRAY_LENGTH(rows));
}
