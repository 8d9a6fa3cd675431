/* gpu/bench.h: what the measurements on a GPU share. main.c says how the program is called.
 *
 * Any call that fails ends the program with a sentence on stderr: 3 where there is no GPU, else 1. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "client/cuda/driver.h"
#include "client/include/dlclient-cuda.h"
#include "tests/bench/gpu/kernels.h"

/* Functions of the driver that the library does not need. */
#define EXTRA_FUNCTIONS(F)                                                                                             \
        F(host_allocate, "cuMemHostAlloc", (void **ret_memory, size_t n_bytes, unsigned flags))                        \
        F(host_release, "cuMemFreeHost", (void *memory))                                                               \
        F(elapsed, "cuEventElapsedTime", (float *ret_ms, cu_event begin, cu_event end))                                \
        F(fill, "cuMemsetD8Async", (cu_pointer to, unsigned char value, size_t n_bytes, cu_stream stream))

struct extra {
        EXTRA_FUNCTIONS(CU_MEMBER)
};

/* From the command line, key=value. */
struct wish {
        int batch, side;    /* of a batch: samples, and pixels a side */
        int slots;          /* of the ring */
        int repeats;        /* of what is measured in turns */
        int copies;         /* or launches, between two events */
        int n;              /* calls or rounds */
        int kinds;          /* that ready_batches serves */
        int matmul;         /* rows of the matrices */
        int work_ms;        /* queued on the trainer's stream in each round */
        int pace;           /* images/s of a trainer that computes as well */
        int pid;            /* of the daemon, or of who stands for it; 0: its CPU time is not asked for */
        double seconds;     /* of a rate */
        const char *socket; /* NULL: as the client finds it */
};

struct bench {
        struct wish wish;
        const struct driver *driver;
        struct extra extra;
        bool is_stand_in; /* the tests' driver: no figure means anything */
        cu_device device;
        cu_context context;
        uint32_t n_multiprocessors;
        cu_module module, finish_module;
        cu_function matmul, sum;
        cu_stream stream;
        cu_event begin, end; /* with timing */
};

struct loader {
        struct dlc_loader *loader;
        struct dlc_cuda *cuda;
};

/* A matrix product that can be queued again and again. */
struct work {
        struct bench_matmul params;
        uint32_t n_tiles;
};

/* ---- device.c ------------------------------------------------------------------------------------------------- */

/* Makes the device's context current and loads the kernels. */
void bench_open(struct bench *bench);
void bench_close(struct bench *bench);

__attribute__((noreturn, format(printf, 2, 3))) void bench_fail(int status, const char *format, ...);
void bench_check(const struct bench *bench, cu_result result, const char *doing);

/* Memory on the device. */
cu_pointer bench_allocate(const struct bench *bench, uint64_t n_bytes);
void bench_free(const struct bench *bench, cu_pointer pointer);

cu_stream bench_stream(const struct bench *bench);

/* Between these two, what is queued on bench->stream is timed. The second waits for it and returns milliseconds. */
void bench_begin(const struct bench *bench);
double bench_end(const struct bench *bench);

void work_open(struct work *work, const struct bench *bench);
void work_close(struct work *work, const struct bench *bench);
void work_queue(const struct work *work, const struct bench *bench, cu_stream stream);
double work_ms(const struct work *work, const struct bench *bench); /* of one, with nothing beside it */

/* ---- batches.c ------------------------------------------------------------------------------------------------ */

void loader_open(struct loader *loader, const struct bench *bench, int n_batches);
void loader_close(struct loader *loader);
const struct dlc_cuda_batch *loader_next(const struct loader *loader, cu_stream stream);
void loader_release(const struct loader *loader, const struct dlc_cuda_batch *batch, cu_stream stream);
struct dlc_cuda_info loader_info(const struct loader *loader);

/* Pixels of a batch, as they cross the link. */
uint64_t batch_bytes(const struct bench *bench);

/* CPU seconds that a process has used so far. */
double cpu_seconds_of(int pid);
double seconds_now(void);

struct summary {
        double median, low, high;
};

/* Sorts the values. */
struct summary summarise(double *values, uint32_t n);
double quantile(double *values, uint32_t n, double share);

/* ---- the parts. Each prints one JSON object. ------------------------------------------------------------------ */

void measure_link(const struct bench *bench);
void measure_kernel(const struct bench *bench);
void measure_next(const struct bench *bench);
void measure_rate(const struct bench *bench);
void measure_lifetime(const struct bench *bench);

/* GB/s of copies to the device of as many bytes as a batch has, out of `memory`, which the driver knows or not. */
double link_rate(const struct bench *bench, const uint8_t *memory, uint64_t n_bytes, cu_pointer to);

/* Milliseconds that finishing a batch takes: uint8 [n, h, w, 3] to elements of 1, 2 or 4 bytes. The median of the
 * repeats. */
double finish_ms(const struct bench *bench, uint32_t element_bytes, bool channels_first);
