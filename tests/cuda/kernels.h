/* cuda/kernels.h: kernels that the CPU runs in place of the device.
 *
 * Each takes one struct by value as its only parameter. The product's own are in dlk_cpu_kernels. */
#pragma once

#include <stdint.h>

struct dlk_cpu_kernel {
        const char *name;
        uint32_t params_bytes; /* of the struct */
        void (*run)(const void *params, const uint32_t grid[3], const uint32_t block[3]);
};

/* Weak: the stand-in works without them. */
extern const struct dlk_cpu_kernel dlk_cpu_kernels[] __attribute__((weak));
extern const uint32_t dlk_n_cpu_kernels __attribute__((weak));
