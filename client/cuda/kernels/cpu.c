#include "client/cuda/kernels/cpu.h"

#include "client/cuda/kernels/color.h"
#include "client/cuda/kernels/finish.h"

_Thread_local bool dlk_cpu_is_backwards;

#define DECLARED(symbol, ...) void symbol##_run(const void *params, const uint32_t grid[3], const uint32_t block[3]);
DLK_FINISH_KERNELS(DECLARED)
DLK_COLOR_KERNELS(DECLARED)

#define FINISH(symbol, ...) { #symbol, sizeof(struct dlk_finish), symbol##_run },
#define COLOR(symbol)       { #symbol, sizeof(struct dlk_color), symbol##_run },
const struct dlk_cpu_kernel dlk_cpu_kernels[] = { DLK_FINISH_KERNELS(FINISH) DLK_COLOR_KERNELS(COLOR) };
const uint32_t dlk_n_cpu_kernels = sizeof(dlk_cpu_kernels) / sizeof(dlk_cpu_kernels[0]);
