/* What functions of the trainer's deliver in sizes of their own: what the process says is checked, and what it wrote is
 * copied to where collation wants it, compared with loops that index element by element. */

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collate/collating.h"
#include "daemon/collate/collation.h"
#include "daemon/collate/delivered.h"
#include "daemon/collate/padding.h"
#include "tests/support/collation_of.h"
#include "tests/support/suite.h"

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define BATCH               5u
#define CANARY              0xee

/* "..8:4" is { -1, 4 } with most { 8, 4 }. */
static struct field_form form_of(enum collate_how how, uint32_t n_dims, const int64_t *shape, const int64_t *most) {
        struct field_form form = { .name = "x", .dtype = DLP_DTYPE_INT32, .how = how, .n_dims = n_dims };

        form.max_bytes = 4;
        form.unit_bytes = 4;
        form.fails_late = true;
        form.result = (struct field_input){ .dtype = form.dtype, .n_dims = n_dims };
        for (uint32_t k = 0; k < n_dims; k++) {
                form.shape[k] = form.result.shape[k] = shape[k];
                form.result.most[k] = most[k];
                form.max_bytes *= (uint64_t)most[k];
                if (shape[k] >= 0)
                        continue;
                if (form.n_padded_dims++ == 0)
                        form.padded_dim = k;
                form.bounds[form.n_padded_dims - 1] = (uint64_t)most[k];
        }
        form.result.n_bytes = form.asked_bytes = form.max_bytes;
        return form;
}

START_TEST(the_sizes_that_a_process_says_are_completed_and_believed_only_within_what_is_declared) {
        static const struct {
                enum collate_how how;
                uint32_t n_dims;
                int64_t shape[3], most[3];
                uint32_t n_sizes;
                uint64_t sizes[3];
                int64_t said[3];
                const char *wrong; /* NULL: it is taken */
        } rows[] = {
                { COLLATE_RAGGED, 1, { -1 }, { 8 }, 1, { 8 }, { 8 }, NULL },
                { COLLATE_RAGGED, 1, { -1 }, { 8 }, 1, { 0 }, { 0 }, NULL },
                { COLLATE_RAGGED, 1, { -1 }, { 8 }, 1, { 9 }, { 9 }, "dimension 0 has 9 elements, and int32[..8] is" },
                { COLLATE_RAGGED, 1, { -1 }, { 8 }, 1, { UINT64_MAX }, { -1 }, "has -1 elements" },
                { COLLATE_PADDED, 2, { -1, 4 }, { 8, 4 }, 1, { 3 }, { 3, 4 }, NULL },
                { COLLATE_PADDED, 2, { 3, -1 }, { 3, 6 }, 1, { 0 }, { 3, 0 }, NULL },
                { COLLATE_STACK,
                  2,
                  { 3, -1 },
                  { 3, 6 },
                  1,
                  { 0 },
                  { 3, 0 },
                  "and int32[3:..6] is declared, of which none" },
                { COLLATE_STACK, 2, { 3, -1 }, { 3, 6 }, 1, { 6 }, { 3, 6 }, NULL },
                { COLLATE_PADDED, 3, { -1, -1, 3 }, { 8, 9, 3 }, 2, { 8, 9 }, { 8, 9, 3 }, NULL },
                { COLLATE_PADDED, 3, { -1, -1, 3 }, { 8, 9, 3 }, 2, { 9, 8 }, { 9, 8, 3 }, "dimension 0 has 9" },
                { COLLATE_PADDED, 3, { -1, -1, 3 }, { 8, 9, 3 }, 2, { 1, 0 }, { 1, 0, 3 }, "dimension 1 has 0" },
                { COLLATE_PADDED, 3, { -1, -1, 3 }, { 8, 9, 3 }, 2, { 1, 1ull << 63 }, { 1, -1, 3 }, "has -1" },
        };

        for (size_t i = 0; i < ARRAY_LENGTH(rows); i++) {
                struct field_form form = form_of(rows[i].how, rows[i].n_dims, rows[i].shape, rows[i].most);
                int64_t shape[FIELD_DIMS_MAX];
                struct why why;
                int r;

                ck_assert(delivered_varies(&form));
                ck_assert_uint_eq(delivered_n_sizes(&form), rows[i].n_sizes);
                delivered_shape(&form, rows[i].sizes, shape);
                ck_assert_mem_eq(shape, rows[i].said, rows[i].n_dims * sizeof(*shape));
                r = delivered_check(&form, shape, &why);
                ck_assert_int_eq(r, rows[i].wrong ? -EBADMSG : 0);
                ck_assert_msg(r == 0 || strstr(why.text, rows[i].wrong), "row %zu: %s", i, why.text);
        }
}
END_TEST

START_TEST(what_steps_make_a_field_of_does_not_vary) {
        const int64_t shape[] = { 8, 8, 3 };
        struct field_form form = form_of(COLLATE_STACK, 3, shape, shape), none = { .n_dims = 1, .shape = { -1 } };

        ck_assert(!delivered_varies(&form));
        ck_assert(!delivered_varies(&none));
}
END_TEST

static int32_t element(uint32_t sample, uint64_t idx) {
        return (int32_t)(sample * 1000000 + idx + 1);
}

/* Where element `at` of a sample is: by the strides of the tensor. */
static int32_t found(const uint8_t *slot, const struct dlp_slot_record *record, const struct dlp_place *places,
                     uint32_t idx_sample, const int64_t *at, uint32_t n_dims) {
        const struct dlp_tensor_record *tensor = &record->tensors[0];
        const uint8_t *bytes = slot + tensor->offset + (int64_t)idx_sample * tensor->strides[0];

        if (tensor->layout == DLP_RAGGED)
                bytes = slot + places[idx_sample].offset;
        for (uint32_t k = 0; k < n_dims; k++)
                bytes += at[k] * tensor->strides[k + 1];
        return *(const int32_t *)(const void *)bytes;
}

/* Each sample is written without gaps, as a process does it, copied, and found again element by element. */
static void check_batch(struct field_form *form, const char *steps, const int64_t shapes[BATCH][3], int64_t cut) {
        const struct layout_limits limits = { .batch_size = BATCH, .n_slots = 2, .memory_limit = 1ull << 30 };
        struct dlp_place places[2 * BATCH] = { 0 };
        struct dlp_slot_record record = { .n_samples = BATCH };
        struct collating collating;
        struct collation collation;
        struct layout layout;
        struct why why;
        size_t end, n_bytes;
        uint8_t *slot;

        ck_assert_int_eq(collation_of(steps, &collation, &end, &why), 0);
        ck_assert_msg(collation_apply(&collation, form, &why) == 0, "%s", why.text);
        ck_assert_msg(layout_plan(form, 1, &limits, &layout, &why) == 0, "%s", why.text);
        ck_assert_uint_ge(layout.fields[0].result_bytes, form->max_bytes);
        n_bytes = (layout.slot_bytes + DLP_SLOT_ALIGN) / DLP_SLOT_ALIGN * DLP_SLOT_ALIGN;
        slot = aligned_alloc(DLP_SLOT_ALIGN, n_bytes);
        ck_assert_ptr_nonnull(slot);
        memset(slot, CANARY, n_bytes);
        collating_init(&collating, &layout, slot, places);
        for (uint32_t turn = 0; turn < 2 * BATCH; turn++) { /* twice, as after a failure */
                uint32_t i = (2 + turn) % BATCH;
                const struct field_layout *field = &layout.fields[0];
                uint8_t *from = slot + field->result_offset + field->result_bytes * i, *to = NULL;
                int64_t shape[FIELD_DIMS_MAX] = { shapes[i][0], shapes[i][1], shapes[i][2] }, other[FIELD_DIMS_MAX];
                uint64_t n = field_form_bytes(form, shape) / 4;

                for (uint64_t k = 0; k < n; k++)
                        ((int32_t *)(void *)from)[k] = element(i, k);
                if (form->how == COLLATE_PADDED)
                        ck_assert_int_eq(padding_fit(field, shape), 0);
                ck_assert_int_eq(collating_place(&collating, 0, i, shape, field_form_bytes(form, shape), &to, other),
                                 0);
                delivered_copy(field, shape, from, to);
        }
        collating_describe(&collating, BATCH, &record);
        collating_finish(&collating, &record);
        for (uint32_t i = 0; i < BATCH; i++) {
                int64_t at[3] = { 0 }, first = shapes[i][0] < cut ? shapes[i][0] : cut;
                bool is_left = form->how == COLLATE_PADDED && form->pad.is_left;

                for (at[0] = 0; at[0] < first; at[0]++)
                        for (at[1] = 0; at[1] < shapes[i][1]; at[1]++)
                                for (at[2] = 0; at[2] < shapes[i][2]; at[2]++) {
                                        uint64_t idx = (uint64_t)((at[0] * shapes[i][1] + at[1]) * shapes[i][2] +
                                                                  at[2]);
                                        int64_t where[3] = { at[0], at[1], at[2] };

                                        if (is_left)
                                                where[0] += record.tensors[0].shape[1] - first;
                                        ck_assert_int_eq(found(slot, &record, places, i, where, form->n_dims),
                                                         element(i, idx));
                                }
        }
        collating_fini(&collating);
        free(slot);
}

START_TEST(what_a_process_wrote_without_gaps_is_where_the_tensor_says) {
        static const int64_t ROWS[BATCH][3] = { { 3, 4, 1 }, { 0, 4, 1 }, { 8, 4, 1 }, { 1, 4, 1 }, { 5, 4, 1 } };
        static const int64_t SIDES[BATCH][3] = { { 3, 4, 2 }, { 1, 9, 2 }, { 8, 1, 2 }, { 8, 9, 2 }, { 5, 5, 2 } };
        static const int64_t PLANES[BATCH][3] = { { 2, 3, 4 }, { 2, 1, 9 }, { 2, 8, 1 }, { 2, 8, 9 }, { 2, 5, 5 } };
        static const int64_t FEATURES[BATCH][3] = { { 3, 6, 1 }, { 3, 1, 1 }, { 3, 0, 1 }, { 3, 4, 1 }, { 3, 2, 1 } };
        static const int64_t SAME[BATCH][3] = { { 3, 5, 2 }, { 3, 5, 2 }, { 3, 5, 2 }, { 3, 5, 2 }, { 3, 5, 2 } };
        static const struct {
                const char *steps;
                enum collate_how how;
                uint32_t n_dims;
                int64_t shape[3], most[3];
                const int64_t (*shapes)[3];
                int64_t cut;
        } rows[] = {
                { "ragged", COLLATE_RAGGED, 2, { -1, 4 }, { 8, 4 }, ROWS, 99 },
                { "ragged(joined=true)", COLLATE_RAGGED, 2, { -1, 4 }, { 8, 4 }, ROWS, 99 },
                { "pad", COLLATE_RAGGED, 2, { -1, 4 }, { 8, 4 }, ROWS, 99 },
                { "pad(to=12)", COLLATE_RAGGED, 2, { -1, 4 }, { 8, 4 }, ROWS, 99 },
                { "pad(side=left)", COLLATE_RAGGED, 2, { -1, 4 }, { 8, 4 }, ROWS, 99 },
                { "pad(to=9, side=left)", COLLATE_RAGGED, 2, { -1, 4 }, { 8, 4 }, ROWS, 99 },
                { "pad(max=4, truncate=true)", COLLATE_RAGGED, 2, { -1, 4 }, { 8, 4 }, ROWS, 4 },
                { "pad(to=4, truncate=true, side=left)", COLLATE_RAGGED, 2, { -1, 4 }, { 8, 4 }, ROWS, 4 },
                { "pad", COLLATE_STACK, 3, { -1, -1, 2 }, { 8, 9, 2 }, SIDES, 99 },
                { "pad(multiple=16)", COLLATE_STACK, 3, { 2, -1, -1 }, { 2, 8, 9 }, PLANES, 99 },
                { "pad(multiple=4)", COLLATE_STACK, 2, { 3, -1 }, { 3, 6 }, FEATURES, 99 },
                { "stack", COLLATE_STACK, 3, { -1, -1, 2 }, { 8, 9, 2 }, SAME, 99 },
        };
        struct field_form form = form_of(rows[_i].how, rows[_i].n_dims, rows[_i].shape, rows[_i].most);

        check_batch(&form, rows[_i].steps, rows[_i].shapes, rows[_i].cut);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "sizes", the_sizes_that_a_process_says_are_completed_and_believed_only_within_what_is_declared, 0 },
                { "sizes", what_steps_make_a_field_of_does_not_vary, 0 },
                { "batches", what_a_process_wrote_without_gaps_is_where_the_tensor_says, 12 },
        };

        return suite_run("delivered", rows, ARRAY_LENGTH(rows));
}
