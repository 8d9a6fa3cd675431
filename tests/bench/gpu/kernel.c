/* The kernels that finish pictures: bytes read and written a second, beside those of the driver's own copy on the
 * device. Batches lie in several places, so that what is read comes from memory and not from a cache. */
#include <stdio.h>
#include <stdlib.h>

#include "client/cuda/kernels/finish.h"
#include "tests/bench/gpu/bench.h"
#include "tests/bench/ready_batches.h"

#define PLACES      8
#define REPEATS_MAX 101

struct room {
        cu_pointer in[PLACES], out[PLACES], table;
        uint64_t in_bytes, out_bytes;
};

static void room_open(struct room *room, const struct bench *bench, uint32_t element_bytes) {
        uint8_t *pixels;

        room->in_bytes = batch_bytes(bench);
        room->out_bytes = room->in_bytes * element_bytes;
        room->table = bench_allocate(bench, 3ull * 256 * 4);
        bench_check(bench, bench->extra.fill(room->table, 1, 3ull * 256 * 4, bench->stream), "filling a table");
        pixels = malloc(room->in_bytes);
        if (!pixels)
                bench_fail(1, "no memory for a batch");
        ready_fill(pixels, room->in_bytes);
        for (int i = 0; i < PLACES; i++) {
                room->in[i] = bench_allocate(bench, room->in_bytes);
                room->out[i] = bench_allocate(bench, room->out_bytes);
                bench_check(bench, bench->driver->copy_in(room->in[i], pixels, room->in_bytes, bench->stream),
                            "copying pixels");
        }
        bench_check(bench, bench->driver->stream_synchronize(bench->stream), "copying pixels");
        free(pixels);
}

static void room_close(struct room *room, const struct bench *bench) {
        for (int i = 0; i < PLACES; i++) {
                bench_free(bench, room->in[i]);
                bench_free(bench, room->out[i]);
        }
        bench_free(bench, room->table);
}

static struct dlk_finish_launch launch_of(const struct bench *bench, const struct room *room, int place,
                                          uint32_t element_bytes, bool channels_first) {
        struct dlk_finish_batch batch = {
                .in = room->in[place],
                .out = room->out[place],
                .table = room->table,
                .in_sample_bytes = 3ull * (uint64_t)bench->wish.side * (uint64_t)bench->wish.side,
                .n_samples = (uint32_t)bench->wish.batch,
                .height = (uint32_t)bench->wish.side,
                .width = (uint32_t)bench->wish.side,
                .n_channels = 3,
                .element_bytes = element_bytes,
                .channels_first = channels_first,
        };
        struct dlk_finish_launch launch;

        if (!dlk_finish_launch(&batch, bench->n_multiprocessors, &launch))
                bench_fail(1, "no kernel makes such a batch");
        return launch;
}

static void finish(const struct bench *bench, const struct room *room, int place, uint32_t element_bytes,
                   bool channels_first) {
        struct dlk_finish_launch launch = launch_of(bench, room, place, element_bytes, channels_first);
        void *parameters[] = { &launch.params };
        cu_function function;

        bench_check(bench,
                    bench->driver->module_function(&function, bench->finish_module, dlk_finish_names[launch.idx_name]),
                    "finding a kernel");
        bench_check(bench,
                    bench->driver->launch(function, launch.grid[0], launch.grid[1], launch.grid[2], launch.block[0],
                                          launch.block[1], launch.block[2], 0, bench->stream, parameters, NULL),
                    "finishing a batch");
}

double finish_ms(const struct bench *bench, uint32_t element_bytes, bool channels_first) {
        static double ms[REPEATS_MAX];
        uint32_t n = (uint32_t)bench->wish.repeats;
        struct room room;

        if (n > REPEATS_MAX)
                bench_fail(2, "repeats: at most %d", REPEATS_MAX);
        room_open(&room, bench, element_bytes);
        for (int i = 0; i < PLACES; i++)
                finish(bench, &room, i, element_bytes, channels_first);
        for (uint32_t repeat = 0; repeat < n; repeat++) {
                bench_begin(bench);
                for (int i = 0; i < bench->wish.copies; i++)
                        finish(bench, &room, i % PLACES, element_bytes, channels_first);
                ms[repeat] = bench_end(bench) / bench->wish.copies;
        }
        room_close(&room, bench);
        return summarise(ms, n).median;
}

/* The driver's copy within the device, of which as many bytes are read and written as of a batch that becomes
 * float16. */
static double copy_ms(const struct bench *bench) {
        static double ms[REPEATS_MAX];
        uint32_t n = (uint32_t)bench->wish.repeats;
        struct room room;

        room_open(&room, bench, 2);
        for (uint32_t repeat = 0; repeat < n; repeat++) {
                bench_begin(bench);
                for (int i = 0; i < bench->wish.copies; i++)
                        bench_check(bench,
                                    bench->driver->copy_over(room.out[(i + 1) % PLACES], room.out[i % PLACES],
                                                             room.in_bytes + room.in_bytes / 2, bench->stream),
                                    "copying within the device");
                ms[repeat] = bench_end(bench) / bench->wish.copies;
        }
        room_close(&room, bench);
        return summarise(ms, n).median;
}

static double rate(const struct bench *bench, uint32_t element_bytes, double ms) {
        return (double)batch_bytes(bench) * (1 + element_bytes) / ms / 1e9;
}

/* bfloat16 is float16's kernel with another table. It is measured all the same: it is what people ask for. */
void measure_kernel(const struct bench *bench) {
        static const struct {
                const char *name;
                uint32_t element_bytes;
                bool channels_first;
        } FORMS[] = { { "f16_nchw", 2, true },
                      { "bf16_nchw", 2, true },
                      { "f32_nchw", 4, true },
                      { "f16_nhwc", 2, false },
                      { "f32_nhwc", 4, false } };

        printf("{");
        for (size_t i = 0; i < sizeof(FORMS) / sizeof(FORMS[0]); i++) {
                double ms = finish_ms(bench, FORMS[i].element_bytes, FORMS[i].channels_first);

                printf("\"%s\": %.6f, \"%s_us\": %.3f, ", FORMS[i].name, rate(bench, FORMS[i].element_bytes, ms),
                       FORMS[i].name, ms * 1000);
        }
        printf("\"copy\": %.6f}\n", rate(bench, 2, copy_ms(bench)));
}
