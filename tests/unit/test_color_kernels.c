/* The kernel that changes colours, as the CPU runs it, beside the operations that the daemon does itself. */
#include "client/cuda/kernels/color.h"
#include "client/cuda/kernels/cpu.h"
#include "daemon/augment/operation.h"
#include "proto/left.h"
#include "tests/support/suite.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GUARD_BYTES 64u
#define GUARD       0xee

static const struct operation_type *const TYPES[] = {
        [DLK_COLOR_BRIGHTNESS] = &operation_brightness, [DLK_COLOR_CONTRAST] = &operation_contrast,
        [DLK_COLOR_SATURATION] = &operation_saturation, [DLK_COLOR_HUE] = &operation_hue,
        [DLK_COLOR_GRAYSCALE] = &operation_grayscale,
};

static uint32_t state = 1;

static uint32_t draw(uint32_t below) {
        state = state * 1664525 + 1013904223;
        return (uint32_t)((uint64_t)state * below >> 32);
}

/* ---- a batch, and what it is to become ------------------------------------------------------------------------- */

struct fixture {
        uint32_t n_samples, width, height, n_channels;
        size_t record_at, sample_bytes, n_bytes; /* the last with guards before and after */
        uint8_t *bytes, *expected;
};

static uint8_t *sample_of(const struct fixture *f, uint8_t *bytes, uint32_t idx) {
        return bytes + GUARD_BYTES + idx * f->sample_bytes;
}

static struct dlk_color_record *record_of(const struct fixture *f, uint8_t *bytes, uint32_t idx) {
        return (struct dlk_color_record *)(void *)(sample_of(f, bytes, idx) + f->record_at);
}

static struct fixture fixture_new(uint32_t n_samples, uint32_t width, uint32_t height, uint32_t n_channels) {
        struct fixture f = { n_samples, width, height, n_channels, 0, 0, 0, NULL, NULL };
        size_t n = (size_t)width * height * n_channels;

        f.record_at = (n + 15) / 16 * 16;
        f.sample_bytes = (f.record_at + sizeof(struct dlk_color_record) + 15) / 16 * 16;
        f.n_bytes = n_samples * f.sample_bytes + 2 * (size_t)GUARD_BYTES;
        f.bytes = malloc(f.n_bytes);
        f.expected = malloc(f.n_bytes);
        memset(f.bytes, GUARD, f.n_bytes);
        for (uint32_t i = 0; i < n_samples; i++) {
                uint8_t *pixels = sample_of(&f, f.bytes, i);

                for (size_t k = 0; k < n; k++) /* some of them grey, some at the ends */
                        pixels[k] = draw(4) == 0 ? (draw(2) ? 255 : 0) : (uint8_t)draw(256);
                memset(record_of(&f, f.bytes, i), 0, sizeof(struct dlk_color_record));
        }
        return f;
}

static void fixture_free(struct fixture *f) {
        free(f->bytes);
        free(f->expected);
}

static void add(const struct fixture *f, uint32_t idx, uint32_t kind, float amount) {
        struct dlk_color_record *record = record_of(f, f->bytes, idx);

        record->operations[record->n_operations++] = (struct dlk_color_operation){ kind, amount };
}

static float draw_amount(uint32_t kind) {
        float share = (float)draw(1 << 24) / (float)(1 << 24);

        return kind == DLK_COLOR_HUE ? share - 0.5f : share * share * (draw(8) ? 2 : 1000);
}

static void expect_sample(const struct fixture *f, uint32_t idx) {
        const struct dlk_color_record *record = record_of(f, f->bytes, idx);
        size_t n_pixels = (size_t)f->width * f->height;
        struct canvas canvas = { malloc(n_pixels * PIXEL_BYTES), (size_t)f->width * PIXEL_BYTES, f->width, f->height };
        const uint8_t *from = sample_of(f, f->bytes, idx);
        uint8_t *to = sample_of(f, f->expected, idx);

        for (size_t i = 0; i < n_pixels * PIXEL_BYTES; i++)
                canvas.pixels[i] = from[f->n_channels == 1 ? i / 3 : i];
        for (uint32_t i = 0; i < record->n_operations; i++) {
                struct operation operation = { .type = TYPES[record->operations[i].kind],
                                               .amount = record->operations[i].amount };

                operation.type->run(&operation, &canvas);
        }
        for (size_t i = 0; i < n_pixels * f->n_channels; i++)
                to[i] = canvas.pixels[f->n_channels == 1 ? i * 3 : i];
        free(canvas.pixels);
}

static void run_pass(const struct fixture *f, uint32_t pass) {
        struct dlk_color_batch batch = { .pixels = (uintptr_t)f->bytes + GUARD_BYTES,
                                         .sample_bytes = f->sample_bytes,
                                         .record_at = f->record_at,
                                         .n_samples = f->n_samples,
                                         .n_pixels = f->width * f->height,
                                         .n_channels = f->n_channels };
        struct dlk_color_launch launch;

        ck_assert(dlk_color_launch(&batch, pass, &launch));
        for (uint32_t i = 0; i < dlk_n_cpu_kernels; i++)
                if (strcmp(dlk_cpu_kernels[i].name, "dlk_color") == 0) {
                        ck_assert_uint_eq(dlk_cpu_kernels[i].params_bytes, sizeof(launch.params));
                        dlk_cpu_kernels[i].run(&launch.params, launch.grid, launch.block);
                        return;
                }
        ck_abort_msg("no kernel");
}

static uint32_t n_contrasts(const struct fixture *f) {
        uint32_t most = 0;

        for (uint32_t i = 0; i < f->n_samples; i++) {
                const struct dlk_color_record *record = record_of(f, f->bytes, i);
                uint32_t n = 0;

                for (uint32_t k = 0; k < record->n_operations; k++)
                        n += record->operations[k].kind == DLK_COLOR_CONTRAST;
                most = n > most ? n : most;
        }
        return most;
}

/* All passes; the records are the kernel's own, and their sums are not compared. */
static void check(struct fixture *f, const char *what) {
        memcpy(f->expected, f->bytes, f->n_bytes);
        for (uint32_t i = 0; i < f->n_samples; i++)
                expect_sample(f, i);
        for (uint32_t pass = 0; pass <= n_contrasts(f); pass++)
                run_pass(f, pass);
        for (uint32_t i = 0; i < f->n_samples; i++)
                memcpy(record_of(f, f->expected, i)->sums, record_of(f, f->bytes, i)->sums,
                       sizeof(record_of(f, f->bytes, i)->sums));
        for (size_t i = 0; i < f->n_bytes; i++)
                if (f->bytes[i] != f->expected[i])
                        ck_abort_msg("%s, %u x %u x %u: byte %zu of %zu is %02x, not %02x", what, f->width, f->height,
                                     f->n_channels, i, f->n_bytes, f->bytes[i], f->expected[i]);
        fixture_free(f);
}

/* ---- tests ----------------------------------------------------------------------------------------------------- */

static const uint32_t SIZES[][2] = { { 1, 1 }, { 5, 3 }, { 16, 8 }, { 33, 31 }, { 224, 224 }, { 8192, 2 } };

START_TEST(any_operations_in_any_sequence_make_the_pixels_that_the_daemon_makes) {
        dlk_cpu_is_backwards = _i % 2;
        for (uint32_t round = 0; round < 60; round++) {
                const uint32_t *size = SIZES[draw(sizeof(SIZES) / sizeof(SIZES[0]))];
                struct fixture f = fixture_new(1 + draw(4), size[0], size[1], draw(4) ? 3 : 1);

                for (uint32_t i = 0; i < f.n_samples; i++)
                        for (uint32_t n = draw(DLK_COLOR_OPERATIONS_MAX + 1); n > 0; n--) {
                                uint32_t kind = 1 + draw(DLK_COLOR_GRAYSCALE);

                                add(&f, i, kind, draw_amount(kind));
                        }
                check(&f, "any operations");
        }
        dlk_cpu_is_backwards = false;
}
END_TEST

/* All 2^24 colours, as 64 pictures of 512 x 512; each run of this test takes some of them. */
START_TEST(the_hue_of_every_colour_is_turned_as_the_daemon_does) {
        for (uint32_t part = (uint32_t)_i; part < 64; part += 4)
                for (uint32_t k = 0; k < 2; k++) {
                        struct fixture f = fixture_new(1, 512, 512, 3);
                        uint8_t *pixels = sample_of(&f, f.bytes, 0);

                        for (uint32_t i = 0; i < 512 * 512; i++) {
                                uint32_t color = part << 18 | i;

                                pixels[i * 3] = (uint8_t)(color >> 16);
                                pixels[i * 3 + 1] = (uint8_t)(color >> 8);
                                pixels[i * 3 + 2] = (uint8_t)color;
                        }
                        add(&f, 0, DLK_COLOR_HUE, k == 0 ? 0 : draw_amount(DLK_COLOR_HUE));
                        check(&f, "a hue");
                }
}
END_TEST

/* Every amount truncates at other levels: these come near to whole numbers. */
START_TEST(blends_are_truncated_where_the_daemon_truncates_them) {
        for (uint32_t i = 0; i < 200; i++) {
                struct fixture f = fixture_new(2, 32, 16, 3);

                for (uint32_t k = 0; k < 3; k++)
                        add(&f, 0, DLK_COLOR_BRIGHTNESS + k, (float)(1 + draw(40)) / (float)(1 + draw(20)));
                for (uint32_t k = 0; k < 3; k++)
                        add(&f, 1, DLK_COLOR_BRIGHTNESS + (k + 1) % 3, nextafterf((float)draw(5) / 4, 2));
                check(&f, "blends");
        }
}
END_TEST

static void expect_unchanged(struct fixture *f, const char *what) {
        memcpy(f->expected, f->bytes, f->n_bytes);
        for (uint32_t pass = 0; pass <= DLK_COLOR_OPERATIONS_MAX; pass++)
                run_pass(f, pass);
        ck_assert_msg(memcmp(f->bytes, f->expected, f->n_bytes) == 0, "%s", what);
        fixture_free(f);
}

START_TEST(a_record_that_says_nothing_known_changes_nothing) {
        struct fixture f = fixture_new(3, 33, 31, 3);

        record_of(&f, f.bytes, 1)->n_operations = DLK_COLOR_OPERATIONS_MAX; /* all of them DLK_COLOR_NONE */
        expect_unchanged(&f, "none");
        f = fixture_new(1, 33, 31, 3);
        add(&f, 0, 6, 1);
        add(&f, 0, UINT32_MAX, 1);
        expect_unchanged(&f, "unknown kinds");
}
END_TEST

/* The daemon is checked before; if it writes later, to memory that is shared, nothing worse than other pixels comes. */
START_TEST(no_record_leads_out_of_its_sample) {
        for (uint32_t round = 0; round < 300; round++) {
                struct fixture f = fixture_new(1 + draw(3), 1 + draw(20), 1 + draw(20), draw(2) ? 3 : 1);

                for (uint32_t i = 0; i < f.n_samples; i++) {
                        uint8_t *record = (uint8_t *)record_of(&f, f.bytes, i);

                        for (size_t k = 0; k < sizeof(struct dlk_color_record); k++)
                                record[k] = (uint8_t)draw(256);
                        for (uint32_t k = 0; k < DLK_COLOR_OPERATIONS_MAX; k++)
                                if (draw(4))
                                        record_of(&f, f.bytes, i)->operations[k].kind = draw(8);
                }
                for (uint32_t pass = 0; pass <= DLK_COLOR_OPERATIONS_MAX; pass++)
                        run_pass(&f, pass);
                for (size_t i = 0; i < GUARD_BYTES; i++)
                        ck_assert(f.bytes[i] == GUARD && f.bytes[f.n_bytes - 1 - i] == GUARD);
                for (uint32_t i = 0; i < f.n_samples; i++)
                        for (size_t k = (size_t)f.width * f.height * f.n_channels; k < f.record_at; k++)
                                ck_assert_uint_eq(sample_of(&f, f.bytes, i)[k], GUARD);
                fixture_free(&f);
        }
}
END_TEST

START_TEST(what_no_kernel_can_do_is_refused) {
        const struct dlk_color_batch good = {
                .pixels = 4096, .sample_bytes = 1040, .record_at = 900, .n_samples = 2, .n_pixels = 300, .n_channels = 3
        };
        struct dlk_color_launch launch;
        struct dlk_color_batch bad[11];

        ck_assert(dlk_color_launch(&good, DLK_COLOR_OPERATIONS_MAX, &launch));
        ck_assert(!dlk_color_launch(&good, DLK_COLOR_OPERATIONS_MAX + 1, &launch));
        for (uint32_t i = 0; i < 11; i++)
                bad[i] = good;
        bad[0].n_samples = 0;
        bad[1].n_pixels = 0;
        bad[2].n_pixels = 301;
        bad[3].n_channels = 2;
        bad[4].pixels = 0;
        bad[5].pixels = 4098;
        bad[6].sample_bytes = 1000;
        bad[7].sample_bytes = 100;
        bad[8].record_at = 902;
        bad[9].record_at = UINT64_MAX - 3;
        bad[10].n_pixels = DLK_COLOR_PIXELS_MAX + 1;
        bad[10].record_at = 3ull << 25;
        bad[10].sample_bytes = 1ull << 27;
        for (uint32_t i = 0; i < 11; i++)
                ck_assert_msg(!dlk_color_launch(&bad[i], 0, &launch), "%u", i);
}
END_TEST

START_TEST(the_kernel_and_the_contract_have_the_same_record) {
        ck_assert_uint_eq(sizeof(struct dlk_color_record), sizeof(struct dlp_left_operations));
        ck_assert_uint_eq(DLK_COLOR_BRIGHTNESS, DLP_LEFT_BRIGHTNESS);
        ck_assert_uint_eq(DLK_COLOR_GRAYSCALE, DLP_LEFT_GRAYSCALE);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "pixels", any_operations_in_any_sequence_make_the_pixels_that_the_daemon_makes, 4 },
                { "pixels", the_hue_of_every_colour_is_turned_as_the_daemon_does, 4 },
                { "pixels", blends_are_truncated_where_the_daemon_truncates_them, 0 },
                { "records", a_record_that_says_nothing_known_changes_nothing, 0 },
                { "records", no_record_leads_out_of_its_sample, 0 },
                { "records", what_no_kernel_can_do_is_refused, 0 },
                { "records", the_kernel_and_the_contract_have_the_same_record, 0 },
        };

        return suite_run("color_kernels", rows, sizeof(rows) / sizeof(rows[0]));
}
