/* tests/support/cuda_driver.h: the stand-in for CUDA's driver (tests/cuda/), loaded and set up for a test.
 *
 * It is loaded by its path in the build, build/VARIANT/cuda/libcuda.so.1. A later dlopen("libcuda.so.1") in the same
 * process gets the same library, because of its soname. */
#pragma once

#include <semaphore.h>

#include "tests/cuda/calls.h"
#include "tests/cuda/standin.h"

#define CUDA_DRIVER_POINTER(name, symbol, needs, since) __typeof__(&symbol) name;

/* Each call under its name without a suffix, as cuGetProcAddress() gives it. */
struct cuda_driver {
        CUDA_CALLS(CUDA_DRIVER_POINTER)
        __typeof__(&dlt_cuda_counts) counts;
        __typeof__(&dlt_cuda_calls) calls;
        __typeof__(&dlt_cuda_restart) restart;
        __typeof__(&dlt_cuda_add_kernels) add_kernels;
        __typeof__(&dlt_cuda_set_trap) set_trap;
};

extern struct cuda_driver cuda;

const char *cuda_driver_path(void);

/* Loads it if need be and begins anew. `settings` are "NAME=VALUE", up to a NULL; other DLT_CUDA_ variables are
 * removed. */
void cuda_driver_begin(const char *const settings[]);

/* The same, with cuInit(), the first device's context retained and current. */
void cuda_driver_begin_current(const char *const settings[]);
struct dlt_cuda_counts cuda_driver_counts(void);

/* Work that holds a stream up until it is let through. A gate must be open, and its stream past it, before it goes. */
struct cuda_gate {
        sem_t open;
};

void cuda_gate_shut(struct cuda_gate *gate, void *stream);
void cuda_gate_open(struct cuda_gate *gate);
