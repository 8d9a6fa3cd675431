/* cuda/standin.h: a driver of the tests' own, libcuda.so.1, for machines without a GPU.
 *
 * It stands in for the driver only. Streams are threads, device memory is memory of the process in an arena of its own,
 * and kernels are functions compiled for the CPU. What a real driver forgives by chance is seen here: work begins late,
 * copies from registered memory read their source when they are executed and in pieces, freed memory cannot be read,
 * and what a client must not do is counted as a violation. The environment says how it behaves:
 *
 *     DLT_CUDA_DEVICES=1          how many devices there are; 0: CUDA_ERROR_NO_DEVICE
 *     DLT_CUDA_VERSION=12080      of the driver
 *     DLT_CUDA_CAPABILITY=9.0     of each device
 *     DLT_CUDA_MEMORY=1073741824  bytes of each device
 *     DLT_CUDA_READ_ONLY=0        attribute 113: may read-only memory be registered?
 *     DLT_CUDA_DELAY_US=2000      longest time that a piece of work waits before it begins; 0: none waits
 *     DLT_CUDA_SEED=1             of these times
 *     DLT_CUDA_FAIL=NAME:K:CODE   the K-th call of NAME (from 1) fails with CODE; with ":sticky" after it, every later
 *                                 call fails with 700, and no queued work is executed. Several, separated by commas.
 *     DLT_CUDA_REPORT=FILE        written when the process ends: a line "name value" for each field of struct
 *                                 dlt_cuda_counts and "calls.NAME value" for each call that was made
 *
 * After fork() every call in the child returns CUDA_ERROR_NOT_INITIALIZED, if the parent had called cuInit(). */
#pragma once

#include <stdint.h>

#include "client/cuda/kernels/cpu.h"
#include "tests/cuda/abi.h"

#define DLT_CUDA_TEXT 200 /* bytes of a violation's text */

/* What is alive, without what cuInit() and the streams NULL, 1 and 2 need. */
struct dlt_cuda_counts {
        uint64_t n_calls;
        uint64_t n_failed;             /* calls that returned what DLT_CUDA_FAIL says */
        uint64_t n_contexts;           /* primary contexts that are retained */
        uint64_t n_streams;            /* alive */
        uint64_t n_events;             /* alive */
        uint64_t n_modules;            /* alive */
        uint64_t n_allocations;        /* of device memory, alive */
        uint64_t bytes_allocated;      /* by them */
        uint64_t max_bytes_allocated;  /* at any time */
        uint64_t n_host_allocations;   /* cuMemHostAlloc(), alive */
        uint64_t n_registrations;      /* alive */
        uint64_t bytes_registered;     /* by them */
        uint64_t max_bytes_registered; /* at any time */
        uint64_t n_left;               /* were alive when the last reference to their context was released */
        uint64_t n_images;             /* loaded as modules, ever */
        uint64_t n_launches;           /* of kernels */
        uint64_t n_copies_late;        /* from or to registered memory: touched when executed */
        uint64_t n_copies_staged;      /* from or to other memory: touched before the call returned */
        uint64_t bytes_to_device;      /* executed */
        uint64_t bytes_to_host;        /* executed */
        uint64_t bytes_on_device;      /* executed */
        uint64_t n_violations;
        char first_violation[DLT_CUDA_TEXT];
};

/* What has happened so far. Any thread; looked up by dlsym(), as the next ones. */
CUDA_EXPORT void dlt_cuda_counts(struct dlt_cuda_counts *ret_counts);

/* How often a call was made, by either of its names ("cuMemAlloc", "cuMemAlloc_v2"). */
CUDA_EXPORT uint64_t dlt_cuda_calls(const char *name);

/* Begins anew, as if the process had just loaded it: ends all work, forgets what is alive, sets counts to zero and
 * reads the environment again. Older handles stay invalid. No other thread may be within a call. */
CUDA_EXPORT void dlt_cuda_restart(void);

#define DLT_CUDA_STICKY 0x10000

/* `trap` is asked before each call, with its name as cuGetProcAddress() takes it: 0, or the error with which the call
 * fails; with DLT_CUDA_STICKY added, as ":sticky" says above. It must call nothing of the driver. NULL: nobody is
 * asked. A restart leaves it. */
CUDA_EXPORT void dlt_cuda_set_trap(int (*trap)(const char *name));

/* Adds kernels that cuModuleGetFunction() finds, beside the product's own. They must stay where they are. */
CUDA_EXPORT void dlt_cuda_add_kernels(const struct dlk_cpu_kernel *kernels, uint32_t n_kernels);
