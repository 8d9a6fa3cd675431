/* What is left of a batch's samples to the caller's device, checked before the caller sees it: a daemon that says
 * something else than it promised, or says nonsense, is refused, and nothing outside of the slot is read. */
#include "client/lib/device/device_forms.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define N             3u
#define HEIGHT        5u
#define WIDTH         7u
#define OPERATIONS_AT 128u
#define SAMPLE_BYTES  256u
#define OFFSET        512u
#define SLOT_BYTES    (OFFSET + N * SAMPLE_BYTES)

/* A slot that ends where the last sample ends, so that a sanitizer sees what is read after it. */
struct fixture {
        struct dlc_left_form form;
        struct dli_forms forms;
        struct dlp_slot_record record;
        struct dlp_tensor_record *tensor; /* of the picture */
        struct dlp_left_operations *left; /* of the last sample: a contrast and a hue */
        uint8_t *slot;
};

static struct dlp_left_operations *left_of(struct fixture *f, uint32_t idx) {
        return (struct dlp_left_operations *)(void *)(f->slot + OFFSET + idx * SAMPLE_BYTES + OPERATIONS_AT);
}

static void fixture_init(struct fixture *f) {
        *f = (struct fixture){
                .form = { .tensor = "image", .dtype = DLC_FLOAT16, .n_channels = 3, .operations_at = OPERATIONS_AT },
                .record = { .n_samples = N, .n_tensors = 2 }
        };
        f->forms = (struct dli_forms){ &f->form, 1 };
        f->slot = calloc(1, SLOT_BYTES);
        f->record.tensors[0] = (struct dlp_tensor_record){ .name = "label", .n_dims = 1, .shape = { N } };
        f->record.tensors[1] = (struct dlp_tensor_record){ .name = "image",
                                                           .dtype = DLP_DTYPE_UINT8,
                                                           .layout = DLP_DENSE,
                                                           .n_dims = 4,
                                                           .shape = { N, HEIGHT, WIDTH, 3 },
                                                           .strides = { SAMPLE_BYTES, WIDTH * 3, 3, 1 },
                                                           .offset = OFFSET };
        f->tensor = &f->record.tensors[1];
        f->left = left_of(f, N - 1);
        f->left->n_operations = 2;
        f->left->operations[0] = (struct dlp_left_operation){ DLP_LEFT_CONTRAST, 0 };
        f->left->operations[1] = (struct dlp_left_operation){ DLP_LEFT_HUE, 0.5f };
}

static void fixture_fini(struct fixture *f) {
        free(f->slot);
}

static bool fits(const struct fixture *f) {
        return dli_forms_fit(&f->forms, &f->record, f->slot, SLOT_BYTES);
}

START_TEST(records_that_make_sense_are_taken) {
        struct fixture f;

        fixture_init(&f);
        ck_assert(fits(&f));
        for (uint32_t i = 0; i < N; i++) {
                struct dlp_left_operations *left = left_of(&f, i);

                left->flips = i + 1;
                left->n_operations = DLP_LEFT_OPERATIONS_MAX;
                for (uint32_t k = 0; k < DLP_LEFT_OPERATIONS_MAX; k++)
                        left->operations[k] = (struct dlp_left_operation){ 1 + k % 5, k % 5 == 3 ? -0.5f : 1000 };
        }
        ck_assert(fits(&f));
        f.form.operations_at = 0; /* then nobody looks */
        f.record.n_tensors = 0;
        ck_assert(fits(&f));
        fixture_fini(&f);
}
END_TEST

#define MEMBER(member) offsetof(struct dlp_tensor_record, member), sizeof(((struct dlp_tensor_record *)NULL)->member)

START_TEST(tensors_that_are_not_as_promised_are_refused) {
        static const struct {
                size_t at, n_bytes; /* of the member */
                int64_t value;
        } ROWS[] = {
                { MEMBER(name[0]), 'I' },
                { MEMBER(dtype), DLP_DTYPE_INT8 },
                { MEMBER(layout), DLP_WHOLE },
                { MEMBER(n_dims), 3 },
                { MEMBER(shape[3]), 1 },
                { MEMBER(shape[1]), 0 },
                { MEMBER(shape[2]), -7 },
                { MEMBER(shape[1]), HEIGHT + 2 }, /* the pixels would reach into the record */
                { MEMBER(shape[1]), INT64_MAX },
                { MEMBER(strides[0]), SAMPLE_BYTES - 64 }, /* fewer bytes than the record needs */
                { MEMBER(strides[0]), SAMPLE_BYTES - 1 },
                { MEMBER(strides[0]), SAMPLE_BYTES + 64 }, /* the last record would be outside of the slot */
                { MEMBER(strides[0]), -(int64_t)SAMPLE_BYTES },
                { MEMBER(strides[0]), INT64_MAX - 63 },
                { MEMBER(strides[1]), WIDTH * 3 + 1 },
                { MEMBER(strides[2]), 4 },
                { MEMBER(strides[3]), 0 },
                { MEMBER(shape[0]), N + 1 },
                { MEMBER(shape[0]), 0 },
                { MEMBER(shape[0]), INT64_MAX },
                { MEMBER(offset), OFFSET + 64 },
                { MEMBER(offset), OFFSET - 1 },
                { MEMBER(offset), -64 },
        };

        for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
                struct fixture f;

                fixture_init(&f);
                memcpy((uint8_t *)f.tensor + ROWS[i].at, &ROWS[i].value, ROWS[i].n_bytes);
                ck_assert_msg(!fits(&f), "row %zu", i);
                f.record.n_tensors = 1;
                ck_assert(!fits(&f));
                fixture_fini(&f);
        }
}
END_TEST

#define WORD(member) offsetof(struct dlp_left_operations, member)

START_TEST(records_that_make_no_sense_are_refused) {
        static const struct {
                size_t at;
                uint32_t value;
                float amount; /* if it is not 0 */
        } ROWS[] = {
                { WORD(flips), 4, 0 },
                { WORD(n_operations), DLP_LEFT_OPERATIONS_MAX + 1, 0 },
                { WORD(n_operations), 3, 0 }, /* the third is of no kind */
                { WORD(n_operations), UINT32_MAX, 0 },
                { WORD(operations[0].kind), DLP_LEFT_GRAYSCALE + 1, 0 },
                { WORD(operations[0].amount), 0, -1 },
                { WORD(operations[0].amount), 0, NAN },
                { WORD(operations[0].amount), 0, INFINITY },
                { WORD(operations[1].amount), 0, 0.51f },
                { WORD(operations[1].amount), 0, -0.51f },
                { WORD(scratch[DLP_LEFT_OPERATIONS_MAX - 1]), 1, 0 },
        };

        for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
                bool is_amount = ROWS[i].value == 0;
                struct fixture f;

                fixture_init(&f);
                memcpy((uint8_t *)f.left + ROWS[i].at, is_amount ? (const void *)&ROWS[i].amount : &ROWS[i].value, 4);
                ck_assert_msg(!fits(&f), "row %zu", i);
                fixture_fini(&f);
        }
}
END_TEST

START_TEST(no_record_leads_out_of_the_slot) {
        uint32_t state = 7, n_taken = 0;

        for (uint32_t round = 0; round < 200000; round++) {
                struct fixture f;
                uint8_t *bytes;

                fixture_init(&f);
                bytes = (uint8_t *)f.tensor;
                for (uint32_t k = 0; k < 1 + round % 3; k++) {
                        uint32_t at;

                        state = state * 1664525 + 1013904223;
                        at = DLP_TENSOR_NAME_MAX + (state >> 8) % (sizeof(*f.tensor) - DLP_TENSOR_NAME_MAX);
                        bytes[at] ^= (uint8_t)(1u << (state >> 28) % 8);
                }
                if (fits(&f)) {
                        n_taken++;
                        ck_assert(f.tensor->offset + (uint64_t)(f.tensor->shape[0] * f.tensor->strides[0]) <=
                                  SLOT_BYTES);
                }
                fixture_fini(&f);
        }
        ck_assert_uint_gt(n_taken, 0);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "left", records_that_make_sense_are_taken, 0 },
                { "left", tensors_that_are_not_as_promised_are_refused, 0 },
                { "left", records_that_make_no_sense_are_refused, 0 },
                { "left", no_record_leads_out_of_the_slot, 0 },
        };

        return suite_run("client_left", rows, sizeof(rows) / sizeof(rows[0]));
}
