/* Samples that are padded, as they lie in a slot and are described: compared with padding written down once more,
 * plainly. And the last step of a pipeline's part, which says how samples become a batch. */

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/collate/collating.h"
#include "daemon/collate/collation.h"
#include "daemon/collate/padding.h"
#include "tests/support/collation_of.h"
#include "tests/support/suite.h"

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define BATCH               7u
#define LONGEST             23u
#define ABSENT              UINT64_MAX
#define CANARY              0xee

static uint32_t dice_state = 1;

static uint32_t dice(uint32_t n) {
        dice_state = dice_state * 1664525u + 1013904223u;
        return (dice_state >> 8) % n;
}

static struct layout_limits limits_of(uint32_t batch_size) {
        return (struct layout_limits){ .batch_size = batch_size, .n_slots = 2, .memory_limit = 1ull << 30 };
}

struct fixture {
        struct layout layout;
        struct collating collating;
        struct dlp_slot_record record;
        struct dlp_place *places;
        uint8_t *slot;
        size_t n_bytes;
};

/* The field, and one after it that must stay as it is. */
static void begin(struct fixture *f, const struct field_form *form) {
        const struct field_form forms[] = {
                *form,
                { .name = "after", .dtype = DLP_DTYPE_UINT8, .n_dims = 1, .shape = { 100 } },
        };
        struct layout_limits limits = limits_of(BATCH);

        memset(f, 0, sizeof(*f));
        ck_assert_int_eq(layout_plan(forms, 2, &limits, &f->layout, NULL), 0);
        f->n_bytes = (f->layout.slot_bytes + DLP_SLOT_ALIGN) / DLP_SLOT_ALIGN * DLP_SLOT_ALIGN;
        f->slot = aligned_alloc(DLP_SLOT_ALIGN, f->n_bytes);
        f->places = calloc((size_t)f->layout.n_ragged * BATCH + 1, sizeof(*f->places));
        ck_assert(f->slot && f->places);
        memset(f->slot, CANARY, f->n_bytes);
        collating_init(&f->collating, &f->layout, f->slot, f->places);
}

static void end(struct fixture *f) {
        collating_fini(&f->collating);
        free(f->places);
        free(f->slot);
}

/* ---- values ---------------------------------------------------------------------------------------------------- */

static int32_t element(uint32_t sample, uint64_t row, uint64_t k) {
        return (int32_t)(sample * 10000 + row * 10 + k + 1);
}

static uint8_t *place(struct fixture *f, uint32_t idx_sample, const int64_t *shape, uint64_t n_bytes) {
        int64_t other[FIELD_DIMS_MAX];
        uint8_t *bytes = NULL;

        ck_assert_int_eq(collating_place(&f->collating, 0, idx_sample, shape, n_bytes, &bytes, other), 0);
        return bytes;
}

/* Samples in any sequence, some of them twice, as if the first try had failed. */
static void place_rows(struct fixture *f, const uint64_t *lengths, uint32_t width) {
        uint32_t first = dice(BATCH);

        for (uint32_t turn = 0; turn < 2 * BATCH; turn++) {
                uint32_t i = (first + turn) % BATCH;
                uint64_t n = turn < BATCH ? dice(LONGEST + 1) : lengths[i];
                int64_t shape[] = { (int64_t)n, width };
                int32_t *into;

                if (n == ABSENT) {
                        collating_leave_out(&f->collating, 0, i);
                        continue;
                }
                into = (int32_t *)(void *)place(f, i, shape, n * width * 4);
                for (uint64_t row = 0; row < n; row++)
                        for (uint32_t k = 0; k < width; k++)
                                into[row * width + k] = element(i, row, k);
        }
}

/* What is left of a batch after some samples have been left out. */
static uint32_t leave_some_out(struct fixture *f, uint32_t *chosen) {
        uint32_t n = 0;

        for (uint32_t i = 0; i < BATCH; i++) {
                if (dice(4) == 0 && i + 1 < BATCH)
                        continue;
                if (n < i)
                        collating_move(&f->collating, &f->record, i, n);
                chosen[n++] = i;
        }
        f->record.n_samples = n;
        for (uint32_t i = 0; i < f->record.n_tensors; i++)
                f->record.tensors[i].shape[0] = n;
        return n;
}

static uint64_t expected_length(const struct padding_terms *terms, const uint64_t *lengths, const uint32_t *chosen,
                                uint32_t n) {
        uint64_t longest = 1;

        for (uint32_t i = 0; i < n; i++)
                if (lengths[chosen[i]] != ABSENT && lengths[chosen[i]] > longest)
                        longest = lengths[chosen[i]];
        if (terms->to[0])
                longest = terms->to[0];
        return (longest + terms->multiple - 1) / terms->multiple * terms->multiple;
}

static void check_row(const struct fixture *f, const struct padding_terms *terms, uint32_t place, uint32_t sample,
                      uint64_t n, uint64_t length, uint32_t width) {
        const struct dlp_tensor_record *tensors = f->record.tensors;
        const int32_t *row = (const int32_t *)(const void *)(f->slot + tensors[0].offset) + place * length * width;
        const uint8_t *mask = f->slot + tensors[1].offset + place * length;
        const int64_t *labels = (const int64_t *)(const void *)(f->slot + tensors[2].offset) + place * length;
        uint64_t shift = terms->labels == PADDING_LABELS_SHIFTED;

        for (uint64_t at = 0; at < length; at++) {
                uint64_t number = terms->is_left ? at - (length - n) : at;
                bool is_real = terms->is_left ? at >= length - n : at < n;

                ck_assert_uint_eq(mask[at], is_real);
                for (uint32_t k = 0; k < width; k++)
                        ck_assert_int_eq(row[at * width + k],
                                         is_real ? element(sample, number, k) : (int32_t)terms->value);
                if (terms->labels)
                        ck_assert_int_eq(labels[at], is_real && number + shift < n ? element(sample, number + shift, 0)
                                                                                   : LABEL_IGNORED);
        }
}

START_TEST(rows_are_padded_as_a_plain_loop_does_it_whatever_came_when_and_was_left_out) {
        for (uint32_t round = 0; round < 400; round++) {
                uint32_t width = 1 + dice(3), chosen[BATCH], n;
                struct field_form form = { .name = "x",
                                           .dtype = DLP_DTYPE_INT32,
                                           .how = COLLATE_PADDED,
                                           .n_dims = width > 1 ? 2 : 1,
                                           .shape = { -1, width },
                                           .unit_bytes = 4 * width,
                                           .max_bytes = 4ull * width * LONGEST,
                                           .n_padded_dims = 1 };
                struct padding_terms *terms = &form.pad;
                uint64_t lengths[BATCH], length;
                struct fixture f;

                *terms = (struct padding_terms){ .value = -3, .multiple = 1 + dice(5), .is_left = dice(2) };
                if (dice(2))
                        terms->to[0] = terms->to[1] = LONGEST + dice(9);
                if (width == 1)
                        terms->labels = dice(3);
                for (uint32_t i = 0; i < BATCH; i++)
                        lengths[i] = dice(5) == 0 ? ABSENT : dice(round % 8 == 0 ? 1 : LONGEST + 1);
                begin(&f, &form);
                place_rows(&f, lengths, width);
                collating_describe(&f.collating, BATCH, &f.record);
                n = leave_some_out(&f, chosen);
                collating_finish(&f.collating, &f.record);

                ck_assert_uint_eq(f.record.n_tensors, 3 + (terms->labels != 0));
                ck_assert_str_eq(f.record.tensors[1].name, "x_mask");
                length = expected_length(terms, lengths, chosen, n);
                ck_assert_int_eq(f.record.tensors[0].shape[1], (int64_t)length);
                ck_assert_int_eq(f.record.tensors[0].strides[0], (int64_t)(length * width * 4));
                ck_assert_int_eq(f.record.tensors[1].shape[1], (int64_t)length);
                for (uint32_t i = 0; i < n; i++)
                        check_row(&f, terms, i, chosen[i], lengths[chosen[i]] == ABSENT ? 0 : lengths[chosen[i]],
                                  length, width);
                for (uint32_t k = 0; k < 100 * BATCH; k++)
                        ck_assert_uint_eq(f.slot[f.layout.fields[1].offset + k], CANARY);
                end(&f);
        }
}
END_TEST

START_TEST(each_dtype_is_filled_with_the_value) {
        static const struct {
                enum dlp_dtype dtype;
                uint64_t bits;
        } ROWS[] = {
                { DLP_DTYPE_BOOL, 1 },
                { DLP_DTYPE_UINT8, 1 },
                { DLP_DTYPE_INT16, 1 },
                { DLP_DTYPE_UINT64, 1 },
                { DLP_DTYPE_FLOAT16, 0x3c00 },
                { DLP_DTYPE_BFLOAT16, 0x3f80 },
                { DLP_DTYPE_FLOAT32, 0x3f800000 },
                { DLP_DTYPE_FLOAT64, 0x3ff0000000000000 },
        };
        struct field_form form = { .name = "x",
                                   .dtype = ROWS[_i].dtype,
                                   .how = COLLATE_PADDED,
                                   .n_dims = 1,
                                   .shape = { -1 },
                                   .max_bytes = 64,
                                   .n_padded_dims = 1,
                                   .pad = { .value = 1, .multiple = 1, .to = { 8, 8 } } };
        const int64_t shape[] = { 0 };
        struct fixture f;
        uint64_t size = dlp_dtype_bytes(ROWS[_i].dtype);

        begin(&f, &form);
        place(&f, 0, shape, 0);
        collating_describe(&f.collating, 1, &f.record);
        f.record.n_samples = 1;
        collating_finish(&f.collating, &f.record);
        for (uint32_t i = 0; i < 8; i++)
                ck_assert_mem_eq(f.slot + f.layout.fields[0].offset + i * size, &ROWS[_i].bits, size);
        end(&f);
}
END_TEST

/* ---- pictures -------------------------------------------------------------------------------------------------- */

static uint8_t pixel(uint32_t sample, uint64_t y, uint64_t x, uint64_t channel) {
        return (uint8_t)(sample * 67 + y * 13 + x * 5 + channel);
}

static uint8_t *pixel_at(const struct fixture *f, const struct dlp_tensor_record *tensor, bool first, uint32_t i,
                         uint64_t y, uint64_t x, uint64_t channel) {
        uint64_t at[] = { first ? channel : y, first ? y : x, first ? x : channel };
        uint8_t *bytes = f->slot + tensor->offset + i * (uint64_t)tensor->strides[0];

        for (uint32_t k = 0; k < 3; k++)
                bytes += at[k] * (uint64_t)tensor->strides[k + 1];
        return bytes;
}

START_TEST(pictures_are_padded_where_they_lie_in_both_layouts) {
        for (uint32_t round = 0; round < 60; round++) {
                bool first = round % 2;
                struct field_form form = { .name = "image",
                                           .dtype = DLP_DTYPE_UINT8,
                                           .how = COLLATE_PADDED,
                                           .n_dims = 3,
                                           .shape = { first ? 3 : -1, -1, first ? -1 : 3 },
                                           .padded_dim = first,
                                           .n_padded_dims = 2,
                                           .bounds = { 9, 12 },
                                           .pad = { .value = 7, .multiple = 1 + dice(4) } };
                int64_t sizes[BATCH][2];
                uint32_t chosen[BATCH], n;
                struct dlp_tensor_record *tensors;
                uint64_t most[2] = { 0, 0 }, row, plane;
                struct fixture f;

                begin(&f, &form);
                row = f.layout.fields[0].padded.room[1] * f.layout.fields[0].padded.element_bytes;
                plane = f.layout.fields[0].padded.room[0] * row;
                for (uint32_t i = 0; i < BATCH; i++) {
                        int64_t h = 1 + dice(9), w = 1 + dice(12);
                        int64_t shape[] = { first ? 3 : h, first ? h : w, first ? w : 3 };
                        uint8_t *out = place(&f, i, shape, (uint64_t)(h * w) * 3);

                        sizes[i][0] = h;
                        sizes[i][1] = w;
                        for (int64_t y = 0; y < h; y++)
                                for (int64_t x = 0; x < w; x++)
                                        for (uint32_t c = 0; c < 3; c++)
                                                out[(uint64_t)y * row +
                                                    (first ? c * plane + (uint64_t)x : (uint64_t)x * 3 + c)] =
                                                        pixel(i, (uint64_t)y, (uint64_t)x, c);
                }
                collating_describe(&f.collating, BATCH, &f.record);
                n = leave_some_out(&f, chosen);
                collating_finish(&f.collating, &f.record);
                tensors = f.record.tensors;
                for (uint32_t i = 0; i < n; i++)
                        for (uint32_t k = 0; k < 2; k++)
                                if ((uint64_t)sizes[chosen[i]][k] > most[k])
                                        most[k] = (uint64_t)sizes[chosen[i]][k];
                for (uint32_t k = 0; k < 2; k++) {
                        most[k] = (most[k] + form.pad.multiple - 1) / form.pad.multiple * form.pad.multiple;
                        ck_assert_int_eq(tensors[0].shape[1 + first + k], (int64_t)most[k]);
                        ck_assert_int_eq(tensors[1].shape[1 + k], (int64_t)most[k]);
                }
                for (uint32_t i = 0; i < n; i++)
                        for (uint64_t y = 0; y < most[0]; y++)
                                for (uint64_t x = 0; x < most[1]; x++) {
                                        bool is_real = (int64_t)y < sizes[chosen[i]][0] &&
                                                       (int64_t)x < sizes[chosen[i]][1];

                                        ck_assert_uint_eq(f.slot[tensors[1].offset + (i * most[0] + y) * most[1] + x],
                                                          is_real);
                                        for (uint32_t c = 0; c < 3; c++)
                                                ck_assert_uint_eq(*pixel_at(&f, &tensors[0], first, i, y, x, c),
                                                                  is_real ? pixel(chosen[i], y, x, c) : 7);
                                }
                for (uint32_t k = 0; k < 100 * BATCH; k++)
                        ck_assert_uint_eq(f.slot[f.layout.fields[1].offset + k], CANARY);
                end(&f);
        }
}
END_TEST

/* ---- room ------------------------------------------------------------------------------------------------------ */

START_TEST(room_follows_from_the_longest_sample_or_from_what_is_said_and_else_from_memory_limit) {
        struct field_form form = { .name = "x",
                                   .dtype = DLP_DTYPE_INT32,
                                   .how = COLLATE_PADDED,
                                   .n_dims = 1,
                                   .shape = { -1 },
                                   .unit_bytes = 4,
                                   .max_bytes = 400,
                                   .n_padded_dims = 1,
                                   .pad = { .multiple = 8 } };
        struct layout_limits limits = limits_of(BATCH);
        struct layout layout;
        int64_t shape[] = { 51 };
        struct why why;

        ck_assert_int_eq(layout_plan(&form, 1, &limits, &layout, &why), 0);
        ck_assert_uint_eq(layout.fields[0].padded.limits[0], 100);
        ck_assert_uint_eq(layout.fields[0].sample_bytes, 104 * 4);
        form.pad.most[0] = form.pad.most[1] = 50;
        ck_assert_int_eq(layout_plan(&form, 1, &limits, &layout, &why), 0);
        ck_assert_uint_eq(layout.fields[0].padded.limits[0], 50);
        ck_assert_uint_eq(layout.fields[0].sample_bytes, 56 * 4);
        ck_assert_int_eq(padding_fit(&layout.fields[0], shape), -EFBIG);
        ck_assert_int_eq(padding_refuse(&layout.fields[0], shape, &why), -EFBIG);
        ck_assert_ptr_nonnull(strstr(why.text, "51 elements"));
        ck_assert_ptr_nonnull(strstr(why.text, "room for 50"));
        layout.fields[0].form.pad.truncates = 1;
        ck_assert_int_eq(padding_fit(&layout.fields[0], shape), 0);
        ck_assert_int_eq(shape[0], 50);

        form.pad.most[0] = form.pad.most[1] = 0;
        form.max_bytes = UINT64_MAX;
        ck_assert_int_eq(layout_plan(&form, 1, &limits, &layout, &why), 0);
        ck_assert_uint_eq(layout.fields[0].padded.limits[0] % 8, 0);
        ck_assert_uint_ge(layout.fields[0].sample_bytes, (64u << 20) / 2 / BATCH - 32);
        ck_assert_uint_le(layout.fields[0].sample_bytes, (64u << 20) / 2 / BATCH);

        form.pad.to[0] = form.pad.to[1] = form.pad.multiple = 2147483647;
        ck_assert_int_eq(layout_plan(&form, 1, &limits, &layout, &why), 0);
        form.n_dims = 3;
        form.shape[1] = form.shape[2] = INT32_MAX;
        ck_assert_int_eq(layout_plan(&form, 1, &limits, &layout, &why), -EOVERFLOW);
}
END_TEST

/* ---- the text -------------------------------------------------------------------------------------------------- */

static const struct {
        const char *text, *normal; /* NULL: no collation; "!...": refused with these words */
        size_t steps_end;
} TEXTS[] = {
        { "pad", "pad(multiple=1, to=longest, side=right, truncate=false)", 0 },
        { "to(int32) pad()  ", "pad(multiple=1, to=longest, side=right, truncate=false)", 10 },
        { "pad( side = left ,value=-1.50, to=3:3)", "pad(value=-1.5, multiple=1, to=3, side=left, truncate=false)", 0 },
        { "resize(8) pad(max=3:4, multiple=32)", "pad(multiple=32, to=longest, max=3:4, side=right, truncate=false)",
          10 },
        { "pad(labels=shifted, max=7, truncate=true)",
          "pad(multiple=1, to=longest, max=7, side=right, truncate=true, labels=shifted)", 0 },
        { "stack", "stack", 0 },
        { "a stack()", "stack", 2 },
        { "ragged", "ragged(joined=false)", 0 },
        { "ragged(joined=true)", "ragged(joined=true)", 0 },
        { "mlm(mask=103, vocab=30522, special=0:101) pad",
          "mlm(mask=103, vocab=30522, p=0.15, masked=0.8, random=0.1, special=0:101) pad(multiple=1, to=longest, "
          "side=right, truncate=false)",
          0 },
        { "to(int32) mlm(vocab=9,mask=0, p=1) pad(to=3)",
          "mlm(mask=0, vocab=9, p=1, masked=0.8, random=0.1) pad(multiple=1, to=3, side=right, truncate=false)", 10 },
        { "mlm(mask=1, vocab=3)", "!the next step is pad", 0 },
        { "mlm(mask=1, vocab=3) ragged", "!the next step is pad", 0 },
        { "mlm(mask=1, vocab=3) to(int32) pad", "!column 1: mlm makes labels", 0 },
        { "mlm pad", "!mlm needs its mask, as in mlm(mask=103, vocab=30522)", 0 },
        { "mlm(mask=1, vocab=3, p=2) pad", "!p: \"2\" is not allowed; expected a number from 0 to 1", 0 },
        { "mlm(mask=1, vocab=3, random=0.3) pad", "!masked is 0.8 and random 0.3", 0 },
        { "mlm(mask=1, vocab=3, special=1:) pad", "!whole numbers from 0 to", 0 },
        { "mlm(mask=1, vocab=3, special=0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0:0) pad", "!16 tokens at most", 0 },
        { "crop(8) mixup", "mixup(alpha=1)", 8 },
        { "mixup(0.2, num_classes=10)", "mixup(alpha=0.2, num_classes=10)", 0 },
        { "cutmix( alpha = 1.50 )", "cutmix(alpha=1.5)", 0 },
        { "mix(num_classes=3)",
          "mix(mixup_alpha=1, cutmix_alpha=0, prob=1, switch_prob=0.5, mode=batch, correct_lam=true, label_smoothing=0.1, "
          "num_classes=3, partner=mirrored)",
          0 },
        { "mix(cutmix_alpha=1, cutmix_minmax=0.2:0.8, correct_lam=false, mode=elem, partner=previous)",
          "mix(mixup_alpha=1, cutmix_alpha=1, cutmix_minmax=0.2:0.8, prob=1, switch_prob=0.5, mode=elem, "
          "correct_lam=false, label_smoothing=0.1, partner=previous)",
          0 },
        { "mixup(0.2) stack", "!column 12: \"stack\" after mixup", 0 },
        { "mixup(0)", "!alpha is 0", 0 },
        { "mixup(0.2, 10)", "!KEY=VALUE", 0 },
        { "cutmix(p=1)", "!no argument \"p\"; it has alpha, num_classes", 0 },
        { "mix(1)", "!KEY=VALUE", 0 },
        { "mix(cutmix_alpha=1, cutmix_minmax=0:0)",
          "!\"0:0\" is not allowed; expected FROM:TO with 0 <= FROM <= TO <= 1", 0 },
        { "mix(cutmix_alpha=1, cutmix_minmax=-0.1:1)", "!\"-0.1:1\"", 0 },
        { "mix(cutmix_alpha=1, cutmix_minmax=0.5:1.1)", "!\"0.5:1.1\"", 0 },
        { "mix(mode=pair, partner=previous)", "!leave partner=previous out", 0 },
        { "mlm(mask=1, vocab=3) mixup", "!the next step is pad", 0 },
        { "pad(4)", NULL, 6 },
        { "resize(8) pad(padding=4, fill=1)", NULL, 32 },
        { "pad(4) pad(value=1)", "pad(value=1, multiple=1, to=longest, side=right, truncate=false)", 7 },
        { "pad(fill=3)", NULL, 11 },
        { "json(\"a) stack\")", NULL, 16 },
        { "json(a[0].b) to(int64)", NULL, 22 },
        { "", NULL, 0 },
        { "?", NULL, 1 },
        { "pad to(int32)", "!column 5: \"to\" after pad", 0 },
        { "stack stack", "!column 7: \"stack\" after stack", 0 },
        { "stack ?", "!column 7: \"?\"; expected the end", 0 },
        { "pad(value=)", "!column 11", 0 },
        { "pad(value=nan)", "!finite", 0 },
        { "pad(value=1e999)", "!finite", 0 },
        { "pad(value=1", "!the text ends", 0 },
        { "pad(value=1,)", "!another argument", 0 },
        { "pad(value=1 2)", "!column 13", 0 },
        { "pad(value=1, value=2)", "!given twice", 0 },
        { "pad(multiple=0)", "!1 to 2147483647", 0 },
        { "pad(multiple=99999999999999999999)", "!1 to 2147483647", 0 },
        { "pad(multiple=-1)", "!whole number", 0 },
        { "pad(to=1:)", "!N or HEIGHT:WIDTH, whole numbers from 1 to", 0 },
        { "pad(max=longest)", "!whole numbers from 1 to", 0 },
        { "pad(mask=a-b)", "!mask=a-b; expected a name of 1 to 31 bytes", 0 },
        { "pad(to=1, max=2)", "!leave max out", 0 },
        { "pad(truncate=true)", "!to=N or max=N", 0 },
        { "pad(size=3)",
          "!no argument \"size\" (did you mean \"side\"?); it has value, multiple, to, max, side, truncate, labels",
          0 },
        { "stack(1)", "!no arguments", 0 },
        { "ragged(true)", "!KEY=VALUE", 0 },
};

START_TEST(a_collation_is_the_last_step_in_its_one_normal_spelling_or_refused_with_the_column) {
        struct collation collation, again;
        const char *text = TEXTS[_i].text, *normal = TEXTS[_i].normal;
        size_t steps_end = 99, end;
        struct why why = { 0 };
        int r = collation_of(text, &collation, &steps_end, &why);
        char *printed;

        if (normal && normal[0] == '!') {
                ck_assert_int_eq(r, -EINVAL);
                ck_assert_msg(strstr(why.text, normal + 1) != NULL, "%s", why.text);
                ck_assert_msg(strstr(why.text, "pipeline, column ") == why.text, "%s", why.text);
                return;
        }
        ck_assert_msg(r == 0, "%s", why.text);
        ck_assert_uint_eq(steps_end, TEXTS[_i].steps_end);
        ck_assert(!normal == !collation.type);
        if (!normal)
                return;
        printed = collation_text(&collation);
        ck_assert_str_eq(printed, normal);
        ck_assert_int_eq(collation_of(printed, &again, &end, &why), 0);
        ck_assert_uint_eq(end, 0);
        free(printed);
}
END_TEST

START_TEST(a_field_that_cannot_be_collated_so_is_refused_by_name) {
        static const struct {
                const char *text, *words;
                struct field_form form;
        } ROWS[] = {
                { "pad", "one number", { .name = "f", .dtype = DLP_DTYPE_INT64 } },
                { "pad", "text", { .name = "f", .dtype = DLP_DTYPE_TEXT, .n_dims = 1, .shape = { -1 } } },
                { "pad",
                  "several places",
                  { .name = "f", .n_dims = 1, .shape = { 9 }, .is_gathered = true, .dtype = DLP_DTYPE_INT64 } },
                { "pad",
                  "more than its first",
                  { .name = "f", .n_dims = 2, .shape = { -1, -1 }, .dtype = DLP_DTYPE_INT64 } },
                { "pad",
                  "without elements",
                  { .name = "f", .n_dims = 2, .shape = { -1, 0 }, .dtype = DLP_DTYPE_INT64 } },
                { "pad",
                  "max=HEIGHT:WIDTH",
                  { .name = "f", .n_dims = 3, .shape = { -1, -1, 3 }, .n_padded_dims = 2, .dtype = DLP_DTYPE_UINT8 } },
                { "pad(side=left)",
                  "leave side out",
                  { .name = "f", .n_dims = 3, .shape = { -1, -1, 3 }, .n_padded_dims = 2, .dtype = DLP_DTYPE_UINT8 } },
                { "pad(value=300)",
                  "uint8, which cannot hold value=300",
                  { .name = "f", .n_dims = 1, .shape = { -1 }, .dtype = DLP_DTYPE_UINT8 } },
                { "pad(labels=same)",
                  "labels",
                  { .name = "f", .n_dims = 2, .shape = { -1, 2 }, .dtype = DLP_DTYPE_INT32 } },
                { "mlm(mask=9, vocab=9) pad(labels=same)",
                  "leave labels out",
                  { .name = "f", .n_dims = 1, .shape = { -1 }, .dtype = DLP_DTYPE_INT32 } },
                { "mlm(mask=9, vocab=257) pad",
                  "cannot hold the token 256",
                  { .name = "f", .n_dims = 1, .shape = { -1 }, .dtype = DLP_DTYPE_UINT8 } },
                { "mlm(mask=9, vocab=9) pad",
                  "float32 with 1",
                  { .name = "f", .n_dims = 1, .shape = { -1 }, .dtype = DLP_DTYPE_FLOAT32 } },
                { "ragged",
                  "pictures",
                  { .name = "f", .n_dims = 3, .shape = { -1, -1, 3 }, .n_padded_dims = 2, .dtype = DLP_DTYPE_UINT8 } },
                { "stack",
                  "bytes",
                  { .name = "f", .dtype = DLP_DTYPE_BYTES, .how = COLLATE_RAGGED, .n_dims = 1, .shape = { -1 } } },
        };
        struct field_form form = ROWS[_i].form;
        struct collation collation;
        struct why why;
        size_t end;

        ck_assert_int_eq(collation_of(ROWS[_i].text, &collation, &end, &why), 0);
        ck_assert_int_eq(collation_apply(&collation, &form, &why), -EINVAL);
        ck_assert_ptr_nonnull(strstr(why.text, "field f "));
        ck_assert_msg(strstr(why.text, ROWS[_i].words) != NULL, "%s", why.text);
}
END_TEST

/* What becomes of tokens, as it is written down in the header. */
START_TEST(tokens_are_hidden_as_often_as_it_is_said_and_each_label_is_what_was_there) {
        const struct mlm_terms terms = { .mask = 103,
                                         .vocab = 30522,
                                         .p = 0.15,
                                         .masked = 0.8,
                                         .random = 0.1,
                                         .n_special = 2,
                                         .special = { 0, 101 } };
        enum {
                N = 200000
        };
        int n_chosen = 0, n_masked = 0, n_same = 0;
        int32_t *tokens = calloc(N, sizeof(*tokens)), *again = calloc(N, sizeof(*again));
        int64_t *labels = calloc(N, sizeof(*labels)), *labels_again = calloc(N, sizeof(*labels_again));

        ck_assert(tokens && again && labels && labels_again);
        for (uint32_t i = 0; i < N; i++)
                tokens[i] = again[i] = i % 10 == 0 ? (int32_t)terms.special[i / 10 % 2] : (int32_t)(1000 + i % 20000);
        mlm_hide(&terms, 5, 1, 7, DLP_DTYPE_INT32, (uint8_t *)tokens, N, labels);
        mlm_hide(&terms, 5, 1, 7, DLP_DTYPE_INT32, (uint8_t *)again, N / 2, labels_again); /* of a sample that is cut */
        ck_assert_mem_eq(tokens, again, N / 2 * sizeof(*tokens));
        ck_assert_mem_eq(labels, labels_again, N / 2 * sizeof(*labels));
        for (uint32_t i = 0; i < N; i++) {
                int64_t was = i % 10 == 0 ? (int64_t)terms.special[i / 10 % 2] : 1000 + i % 20000;

                if (labels[i] == LABEL_IGNORED) {
                        ck_assert_int_eq(tokens[i], was);
                        continue;
                }
                ck_assert_int_eq(labels[i], was);
                ck_assert_uint_ne(i % 10, 0);
                ck_assert(tokens[i] >= 0 && tokens[i] < 30522);
                n_chosen++;
                n_masked += tokens[i] == 103;
                n_same += tokens[i] == was;
        }
        /* within 6 deviations; the draws are the same each time */
        ck_assert_int_lt(abs(n_chosen - 27000), 910);
        ck_assert_int_lt(abs(n_masked - n_chosen * 8 / 10), 400);
        ck_assert_int_lt(abs(n_same - n_chosen / 10), 300);
        mlm_hide(&terms, 5, 2, 7, DLP_DTYPE_INT32, (uint8_t *)again, N / 2, labels_again);
        ck_assert(memcmp(labels, labels_again, N / 2 * sizeof(*labels)) != 0);
        free(tokens);
        free(again);
        free(labels);
        free(labels_again);
}
END_TEST

START_TEST(joined_samples_lie_one_after_the_other) {
        const struct field_form form = { .name = "x",
                                         .dtype = DLP_DTYPE_UINT8,
                                         .how = COLLATE_RAGGED,
                                         .n_dims = 1,
                                         .shape = { -1 },
                                         .max_bytes = 300,
                                         .is_joined = true };
        const uint64_t lengths[BATCH] = { 300, 0, 5, 256, 1, 299, 7 };
        struct fixture f;
        uint64_t offset;

        begin(&f, &form);
        for (uint32_t i = BATCH; i-- > 0;) {
                const int64_t shape[] = { (int64_t)lengths[i] };

                if (i == 4)
                        collating_leave_out(&f.collating, 0, i);
                else
                        memset(place(&f, i, shape, lengths[i]), (int)i, lengths[i]);
        }
        collating_describe(&f.collating, BATCH, &f.record);
        f.record.n_samples = BATCH;
        collating_finish(&f.collating, &f.record);
        offset = f.layout.fields[0].offset;
        for (uint32_t i = 0; i < BATCH; i++) {
                if (i == 4)
                        continue;
                ck_assert_uint_eq(f.places[i].offset, offset);
                for (uint64_t k = 0; k < lengths[i]; k++)
                        ck_assert_uint_eq(f.slot[offset + k], i);
                offset += lengths[i];
        }
        end(&f);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "batches", rows_are_padded_as_a_plain_loop_does_it_whatever_came_when_and_was_left_out, 0 },
                { "batches", each_dtype_is_filled_with_the_value, 8 },
                { "batches", pictures_are_padded_where_they_lie_in_both_layouts, 0 },
                { "tokens", tokens_are_hidden_as_often_as_it_is_said_and_each_label_is_what_was_there, 0 },
                { "batches", joined_samples_lie_one_after_the_other, 0 },
                { "layouts", room_follows_from_the_longest_sample_or_from_what_is_said_and_else_from_memory_limit, 0 },
                { "texts", a_collation_is_the_last_step_in_its_one_normal_spelling_or_refused_with_the_column,
                  ARRAY_LENGTH(TEXTS) },
                { "texts", a_field_that_cannot_be_collated_so_is_refused_by_name, 14 },
        };

        return suite_run("padding", rows, ARRAY_LENGTH(rows));
}
