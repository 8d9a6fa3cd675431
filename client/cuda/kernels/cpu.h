/* client/cuda/kernels/cpu.h: the kernels as functions of the CPU, for tests alone: libkernels-cpu.a.
 *
 * A test calls them directly, or has a driver of its own that finds them by the names that a program asks it for. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct dlk_cpu_kernel {
        const char *name;      /* as in the image */
        uint32_t params_bytes; /* of its one parameter */
        /* Runs the whole grid in the caller's thread. Any number of threads may do so at once. `params` needs no
         * alignment. Pointers in it are the CPU's. */
        void (*run)(const void *params, const uint32_t grid[3], const uint32_t block[3]);
};

/* All kernels of the image. */
extern const struct dlk_cpu_kernel dlk_cpu_kernels[];
extern const uint32_t dlk_n_cpu_kernels;

/* Lets the calling thread's kernels run their threads and blocks in the reverse order. A kernel that lacks a barrier
 * gives something else then. */
extern _Thread_local bool dlk_cpu_is_backwards;
