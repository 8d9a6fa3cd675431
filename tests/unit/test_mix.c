/* Samples that are mixed with others of their batch, in their places: compared with mixing written down once more,
 * plainly, from copies. And what is drawn for them. Python compares the same with torch (test_mixing.py). */

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/base/half.h"
#include "daemon/collate/collating.h"
#include "daemon/collate/mix/blend.h"
#include "daemon/collate/mix/mixing.h"
#include "tests/support/suite.h"

#define ARRAY_LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define CANARY              0xee

static uint32_t dice_state = 1;

static uint32_t dice(uint32_t n) {
        dice_state = dice_state * 1664525u + 1013904223u;
        return (uint32_t)((uint64_t)dice_state * n >> 32);
}

/* ---- elements -------------------------------------------------------------------------------------------------- */

static float float_of(uint32_t bits) {
        float value;

        memcpy(&value, &bits, sizeof(value));
        return value;
}

START_TEST(every_half_becomes_its_float_and_comes_back) {
        for (uint32_t bits = 0; bits < 0x10000; bits++) {
                uint32_t exponent = bits >> 10 & 0x1f, fraction = bits & 0x3ff;
                float value = float_of(float32_from_half((uint16_t)bits));
                double sign = bits >> 15 ? -1 : 1;

                if (exponent == 31 && fraction) {
                        ck_assert(isnan(value));
                        continue;
                }
                ck_assert(value == sign * (exponent == 31  ? (double)INFINITY
                                           : exponent == 0 ? ldexp(fraction, -24)
                                                           : ldexp(fraction + 1024, (int)exponent - 25)));
                ck_assert(half_from_float32(float32_from_half((uint16_t)bits)) == bits);
                ck_assert((signbit(value) != 0) == (bits >> 15 != 0));
        }
}
END_TEST

START_TEST(halves_are_mixed_alike_on_every_cpu) {
        uint16_t a[1003], b[ARRAY_LENGTH(a)], other[ARRAY_LENGTH(a)];

        if (!blend_half_f16c())
                return;
        for (unsigned turn = 0; turn < 500; turn++) {
                double lam = turn == 0 ? 0 : dice(1u << 31) * 0x1p-31;
                size_t n = 1 + dice(ARRAY_LENGTH(a)), skip = dice(3) < n ? dice(3) : 0;

                for (size_t i = 0; i < ARRAY_LENGTH(a); i++) {
                        a[i] = (uint16_t)dice(0x10000);
                        b[i] = (uint16_t)(dice(8) ? (a[i] & 0xfc00u) ^ dice(0x0c00) : dice(0x10000));
                        if ((a[i] & 0x7fff) > 0x7bff)
                                a[i] &= 0xbfff;
                        if ((b[i] & 0x7fff) > 0x7bff)
                                b[i] &= 0xbfff;
                }
                n = n > skip ? n - skip : 1;
                memcpy(other, a, sizeof(other));
                blend_half(a + skip, b + skip, n, lam);
                blend_half_f16c()(other + skip, b + skip, n, lam);
                ck_assert_mem_eq(a, other, sizeof(a));
        }
}
END_TEST

START_TEST(bfloat16_is_rounded_after_each_product_and_their_sum) {
        for (uint32_t i = 0; i < 200000; i++) {
                uint16_t a = (uint16_t)dice(0x10000), b = (uint16_t)dice(0x10000), mixed = a;
                double lam = dice(1u << 31) * 0x1p-31;
                float own = float_of((uint32_t)a << 16) * (float)lam,
                      other = float_of((uint32_t)b << 16) * (float)(1 - lam);
                float sum;
                uint32_t bits;

                memcpy(&bits, &own, sizeof(bits));
                own = float_of((uint32_t)bfloat16_from_float32(bits) << 16);
                memcpy(&bits, &other, sizeof(bits));
                other = float_of((uint32_t)bfloat16_from_float32(bits) << 16);
                sum = own + other;
                memcpy(&bits, &sum, sizeof(bits));
                blend_of(DLP_DTYPE_BFLOAT16)(&mixed, &b, 1, lam);
                ck_assert(mixed == bfloat16_from_float32(bits));
        }
}
END_TEST

START_TEST(bytes_are_rounded_to_the_nearest_ties_to_even) {
        static const double LAMS[] = { 0, 0.1, 0.25, 0.5, 0.7312345, 0.999 };
        uint8_t a[256], b[256];

        for (size_t k = 0; k < ARRAY_LENGTH(LAMS); k++)
                for (unsigned level = 0; level < 256; level++) {
                        for (unsigned i = 0; i < 256; i++)
                                a[i] = (uint8_t)i;
                        memset(b, (int)level, sizeof(b));
                        blend_of(DLP_DTYPE_UINT8)(a, b, sizeof(a), LAMS[k]);
                        for (unsigned i = 0; i < 256; i++) {
                                float own = (float)i * (float)LAMS[k], other = (float)level * (float)(1 - LAMS[k]);

                                ck_assert(a[i] == (uint8_t)rintf(own + other));
                        }
                }
}
END_TEST

/* ---- batches --------------------------------------------------------------------------------------------------- */

#define BATCH_MAX 9u

struct fixture {
        struct layout layout;
        struct dlp_slot_record record;
        struct collating collating;
        uint8_t *slot, *before;
        size_t n_bytes;
};

static void begin(struct fixture *f, const struct field_form *forms, uint32_t n_fields, uint32_t n_samples) {
        struct layout_limits limits = { .batch_size = BATCH_MAX, .n_slots = 2, .memory_limit = 1ull << 30 };

        memset(f, 0, sizeof(*f));
        ck_assert_int_eq(layout_plan(forms, n_fields, &limits, &f->layout, NULL), 0);
        f->n_bytes = (f->layout.slot_bytes + DLP_SLOT_ALIGN) / DLP_SLOT_ALIGN * DLP_SLOT_ALIGN;
        f->slot = aligned_alloc(DLP_SLOT_ALIGN, f->n_bytes);
        f->before = malloc(f->n_bytes);
        ck_assert(f->slot && f->before);
        memset(f->slot, CANARY, f->n_bytes);
        collating_init(&f->collating, &f->layout, f->slot, NULL);
        f->record.n_samples = n_samples;
        collating_describe(&f->collating, n_samples, &f->record);
}

static void end(struct fixture *f) {
        collating_fini(&f->collating);
        free(f->slot);
        free(f->before);
}

static void fill(struct fixture *f, uint32_t idx_field) {
        const struct field_layout *field = &f->layout.fields[idx_field];

        for (uint64_t i = 0; i < f->record.n_samples * field->sample_bytes; i += dlp_dtype_bytes(field->form.dtype)) {
                uint8_t *element = f->slot + field->offset + i;
                float value = (float)dice(1u << 20) * 0x1p-18f - 2;
                uint32_t bits;

                memcpy(&bits, &value, sizeof(bits));
                if (field->form.dtype == DLP_DTYPE_FLOAT32)
                        memcpy(element, &value, sizeof(value));
                else if (field->form.dtype == DLP_DTYPE_FLOAT64)
                        memcpy(element, &(double){ value }, sizeof(double));
                else if (field->form.dtype == DLP_DTYPE_UINT8)
                        *element = (uint8_t)dice(256);
                else
                        memcpy(element,
                               &(uint16_t){ field->form.dtype == DLP_DTYPE_FLOAT16 ? half_from_float32(bits)
                                                                                   : bfloat16_from_float32(bits) },
                               2);
        }
}

/* Element by element, each with its partner as it was. */
static void check(const struct fixture *f, uint32_t idx_field, const struct mix_key *key, uint32_t height,
                  uint32_t width) {
        const struct field_layout *field = &f->layout.fields[idx_field];
        const struct field_form *form = &field->form;
        uint32_t n = f->record.n_samples, size = (uint32_t)dlp_dtype_bytes(form->dtype);
        uint32_t channels = form->n_dims == 3 ? (uint32_t)form->shape[form->padded_dim ? 0 : 2] : 1;

        for (uint32_t i = 0; i < n; i++) {
                uint32_t partner = form->mix.partner == MIX_PREVIOUS ? (i + n - 1) % n : n - 1 - i;
                struct mix_draw draw;

                mix_draw(&form->mix, key->seed, key->epoch, key->position, i, n, height, width, &draw);
                for (uint64_t at = 0; at < field->sample_bytes / size; at++) {
                        const uint8_t *own = f->before + field->offset + i * field->sample_bytes + at * size;
                        const uint8_t *other = f->before + field->offset + partner * field->sample_bytes + at * size;
                        const uint8_t *got = f->slot + field->offset + i * field->sample_bytes + at * size;
                        uint64_t pixel = form->padded_dim ? at % ((uint64_t)height * width) : at / channels;
                        uint8_t wanted[8];

                        memcpy(wanted, own, size);
                        if (draw.is_cut && form->n_dims == 3) {
                                uint64_t x = pixel % width, y = pixel / width;

                                if (y >= draw.box.top && y < draw.box.bottom && x >= draw.box.left &&
                                    x < draw.box.right)
                                        memcpy(wanted, other, size);
                        } else if (draw.lam < 1) {
                                blend_of(form->dtype)(wanted, other, 1, draw.lam);
                        }
                        ck_assert(memcmp(got, wanted, size) == 0);
                }
        }
}

static struct field_form picture_form(enum dlp_dtype dtype, bool channels_first, uint32_t height, uint32_t width,
                                      uint32_t n_channels) {
        struct field_form form = {
                .name = "image", .dtype = dtype, .n_dims = 3, .padded_dim = channels_first, .n_padded_dims = 2
        };

        form.shape[0] = channels_first ? n_channels : height;
        form.shape[1] = channels_first ? height : width;
        form.shape[2] = channels_first ? width : n_channels;
        return form;
}

static struct mix_terms any_terms(void) {
        struct mix_terms terms = { .mixup = dice(3) ? 0.4 : 0,
                                   .p = dice(4) ? 1 : 0.5,
                                   .switch_p = 0.5,
                                   .mode = dice(3),
                                   .partner = dice(2),
                                   .keeps_lam = dice(2) };

        if (terms.mixup <= 0 || dice(2))
                terms.cutmix = 1;
        if (terms.mode == MIX_PAIR)
                terms.partner = MIX_MIRRORED;
        if (dice(3) == 0) {
                terms.minmax[0] = 0.1;
                terms.minmax[1] = 0.9;
        }
        return terms;
}

START_TEST(a_batch_is_mixed_in_its_place_as_if_it_were_mixed_from_a_copy) {
        static const enum dlp_dtype DTYPES[] = { DLP_DTYPE_UINT8, DLP_DTYPE_FLOAT16, DLP_DTYPE_BFLOAT16,
                                                 DLP_DTYPE_FLOAT32, DLP_DTYPE_FLOAT64 };

        for (unsigned turn = 0; turn < 400; turn++) {
                uint32_t height = 1 + dice(dice(4) ? 9 : 90), width = 1 + dice(dice(4) ? 9 : 90);
                struct field_form forms[] = {
                        picture_form(DTYPES[dice(ARRAY_LENGTH(DTYPES))], dice(2), height, width, 1 + dice(4)),
                        { .name = "label", .dtype = DLP_DTYPE_FLOAT32, .n_dims = 1, .shape = { 1 + dice(3000) } },
                        { .name = "after", .dtype = DLP_DTYPE_UINT8, .n_dims = 1, .shape = { 100 } },
                };
                struct mix_key key = { .seed = dice(100), .epoch = turn, .position = dice(1000) };
                struct mix_draw draws[BATCH_MAX];
                struct fixture f;

                forms[0].mix = forms[1].mix = any_terms();
                begin(&f, forms, ARRAY_LENGTH(forms), 1 + dice(BATCH_MAX));
                fill(&f, 0);
                fill(&f, 1);
                ck_assert_uint_eq(mixing_n_draws(&f.layout), forms[0].mix.mode == MIX_BATCH ? 1 : BATCH_MAX);
                memcpy(f.before, f.slot, f.n_bytes);
                for (uint32_t i = 0; i < ARRAY_LENGTH(forms); i++)
                        mixing_run(&f.layout, i, &key, &f.record, f.slot, draws);
                check(&f, 0, &key, height, width);
                check(&f, 1, &key, height, width);
                for (uint32_t i = 0; i < 2; i++) { /* all else is as it was */
                        const struct field_layout *field = &f.layout.fields[i];

                        memset(f.slot + field->offset, 0, f.record.n_samples * field->sample_bytes);
                        memset(f.before + field->offset, 0, f.record.n_samples * field->sample_bytes);
                }
                ck_assert_mem_eq(f.slot, f.before, f.n_bytes);
                end(&f);
        }
}
END_TEST

START_TEST(a_batch_without_samples_is_left_alone) {
        struct field_form form = picture_form(DLP_DTYPE_FLOAT32, false, 4, 4, 3);
        struct mix_key key = { .seed = 1 };
        struct mix_draw draw;
        struct fixture f;

        form.mix = (struct mix_terms){ .mixup = 1, .p = 1 };
        begin(&f, &form, 1, 0);
        memcpy(f.before, f.slot, f.n_bytes);
        mixing_run(&f.layout, 0, &key, &f.record, f.slot, &draw);
        ck_assert_mem_eq(f.slot, f.before, f.n_bytes);
        end(&f);
}
END_TEST

/* ---- draws ----------------------------------------------------------------------------------------------------- */

static double uniform(double x) {
        return x;
}

static double arcsine(double x) {
        return 2 / M_PI * asin(sqrt(x));
}

static double of_two(double x) {
        return x * x * (3 - 2 * x);
}

static double of_three(double x) {
        return x * x * x * (10 - 15 * x + 6 * x * x);
}

static int compare(const void *one, const void *other) {
        double a = *(const double *)one, b = *(const double *)other;

        return a < b ? -1 : a > b;
}

/* Kolmogorov and Smirnov: 40,000 draws are nowhere farther from their distribution than 1.95 / sqrt(n), which one of a
 * thousand sequences would be. */
START_TEST(lam_is_distributed_as_beta) {
        static const struct {
                double alpha;
                double (*share)(double x); /* below x */
        } ROWS[] = { { 1, uniform }, { 0.5, arcsine }, { 2, of_two }, { 3, of_three } };
        const uint32_t n = 40000;
        double *drawn = calloc(n, sizeof(*drawn));
        struct mix_draw draw;

        ck_assert(drawn != NULL);
        for (size_t k = 0; k < ARRAY_LENGTH(ROWS); k++) {
                struct mix_terms terms = { .mixup = ROWS[k].alpha, .p = 1 };

                for (uint32_t i = 0; i < n; i++) {
                        mix_draw(&terms, 7, 0, i, 0, 1, 0, 0, &draw);
                        drawn[i] = draw.lam;
                }
                qsort(drawn, n, sizeof(*drawn), compare);
                for (uint32_t i = 0; i < n; i++)
                        ck_assert(fabs(ROWS[k].share(drawn[i]) - (i + 0.5) / n) < 1.95 / sqrt(n));
        }
        free(drawn);
}
END_TEST

/* The variance of Beta(a, a) is 1 / (4 (2 a + 1)). */
START_TEST(lam_is_within_0_and_1_for_any_alpha) {
        static const double ALPHAS[] = { 1e-300, 1e-9, 0.01, 0.2, 0.8, 7, 100, 1e6, 1e300 };
        static const uint32_t EXTREMES[] = { 0, 1, 0x7fffffff, 0x80000000, 0xffffffff };

        for (size_t k = 0; k < ARRAY_LENGTH(ALPHAS); k++) {
                double sum = 0, squares = 0, variance = 1 / (4 * (2 * ALPHAS[k] + 1));
                uint32_t n = 20000;

                for (uint32_t i = 0; i < n; i++) {
                        uint32_t words[3] = { dice(UINT32_MAX), dice(UINT32_MAX), dice(UINT32_MAX) };
                        double lam = mix_beta(ALPHAS[k], words);

                        ck_assert(lam >= 0 && lam <= 1);
                        sum += lam - 0.5;
                        squares += (lam - 0.5) * (lam - 0.5);
                }
                ck_assert_msg(fabs(sum / n) < 4 * sqrt(variance / n) + 1e-12, "alpha %g: mean %g", ALPHAS[k], sum / n);
                ck_assert_msg(fabs(squares / n - variance) < 0.05 * variance + 1e-12, "alpha %g: variance %g, not %g",
                              ALPHAS[k], squares / n, variance);
                for (size_t i = 0; i < ARRAY_LENGTH(EXTREMES) * ARRAY_LENGTH(EXTREMES); i++) {
                        uint32_t words[3] = { EXTREMES[i / ARRAY_LENGTH(EXTREMES)],
                                              EXTREMES[i % ARRAY_LENGTH(EXTREMES)], 0 };
                        double lam = mix_beta(ALPHAS[k], words);

                        ck_assert(lam >= 0 && lam <= 1);
                }
        }
}
END_TEST

START_TEST(a_box_is_in_the_picture_and_lam_is_what_it_leaves) {
        for (unsigned turn = 0; turn < 20000; turn++) {
                uint32_t height = 1 + dice(60), width = 1 + dice(60), n = 1 + dice(8), i = dice(n);
                struct mix_terms terms = { .cutmix = 0.7, .p = 1, .mode = dice(3) };
                struct mix_draw draw;

                if (dice(2)) {
                        terms.minmax[0] = dice(100) / 100.0;
                        terms.minmax[1] = terms.minmax[0] < 0.01 ? 0.01 : fmin(1, terms.minmax[0] + dice(50) / 100.0);
                }
                mix_draw(&terms, turn, 1, 2, i, n, height, width, &draw);
                if (!draw.is_cut)
                        continue;
                ck_assert_uint_le(draw.box.top, draw.box.bottom);
                ck_assert_uint_le(draw.box.left, draw.box.right);
                ck_assert_uint_le(draw.box.bottom, height);
                ck_assert_uint_le(draw.box.right, width);
                ck_assert_double_eq_tol(draw.lam,
                                        1 - (double)(draw.box.bottom - draw.box.top) *
                                                        (draw.box.right - draw.box.left) / height / width,
                                        1e-7);
        }
}
END_TEST

START_TEST(draws_differ_with_each_of_seed_epoch_position_and_unit_and_with_nothing_else) {
        struct mix_terms terms = { .mixup = 0.4, .p = 1, .mode = MIX_ELEM };
        struct mix_draw first, again, other;

        mix_draw(&terms, 1, 2, 3, 4, 16, 0, 0, &first);
        mix_draw(&terms, 1, 2, 3, 4, 9, 8, 8, &again);
        ck_assert(first.lam == again.lam); /* neither the size of the batch nor that of the pictures */
        mix_draw(&terms, 9, 2, 3, 4, 16, 0, 0, &other);
        ck_assert(first.lam != other.lam);
        mix_draw(&terms, 1, 9, 3, 4, 16, 0, 0, &other);
        ck_assert(first.lam != other.lam);
        mix_draw(&terms, 1, 2, 1ull << 32 | 3, 4, 16, 0, 0, &other);
        ck_assert(first.lam != other.lam);
        mix_draw(&terms, 1, 2, 3, 5, 16, 0, 0, &other);
        ck_assert(first.lam != other.lam);
        terms.mode = MIX_PAIR;
        mix_draw(&terms, 1, 2, 3, 4, 16, 0, 0, &first);
        mix_draw(&terms, 1, 2, 3, 11, 16, 0, 0, &again);
        ck_assert(first.lam == again.lam);
        mix_draw(&terms, 1, 2, 3, 4, 9, 0, 0, &other); /* the middle one */
        ck_assert(other.lam == 1);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "elements", every_half_becomes_its_float_and_comes_back, 0 },
                { "elements", halves_are_mixed_alike_on_every_cpu, 0 },
                { "elements", bfloat16_is_rounded_after_each_product_and_their_sum, 0 },
                { "elements", bytes_are_rounded_to_the_nearest_ties_to_even, 0 },
                { "batches", a_batch_is_mixed_in_its_place_as_if_it_were_mixed_from_a_copy, 0 },
                { "batches", a_batch_without_samples_is_left_alone, 0 },
                { "draws", lam_is_distributed_as_beta, 0 },
                { "draws", lam_is_within_0_and_1_for_any_alpha, 0 },
                { "draws", a_box_is_in_the_picture_and_lam_is_what_it_leaves, 0 },
                { "draws", draws_differ_with_each_of_seed_epoch_position_and_unit_and_with_nothing_else, 0 },
        };

        return suite_run("mix", rows, ARRAY_LENGTH(rows));
}
