/* The kernels that finish pictures, as the CPU runs them, beside the conversion that the daemon does itself. */
#include "client/cuda/kernels/cpu.h"
#include "client/cuda/kernels/finish.h"
#include "client/cuda/kernels/images.h"
#include "daemon/augment/conversion.h"
#include "tests/support/suite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GUARD_BYTES 64u
#define GUARD       0xee
#define N_SAMPLES   5u /* at most */

/* ---- a batch, what it is to become, and what a kernel makes of it ---------------------------------------------- */

struct task {
        enum dlp_dtype dtype;
        bool is_normalized, channels_first, has_flips;
        uint32_t n_samples, height, width, n_channels;
        uint32_t in_offset;        /* bytes from a multiple of 16 to the first sample */
        uint32_t in_gap;           /* bytes between two samples */
        uint32_t out_gap_elements; /* 0: none, and the launch is told nothing about samples' distance */
        uint32_t out_offset_elements;
};

struct fixture {
        struct task task;
        struct conversion conversion;
        uint8_t *in, *out, *expected; /* `in` ends with the last sample's last byte */
        size_t in_bytes, out_bytes;   /* the latter with guards before and after */
        size_t in_sample_bytes, out_sample_bytes;
        size_t out_start;
        uint8_t *flips, *table;
        struct dlk_finish_batch batch;
};

static size_t sample_elements(const struct task *task) {
        return (size_t)task->height * task->width * task->n_channels;
}

/* Samples 1 and 4 left to right, 2 and 4 top to bottom. */
static uint8_t flips_of(const struct task *task, uint32_t sample) {
        static const uint8_t FLIPS[N_SAMPLES] = { 0, DLK_FINISH_MIRRORED, DLK_FINISH_UPSIDE_DOWN, 0,
                                                  DLK_FINISH_MIRRORED | DLK_FINISH_UPSIDE_DOWN };

        return task->has_flips ? FLIPS[sample] : 0;
}

static void set_conversion(const struct task *task, struct conversion *conversion) {
        static const float MEAN[3] = { 0.485f, 0.456f, 0.406f }, DEVIATION[3] = { 0.229f, 0.224f, 0.225f };

        conversion_init(conversion);
        conversion_set_mode(conversion, task->n_channels == 1 ? PIXELS_L : PIXELS_RGB);
        conversion->format.dtype = task->dtype;
        conversion->format.channels_first = task->channels_first;
        conversion->has_dtype = true;
        conversion->is_normalized = task->is_normalized;
        for (uint32_t i = 0; i < CHANNELS_MAX; i++) {
                conversion->mean[i] = MEAN[i % 3];
                conversion->deviation[i] = DEVIATION[i % 3];
        }
        conversion_finish(conversion);
}

/* A sample as the daemon has it before its conversion: three bytes for each pixel, and mirrored if it is to be. */
static void expect_sample(const struct fixture *f, uint32_t sample, uint8_t *out) {
        const struct task *task = &f->task;
        size_t stride = pixel_format_row_bytes(&f->conversion.format, task->width);
        const uint8_t *from = f->in + task->in_offset + sample * f->in_sample_bytes;
        struct canvas canvas = { malloc((size_t)task->height * task->width * PIXEL_BYTES),
                                 (size_t)task->width * PIXEL_BYTES, task->width, task->height };

        for (uint32_t y = 0; y < task->height; y++)
                for (uint32_t x = 0; x < task->width; x++)
                        for (uint32_t i = 0; i < PIXEL_BYTES; i++) {
                                uint8_t flips = flips_of(task, sample);
                                uint32_t column = flips & DLK_FINISH_MIRRORED ? task->width - 1 - x : x;
                                uint32_t row = flips & DLK_FINISH_UPSIDE_DOWN ? task->height - 1 - y : y;
                                size_t pixel = (size_t)row * task->width + column;

                                canvas_at(&canvas, x,
                                          y)[i] = from[pixel * task->n_channels + (task->n_channels == 1 ? 0 : i)];
                        }
        conversion_run(&f->conversion, &canvas, NULL, out, stride, 0);
        free(canvas.pixels);
}

static struct fixture fixture_new(const struct task *task) {
        struct fixture f = { .task = *task };
        uint32_t bytes = dlp_dtype_bytes(task->dtype), random = 12345;

        set_conversion(task, &f.conversion);
        f.in_sample_bytes = sample_elements(task) + task->in_gap;
        f.in_bytes = task->in_offset + (task->n_samples - 1) * f.in_sample_bytes + sample_elements(task);
        f.in = malloc(f.in_bytes);
        for (size_t i = 0; i < f.in_bytes; i++)
                f.in[i] = (uint8_t)((random = random * 1664525 + 1013904223) >> 24);

        f.out_sample_bytes = (sample_elements(task) + task->out_gap_elements) * bytes;
        f.out_start = GUARD_BYTES + task->out_offset_elements * bytes;
        f.out_bytes = f.out_start + task->n_samples * f.out_sample_bytes + GUARD_BYTES;
        f.out = malloc(f.out_bytes);
        f.expected = malloc(f.out_bytes);
        memset(f.out, GUARD, f.out_bytes);
        memset(f.expected, GUARD, f.out_bytes);
        for (uint32_t i = 0; i < task->n_samples; i++)
                expect_sample(&f, i, f.expected + f.out_start + i * f.out_sample_bytes);

        f.flips = calloc(task->n_samples, f.in_sample_bytes);
        for (uint32_t i = 0; i < task->n_samples; i++)
                f.flips[i * f.in_sample_bytes] = flips_of(task, i);
        f.table = malloc((size_t)256 * task->n_channels * bytes);
        memcpy(f.table, f.conversion.wide, (size_t)256 * task->n_channels * bytes);
        f.batch = (struct dlk_finish_batch){
                .in = (uintptr_t)f.in + task->in_offset,
                .out = (uintptr_t)f.out + f.out_start,
                .table = task->dtype == DLP_DTYPE_UINT8 ? 0 : (uintptr_t)f.table,
                .flips = task->has_flips ? (uintptr_t)f.flips : 0,
                .in_sample_bytes = f.in_sample_bytes,
                .out_sample_bytes = task->out_gap_elements > 0 ? f.out_sample_bytes : 0,
                .n_samples = task->n_samples,
                .height = task->height,
                .width = task->width,
                .n_channels = task->n_channels,
                .element_bytes = bytes,
                .channels_first = task->channels_first,
        };
        return f;
}

static void fixture_free(struct fixture *f) {
        free(f->in);
        free(f->out);
        free(f->expected);
        free(f->flips);
        free(f->table);
}

static const struct dlk_cpu_kernel *find_kernel(const char *name) {
        for (uint32_t i = 0; i < dlk_n_cpu_kernels; i++)
                if (strcmp(dlk_cpu_kernels[i].name, name) == 0)
                        return &dlk_cpu_kernels[i];
        ck_abort_msg("no kernel %s", name);
}

/* Returns the kernel's place among dlk_finish_names. */
static uint32_t run(const struct dlk_finish_batch *batch, uint32_t n_multiprocessors) {
        struct dlk_finish_launch launch;
        const struct dlk_cpu_kernel *kernel;

        ck_assert(dlk_finish_launch(batch, n_multiprocessors, &launch));
        kernel = find_kernel(dlk_finish_names[launch.idx_name]);
        ck_assert_uint_eq(kernel->params_bytes, sizeof(launch.params));
        kernel->run(&launch.params, launch.grid, launch.block);
        return launch.idx_name;
}

static void compare(const struct fixture *f, const char *name) {
        size_t at = 0;

        while (at < f->out_bytes && f->out[at] == f->expected[at])
                at++;
        if (at < f->out_bytes)
                ck_abort_msg(
                        "%s: %ux%ux%ux%u dtype %d normalized %d first %d flips %d in +%u gap %u out +%u gap %u: byte "
                        "%zu is %02x, not %02x",
                        name, f->task.n_samples, f->task.height, f->task.width, f->task.n_channels, f->task.dtype,
                        f->task.is_normalized, f->task.channels_first, f->task.has_flips, f->task.in_offset,
                        f->task.in_gap, f->task.out_offset_elements, f->task.out_gap_elements, at, f->out[at],
                        f->expected[at]);
}

/* ---- tests ----------------------------------------------------------------------------------------------------- */

static const enum dlp_dtype DTYPES[] = { DLP_DTYPE_UINT8, DLP_DTYPE_FLOAT16, DLP_DTYPE_BFLOAT16, DLP_DTYPE_FLOAT32 };
static const struct {
        uint32_t height, width, most_samples;
} SIZES[] = { { 1, 1, 5 }, { 3, 5, 5 }, { 8, 16, 5 }, { 2, 48, 5 }, { 7, 32, 5 }, { 223, 17, 2 }, { 224, 224, 2 } };
#define N_SIZES (sizeof(SIZES) / sizeof(SIZES[0]))

/* Where a batch lies. With WHOLE, samples begin at multiples of 64 elements, however many they have. */
#define WHOLE UINT32_MAX
static const struct {
        uint32_t in_offset, in_gap, out_gap_elements, out_offset_elements;
} PLACES[] = { { 0, 0, 0, 0 }, { 0, WHOLE, WHOLE, 0 }, { 16, WHOLE, WHOLE, 16 }, { 0, 32, 16, 0 }, { 16, 16, 0, 16 },
               { 1, 0, 0, 0 }, { 0, 5, 0, 0 },         { 3, 7, 3, 1 },           { 8, 8, 8, 8 },   { 0, 16, 1, 0 } };
#define N_PLACES (sizeof(PLACES) / sizeof(PLACES[0]))

/* Task number `idx` of one size; false after the last. */
static bool task_of(uint32_t idx_size, uint32_t idx, struct task *ret_task) {
        uint32_t place = idx % N_PLACES, rest = idx / N_PLACES;
        struct task task = { .height = SIZES[idx_size].height,
                             .width = SIZES[idx_size].width,
                             .in_offset = PLACES[place].in_offset,
                             .in_gap = PLACES[place].in_gap,
                             .out_gap_elements = PLACES[place].out_gap_elements,
                             .out_offset_elements = PLACES[place].out_offset_elements };

        task.dtype = DTYPES[rest % 4];
        task.channels_first = rest / 4 % 2;
        task.n_channels = rest / 8 % 2 ? 3 : 1;
        task.has_flips = rest / 16 % 2;
        task.is_normalized = rest / 32 % 2;
        task.n_samples = rest / 64 + 1;
        if (task.in_gap == WHOLE)
                task.in_gap = task.out_gap_elements = 64 - (uint32_t)(sample_elements(&task) % 64);
        /* No bytes are normalized: that makes floats. */
        task.is_normalized = task.is_normalized && task.dtype != DLP_DTYPE_UINT8;
        *ret_task = task;
        return task.n_samples <= SIZES[idx_size].most_samples;
}

START_TEST(a_batch_becomes_what_the_daemons_own_conversion_makes_of_it_and_nothing_beside_it_is_touched) {
        struct task task;

        for (uint32_t i = 0; task_of((uint32_t)_i, i, &task); i += suite_stride()) {
                struct fixture f = fixture_new(&task);

                compare(&f, dlk_finish_names[run(&f.batch, i / suite_stride() % 3 == 0 ? 132 : 1)]);
                fixture_free(&f);
        }
}
END_TEST

START_TEST(threads_and_blocks_may_run_in_any_order) {
        struct task task;

        dlk_cpu_is_backwards = true;
        for (uint32_t i = 0; task_of((uint32_t)_i, i, &task); i += 3 * suite_stride()) {
                struct fixture f = fixture_new(&task);

                compare(&f, dlk_finish_names[run(&f.batch, 1)]);
                fixture_free(&f);
        }
        dlk_cpu_is_backwards = false;
}
END_TEST

START_TEST(each_kernel_is_chosen_for_something) {
        bool was_chosen[64] = { false };
        struct dlk_finish_launch launch;
        struct task task;

        for (uint32_t i = 0; i < 5; i++)
                for (uint32_t k = 0; task_of(i, k, &task); k++) {
                        struct fixture f = fixture_new(&task);

                        ck_assert(dlk_finish_launch(&f.batch, 132, &launch));
                        was_chosen[launch.idx_name] = true;
                        fixture_free(&f);
                }
        for (uint32_t i = 0; i < dlk_n_finish_names; i++)
                ck_assert_msg(was_chosen[i], "%s", dlk_finish_names[i]);
}
END_TEST

START_TEST(whole_words_are_moved_where_they_lie_on_such_addresses) {
        static const struct {
                enum dlp_dtype dtype;
                bool channels_first, has_flips;
                uint32_t height, width, n_channels, in_offset, in_gap;
                const char *name;
        } ROWS[] = {
                { DLP_DTYPE_FLOAT16, true, false, 224, 224, 3, 0, 0, "dlk_finish_planes_3x2" },
                { DLP_DTYPE_FLOAT16, true, true, 224, 224, 3, 0, 0, "dlk_finish_planes_3x2" },
                { DLP_DTYPE_FLOAT16, true, false, 224, 224, 3, 8, 0, "dlk_finish_planes_3x2" },
                { DLP_DTYPE_FLOAT16, true, false, 224, 224, 3, 4, 0, "dlk_finish_any_3x2" },
                { DLP_DTYPE_FLOAT16, true, false, 224, 224, 3, 0, 4, "dlk_finish_any_3x2" },
                { DLP_DTYPE_FLOAT32, true, false, 224, 224, 3, 4, 4, "dlk_finish_planes_3x4" },
                { DLP_DTYPE_UINT8, true, false, 224, 224, 3, 0, 0, "dlk_finish_planes_3x1" },
                { DLP_DTYPE_FLOAT16, true, false, 223, 17, 3, 0, 0, "dlk_finish_any_3x2" },
                { DLP_DTYPE_FLOAT32, true, false, 518, 518, 3, 0, 0, "dlk_finish_planes_3x4" },
                { DLP_DTYPE_FLOAT32, true, true, 518, 518, 3, 0, 0, "dlk_finish_any_3x4" }, /* 518 % 4 == 2 */
                { DLP_DTYPE_FLOAT16, false, false, 224, 224, 3, 0, 0, "dlk_finish_flat_3x2" },
                { DLP_DTYPE_FLOAT16, false, true, 224, 224, 3, 0, 0, "dlk_finish_flat_3x2" },
                { DLP_DTYPE_BFLOAT16, false, false, 224, 224, 1, 0, 0, "dlk_finish_planes_1x2" },
        };

        for (size_t i = 0; i < sizeof(ROWS) / sizeof(ROWS[0]); i++) {
                struct dlk_finish_launch launch;
                struct fixture f = fixture_new(&(struct task){ .dtype = ROWS[i].dtype,
                                                               .channels_first = ROWS[i].channels_first,
                                                               .has_flips = ROWS[i].has_flips,
                                                               .n_samples = 2,
                                                               .height = ROWS[i].height,
                                                               .width = ROWS[i].width,
                                                               .n_channels = ROWS[i].n_channels,
                                                               .in_offset = ROWS[i].in_offset,
                                                               .in_gap = ROWS[i].in_gap });

                ck_assert(dlk_finish_launch(&f.batch, 132, &launch));
                ck_assert_str_eq(dlk_finish_names[launch.idx_name], ROWS[i].name);
                fixture_free(&f);
        }
}
END_TEST

START_TEST(any_grid_does_all_of_it) {
        static const uint32_t N_MULTIPROCESSORS[] = { 0, 1, 2, 3, 108, 132, 148, 4096, UINT32_MAX };
        struct task task = { .dtype = DLP_DTYPE_FLOAT16, .channels_first = true, .has_flips = true };

        task.n_samples = N_SAMPLES;
        task.height = task.width = 64;
        task.n_channels = 3;
        for (size_t i = 0; i < sizeof(N_MULTIPROCESSORS) / sizeof(N_MULTIPROCESSORS[0]); i++) {
                struct fixture f = fixture_new(&task);

                compare(&f, dlk_finish_names[run(&f.batch, N_MULTIPROCESSORS[i])]);
                fixture_free(&f);
        }
}
END_TEST

START_TEST(all_threads_have_as_many_units_and_pixels_are_for_as_many_threads_as_the_gpu_holds) {
        struct dlk_finish_batch batch = { .in = 4096, .out = 4096, .table = 4096, .n_channels = 3, .element_bytes = 2 };

        batch.height = batch.width = 224;
        batch.in_sample_bytes = 150528;
        for (int way = 0; way < 3; way++) { /* planes, flat, pixel by pixel */
                batch.channels_first = way == 0;
                batch.out = way == 2 ? 4098 : 4096;
                for (batch.n_samples = 1; batch.n_samples < 2000; batch.n_samples += 7) {
                        struct dlk_finish_launch launch;
                        uint64_t n_threads, n_units, n_rounds;

                        ck_assert(dlk_finish_launch(&batch, 132, &launch));
                        n_units = launch.params.n_units;
                        n_threads = (uint64_t)launch.grid[0] * launch.block[0];
                        n_rounds = (n_units + n_threads - 1) / n_threads;
                        ck_assert(n_rounds * n_threads < n_units + n_threads);
                        if (way == 2) {
                                ck_assert(n_threads <= 132u * 1536u);
                                ck_assert(n_rounds == (n_units + 132u * 1536u - 1) / (132u * 1536u));
                        } else {
                                ck_assert(n_threads < n_units / (way == 0 ? 1 : 4) + 256);
                                ck_assert(n_rounds == (way == 0 ? 1 : 4) || n_units < 1024);
                        }
                }
        }
}
END_TEST

START_TEST(a_table_of_bytes_is_looked_up) {
        struct fixture f = fixture_new(&(struct task){ .dtype = DLP_DTYPE_UINT8,
                                                       .channels_first = false,
                                                       .n_samples = 2,
                                                       .height = 5,
                                                       .width = 16,
                                                       .n_channels = 3 });
        uint8_t table[3][256];

        for (uint32_t i = 0; i < 3 * 256; i++)
                table[i / 256][i % 256] = (uint8_t)(i * 7 + i / 256);
        for (size_t i = 0; i < 2 * sample_elements(&f.task); i++)
                f.expected[f.out_start + i] = table[i % 3][f.in[i]];
        f.batch.table = (uintptr_t)table;
        compare(&f, dlk_finish_names[run(&f.batch, 1)]);
        fixture_free(&f);
}
END_TEST

START_TEST(what_no_kernel_can_make_is_refused) {
        const struct dlk_finish_batch good = { .in = 4096,
                                               .out = 4096,
                                               .table = 4096,
                                               .in_sample_bytes = 75,
                                               .n_samples = 2,
                                               .height = 5,
                                               .width = 5,
                                               .n_channels = 3,
                                               .element_bytes = 2 };
        struct dlk_finish_batch bad[16];
        struct dlk_finish_launch launch, before;
        uint32_t n = 0;

        for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
                bad[i] = good;
        bad[n++].in = 0;
        bad[n++].out = 0;
        bad[n++].out = 4097;
        bad[n++].table = 0; /* floats without a table */
        bad[n++].table = 4097;
        bad[n++].in_sample_bytes = 74;
        bad[n++].out_sample_bytes = 148;
        bad[n++].out_sample_bytes = 151;
        bad[n++].n_samples = 0;
        bad[n++].height = 0;
        bad[n++].width = 0;
        bad[n++].n_channels = 2;
        bad[n++].element_bytes = 8;
        bad[n++].n_samples = UINT32_MAX;
        bad[n].in_sample_bytes = UINT64_MAX / 8;
        bad[n].n_samples = 1;
        bad[n].width = 1u << 15; /* 3 * 2^30 elements */
        bad[n++].height = 1u << 15;
        bad[n].in_sample_bytes = UINT64_MAX / 8;
        bad[n].width = UINT32_MAX;
        bad[n++].height = UINT32_MAX;

        ck_assert(dlk_finish_launch(&good, 132, &launch));
        memset(&before, GUARD, sizeof(before));
        for (uint32_t i = 0; i < n; i++) {
                memset(&launch, GUARD, sizeof(launch));
                ck_assert_msg(!dlk_finish_launch(&bad[i], 132, &launch), "row %u", i);
                ck_assert_mem_eq(&launch, &before, sizeof(launch));
        }
}
END_TEST

START_TEST(the_images_hold_each_kernel) {
        uint64_t fatbin_bytes;

        for (uint32_t i = 0; i < dlk_n_finish_names; i++) {
                char entry[128];

                snprintf(entry, sizeof(entry), ".visible .entry %s(", dlk_finish_names[i]);
                ck_assert_msg(strstr(dlk_ptx, entry), "%s", entry);
                find_kernel(dlk_finish_names[i]);
        }
        /* A fatbin begins with a mark of 4 bytes, 4 of other things, and the number of bytes after these 16. */
        ck_assert_mem_eq(dlk_fatbin, "\x50\xed\x55\xba", 4);
        memcpy(&fatbin_bytes, dlk_fatbin + 8, sizeof(fatbin_bytes));
        ck_assert_uint_eq(fatbin_bytes + 16, dlk_fatbin_bytes);
}
END_TEST

int main(void) {
        const struct suite_row rows[] = {
                { "pixels",
                  a_batch_becomes_what_the_daemons_own_conversion_makes_of_it_and_nothing_beside_it_is_touched,
                  N_SIZES },
                { "pixels", threads_and_blocks_may_run_in_any_order, N_SIZES },
                { "pixels", a_table_of_bytes_is_looked_up },
                { "pixels", any_grid_does_all_of_it },
                { "launch", each_kernel_is_chosen_for_something },
                { "launch", whole_words_are_moved_where_they_lie_on_such_addresses },
                { "launch", all_threads_have_as_many_units_and_pixels_are_for_as_many_threads_as_the_gpu_holds },
                { "launch", what_no_kernel_can_make_is_refused },
                { "images", the_images_hold_each_kernel },
        };

        return suite_run("finish_kernels", rows, sizeof(rows) / sizeof(rows[0]));
}
