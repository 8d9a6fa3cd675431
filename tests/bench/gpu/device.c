/* The device, its driver, and what is queued there. */
#include "tests/bench/gpu/bench.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cuda/kernels/cpu.h"
#include "client/cuda/kernels/images.h"

extern const char bench_ptx[];

#define EXTRA_SYMBOL(name, symbol, arguments) symbol,
static const char *const EXTRA_SYMBOLS[] = { EXTRA_FUNCTIONS(EXTRA_SYMBOL) };

/* For the tests' driver, which runs kernels as functions of the CPU. */
_Thread_local bool dlk_cpu_is_backwards;

#define DECLARED(symbol, type) void symbol##_run(const void *params, const uint32_t grid[3], const uint32_t block[3]);
BENCH_KERNELS(DECLARED)
#define CPU_KERNEL(symbol, type) { #symbol, sizeof(type), symbol##_run },
static const struct dlk_cpu_kernel CPU_KERNELS[] = { BENCH_KERNELS(CPU_KERNEL) };

void bench_fail(int status, const char *format, ...) {
        va_list arguments;

        va_start(arguments, format);
        fputs("gpu: ", stderr);
        vfprintf(stderr, format, arguments);
        fputc('\n', stderr);
        va_end(arguments);
        exit(status);
}

void bench_check(const struct bench *bench, cu_result result, const char *doing) {
        struct why why;

        if (driver_refuse(bench->driver, result, doing, &why) < 0)
                bench_fail(1, "%s", why.text);
}

/* ---- the driver ------------------------------------------------------------------------------------------------ */

static void find_extra(struct bench *bench) {
        void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL); /* is loaded already */
        void (*add_kernels)(const struct dlk_cpu_kernel *kernels, uint32_t n_kernels);
        void *found;

        for (size_t i = 0; library && i < sizeof(EXTRA_SYMBOLS) / sizeof(EXTRA_SYMBOLS[0]); i++) {
                found = dlsym(library, EXTRA_SYMBOLS[i]);
                if (!found)
                        bench_fail(1, "the driver lacks %s", EXTRA_SYMBOLS[i]);
                memcpy((uint8_t *)&bench->extra + i * sizeof(found), &found, sizeof(found));
        }
        found = library ? dlsym(library, "dlt_cuda_add_kernels") : NULL;
        bench->is_stand_in = found != NULL;
        if (found) {
                memcpy(&add_kernels, &found, sizeof(found));
                add_kernels(CPU_KERNELS, sizeof(CPU_KERNELS) / sizeof(CPU_KERNELS[0]));
        }
}

static void load(struct bench *bench) {
        const struct driver *driver = bench->driver;

        bench_check(bench, driver->module_load(&bench->module, bench_ptx), "loading the measurements' kernels");
        bench_check(bench, driver->module_function(&bench->matmul, bench->module, "dlk_bench_matmul"), "matmul");
        bench_check(bench, driver->module_function(&bench->sum, bench->module, "dlk_bench_sum"), "sum");
        if (driver->module_load(&bench->finish_module, dlk_fatbin) != CU_SUCCESS)
                bench_check(bench, driver->module_load(&bench->finish_module, dlk_ptx), "loading the kernels");
}

void bench_open(struct bench *bench) {
        const struct driver *driver;
        int n_multiprocessors = 0;
        struct why why;

        if (driver_find(&bench->driver, &why) < 0)
                bench_fail(3, "%s", why.text);
        driver = bench->driver;
        find_extra(bench);
        bench_check(bench, driver->device_get(&bench->device, 0), "opening the device");
        bench_check(bench, driver->context_retain(&bench->context, bench->device), "opening the device");
        bench_check(bench, driver->context_push(bench->context), "opening the device");
        bench_check(bench, driver->device_attribute(&n_multiprocessors, CU_ATTRIBUTE_MULTIPROCESSORS, bench->device),
                    "looking at the device");
        bench->n_multiprocessors = (uint32_t)n_multiprocessors;
        load(bench);
        bench->stream = bench_stream(bench);
        bench_check(bench, driver->event_create(&bench->begin, 0), "making an event");
        bench_check(bench, driver->event_create(&bench->end, 0), "making an event");
}

void bench_close(struct bench *bench) {
        const struct driver *driver = bench->driver;
        cu_context context;

        driver->stream_synchronize(bench->stream);
        driver->event_destroy(bench->begin);
        driver->event_destroy(bench->end);
        driver->stream_destroy(bench->stream);
        driver->module_unload(bench->module);
        driver->module_unload(bench->finish_module);
        driver->context_pop(&context);
        driver->context_release(bench->device);
}

/* ---- memory, streams, time ------------------------------------------------------------------------------------- */

cu_pointer bench_allocate(const struct bench *bench, uint64_t n_bytes) {
        cu_pointer pointer = 0;

        bench_check(bench, bench->driver->allocate(&pointer, n_bytes), "memory on the device");
        return pointer;
}

void bench_free(const struct bench *bench, cu_pointer pointer) {
        bench_check(bench, bench->driver->release(pointer), "freeing memory on the device");
}

cu_stream bench_stream(const struct bench *bench) {
        cu_stream stream = NULL;

        bench_check(bench, bench->driver->stream_create(&stream, CU_STREAM_NON_BLOCKING), "making a stream");
        return stream;
}

void bench_begin(const struct bench *bench) {
        bench_check(bench, bench->driver->event_record(bench->begin, bench->stream), "timing");
}

double bench_end(const struct bench *bench) {
        float ms = 0;

        bench_check(bench, bench->driver->event_record(bench->end, bench->stream), "timing");
        bench_check(bench, bench->driver->event_synchronize(bench->end), "timing");
        bench_check(bench, bench->extra.elapsed(&ms, bench->begin, bench->end), "timing");
        return ms;
}

/* ---- the trainer's work ---------------------------------------------------------------------------------------- */

void work_open(struct work *work, const struct bench *bench) {
        uint32_t n = (uint32_t)bench->wish.matmul;
        uint64_t n_bytes = (uint64_t)n * n * sizeof(float);
        cu_pointer memory[3];

        for (int i = 0; i < 3; i++) {
                memory[i] = bench_allocate(bench, n_bytes);
                bench_check(bench, bench->extra.fill(memory[i], 0, n_bytes, bench->stream), "filling a matrix");
        }
        bench_check(bench, bench->driver->stream_synchronize(bench->stream), "filling a matrix");
        *work = (struct work){ .params = { .a = (const float *)(uintptr_t)memory[0],
                                           .b = (const float *)(uintptr_t)memory[1],
                                           .c = (float *)(uintptr_t)memory[2],
                                           .n = n },
                               .n_tiles = n / BENCH_TILE };
}

void work_close(struct work *work, const struct bench *bench) {
        bench_free(bench, (uintptr_t)work->params.a);
        bench_free(bench, (uintptr_t)work->params.b);
        bench_free(bench, (uintptr_t)work->params.c);
}

void work_queue(const struct work *work, const struct bench *bench, cu_stream stream) {
        struct bench_matmul params = work->params;
        void *parameters[] = { &params };

        bench_check(bench,
                    bench->driver->launch(bench->matmul, work->n_tiles, work->n_tiles, 1, BENCH_THREADS, 1, 1, 0,
                                          stream, parameters, NULL),
                    "the trainer's work");
}

double work_ms(const struct work *work, const struct bench *bench) {
        enum {
                N = 5
        };
        double ms[N];

        work_queue(work, bench, bench->stream);
        for (int i = 0; i < N; i++) {
                bench_begin(bench);
                work_queue(work, bench, bench->stream);
                ms[i] = bench_end(bench);
        }
        return summarise(ms, N).median;
}
