/* client/cuda/kernels/kernel.h: how a kernel is written, so that one source is CUDA C++ for nvcc and C11 for the CPU.
 *
 * The CPU's build is how kernels are tested: this tree builds and passes its tests on machines without a GPU. So a
 * kernel is written for both, in the part of the two languages that is the same: no templates, no designated
 * initialisers, and a cast wherever C would convert a void pointer by itself.
 *
 *     struct sum { const uint8_t *in; uint32_t n; uint32_t *out; };       plain data; one parameter, by value
 *     struct sum_shared { uint32_t total; };                              what the threads of a block share
 *
 *     DLK_KERNEL(dlk_sum, struct sum, struct sum_shared, 256) {
 *             DLK_PHASE if (DLK_THREAD == 0)
 *                     shared->total = 0;
 *             DLK_PHASE for (uint32_t i = DLK_THREAD; i < p->n; i += DLK_N_THREADS)
 *                     dlk_atomic_add(&shared->total, p->in[i]);
 *             DLK_PHASE if (DLK_THREAD == 0)
 *                     p->out[DLK_BLOCK] = shared->total;
 *     }
 *
 * The body is a block's: `p` points to the parameters and `shared` to the shared struct. A phase is what each thread of
 * the block does before the next barrier. On the GPU the threads run it at once, and __syncthreads() ends it; on the
 * CPU a loop over the threads does. That gives four rules:
 *
 *   - Outside of phases only what is the same for all threads of a block: loops with a number of rounds that all agree
 *     on, offsets made of DLK_BLOCK. Nothing there writes to `shared` or to memory. It may read what a phase left in
 *     them if the next phase does not write it, since no barrier lies between the two. A phase changes no local
 *     variable of the body. What a thread keeps from phase to phase lies in `shared`.
 *   - Threads see each other's writes in the next phase; in the same one, only through the atomics below.
 *   - `continue` ends a phase for a thread. `break`, `return` and `goto` out of a phase would pass by the barrier.
 *   - Blocks know nothing of each other, and there is no warp: no shuffles, no votes.
 *
 * A kernel stands in the list of its header (finish.h: DLK_FINISH_KERNELS), from which cpu.c makes its table. Its name
 * begins with dlk_, for it is a symbol of the image. */
#pragma once

#include <assert.h>
#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The host writes a parameter struct, the device reads it: each has a static_assert of its size beside it, and pointers
 * come first, so that no padding is left to be disagreed about. Pointers hold device addresses: typed, because nvcc
 * knows of a parameter's pointer that it is global memory, and of a number that became a pointer it does not. */
static_assert(sizeof(void *) == 8, "device addresses have 64 bits");

/* What a block may share without asking the driver for more. */
#define DLK_SHARED_MOST 49152u

/* The shared struct of a kernel whose threads share nothing. */
struct dlk_unshared {
        uint8_t unused;
};

/* 16 bytes, which travel at once where their address is a multiple of 16. */
struct dlk_16 {
        uint32_t word[4];
};

/* 8 bytes, where their address is a multiple of 8. */
struct dlk_8 {
        uint32_t word[2];
};

/* The thread among all of a grid of one dimension, and how many those are: for loops that go through all that is to be
 * done with a grid of any size. */
#define DLK_GRID_THREAD    (DLK_BLOCK * DLK_N_THREADS + DLK_THREAD)
#define DLK_N_GRID_THREADS (DLK_N_BLOCKS * DLK_N_THREADS)

#ifdef __CUDACC__

/* A function of the device. Always inlined: a call would put its arguments, and every struct, into local memory. */
#define DLK_FUNCTION static __device__ __forceinline__
/* Before a loop over a local array: only what is indexed by numbers known to the compiler lies in registers. */
#define DLK_UNROLL _Pragma("unroll")
/* Before a loop that runs rarely: nvcc would else write its body several times. */
#define DLK_LOOP _Pragma("unroll 1")
/* A table that is part of the image. Threads that read different entries at once wait for each other. */
#define DLK_CONSTANT static __constant__ const

/* Blocks have one dimension, of at most `most` threads; grids have up to three. */
#define DLK_THREAD     threadIdx.x
#define DLK_N_THREADS  blockDim.x
#define DLK_BLOCK      blockIdx.x
#define DLK_BLOCK_Y    blockIdx.y
#define DLK_BLOCK_Z    blockIdx.z
#define DLK_N_BLOCKS   gridDim.x
#define DLK_N_BLOCKS_Y gridDim.y
#define DLK_N_BLOCKS_Z gridDim.z

#define DLK_KERNEL(name, params_type, shared_type, most)                                                               \
        DLK_FUNCTION void name##_body(const params_type *p, shared_type *shared);                                      \
        static_assert(sizeof(shared_type) <= DLK_SHARED_MOST, "too much for the threads of a block to share");         \
        extern "C" __global__ void __launch_bounds__(most) name(const params_type params) {                            \
                __shared__ shared_type shared;                                                                         \
                name##_body(&params, &shared);                                                                         \
        }                                                                                                              \
        DLK_FUNCTION void name##_body(const params_type *p, shared_type *shared)

#define DLK_PHASE for (bool dlk_is_in = true; dlk_is_in; dlk_is_in = false, __syncthreads())

/* Each returns what was there before. In `shared` or in global memory; relaxed, so they order nothing else. */
DLK_FUNCTION uint32_t dlk_atomic_add(uint32_t *at, uint32_t value) {
        return atomicAdd(at, value);
}

DLK_FUNCTION uint32_t dlk_atomic_max(uint32_t *at, uint32_t value) {
        return atomicMax(at, value);
}

DLK_FUNCTION uint32_t dlk_atomic_or(uint32_t *at, uint32_t value) {
        return atomicOr(at, value);
}

/* Bytes that are read once: they are the first to leave the caches. */
DLK_FUNCTION struct dlk_16 dlk_load_16(const void *from) {
        uint4 all = __ldcs((const uint4 *)from);
        struct dlk_16 got = { { all.x, all.y, all.z, all.w } };

        return got;
}

DLK_FUNCTION struct dlk_8 dlk_load_8(const void *from) {
        uint2 all = __ldcs((const uint2 *)from);
        struct dlk_8 got = { { all.x, all.y } };

        return got;
}

DLK_FUNCTION uint32_t dlk_load_4(const void *from) {
        return __ldcs((const uint32_t *)from);
}

/* A batch is larger than the caches, so what is written leaves them first as well: 3 % faster on an H200 than a store
 * that may stay. */
DLK_FUNCTION void dlk_store_16(void *to, struct dlk_16 value) {
        __stcs((uint4 *)to, make_uint4(value.word[0], value.word[1], value.word[2], value.word[3]));
}

#else

#include "client/cuda/kernels/cpu.h"

#include <string.h>

#define DLK_FUNCTION static inline
#define DLK_UNROLL
#define DLK_LOOP
#define DLK_CONSTANT static const

/* Where the CPU is in a grid. Blocks run one after another, so what a block leaves in `shared` is filled with other
 * bytes before the next: a kernel that reads what it never wrote is seen. */
struct dlk_cpu {
        uint32_t thread, n_threads;
        uint32_t block[3], n_blocks[3];
};

#define DLK_THREAD     (dlk_cpu->thread)
#define DLK_N_THREADS  (dlk_cpu->n_threads)
#define DLK_BLOCK      (dlk_cpu->block[0])
#define DLK_BLOCK_Y    (dlk_cpu->block[1])
#define DLK_BLOCK_Z    (dlk_cpu->block[2])
#define DLK_N_BLOCKS   (dlk_cpu->n_blocks[0])
#define DLK_N_BLOCKS_Y (dlk_cpu->n_blocks[1])
#define DLK_N_BLOCKS_Z (dlk_cpu->n_blocks[2])

#define DLK_KERNEL(name, params_type, shared_type, most)                                                               \
        static void name##_body(const params_type *p, shared_type *shared, struct dlk_cpu *dlk_cpu);                   \
        static_assert(sizeof(shared_type) <= DLK_SHARED_MOST, "too much for the threads of a block to share");         \
        void name##_run(const void *params, const uint32_t grid[3], const uint32_t block[3]);                          \
        void name##_run(const void *params, const uint32_t grid[3], const uint32_t block[3]) {                         \
                params_type p;                                                                                         \
                shared_type shared;                                                                                    \
                struct dlk_cpu cpu;                                                                                    \
                uint64_t n_blocks;                                                                                     \
                                                                                                                       \
                memcpy(&p, params, sizeof(p));                                                                         \
                n_blocks = dlk_cpu_begin(&cpu, grid, block, most);                                                     \
                for (uint64_t i = 0; i < n_blocks; i++) {                                                              \
                        dlk_cpu_enter(&cpu, i);                                                                        \
                        memset(&shared, 0xa5, sizeof(shared));                                                         \
                        name##_body(&p, &shared, &cpu);                                                                \
                }                                                                                                      \
        }                                                                                                              \
        static void name##_body(const params_type *p, shared_type *shared, struct dlk_cpu *dlk_cpu)

#define DLK_PHASE for (uint32_t dlk_i = 0; dlk_cpu_next(dlk_cpu, dlk_i); dlk_i++)

/* Returns the number of blocks. Asserts what a driver refuses. */
static inline uint64_t dlk_cpu_begin(struct dlk_cpu *cpu, const uint32_t grid[3], const uint32_t block[3],
                                     uint32_t most) {
        assert(block[0] > 0 && block[0] <= most && block[1] == 1 && block[2] == 1);
        assert(grid[0] > 0 && grid[1] > 0 && grid[1] < 65536 && grid[2] > 0 && grid[2] < 65536);

        cpu->n_threads = block[0];
        for (uint32_t i = 0; i < 3; i++)
                cpu->n_blocks[i] = grid[i];
        return (uint64_t)grid[0] * grid[1] * grid[2];
}

static inline void dlk_cpu_enter(struct dlk_cpu *cpu, uint64_t idx) {
        uint64_t n_plane = (uint64_t)cpu->n_blocks[0] * cpu->n_blocks[1];

        if (dlk_cpu_is_backwards)
                idx = n_plane * cpu->n_blocks[2] - 1 - idx;
        cpu->block[0] = (uint32_t)(idx % cpu->n_blocks[0]);
        cpu->block[1] = (uint32_t)(idx / cpu->n_blocks[0] % cpu->n_blocks[1]);
        cpu->block[2] = (uint32_t)(idx / n_plane);
}

static inline bool dlk_cpu_next(struct dlk_cpu *cpu, uint32_t i) {
        cpu->thread = dlk_cpu_is_backwards ? cpu->n_threads - 1 - i : i;
        return i < cpu->n_threads;
}

static inline uint32_t dlk_atomic_add(uint32_t *at, uint32_t value) {
        return __atomic_fetch_add(at, value, __ATOMIC_RELAXED);
}

static inline uint32_t dlk_atomic_max(uint32_t *at, uint32_t value) {
        uint32_t before = __atomic_load_n(at, __ATOMIC_RELAXED);

        while (before < value &&
               !__atomic_compare_exchange_n(at, &before, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
                ;
        return before;
}

static inline uint32_t dlk_atomic_or(uint32_t *at, uint32_t value) {
        return __atomic_fetch_or(at, value, __ATOMIC_RELAXED);
}

/* A GPU traps on an address that is not a multiple of the size; here that is asserted. */
static inline struct dlk_16 dlk_load_16(const void *from) {
        struct dlk_16 got;

        assert((uintptr_t)from % sizeof(got) == 0);
        memcpy(&got, from, sizeof(got));
        return got;
}

static inline struct dlk_8 dlk_load_8(const void *from) {
        struct dlk_8 got;

        assert((uintptr_t)from % sizeof(got) == 0);
        memcpy(&got, from, sizeof(got));
        return got;
}

static inline uint32_t dlk_load_4(const void *from) {
        uint32_t got;

        assert((uintptr_t)from % sizeof(got) == 0);
        memcpy(&got, from, sizeof(got));
        return got;
}

static inline void dlk_store_16(void *to, struct dlk_16 value) {
        assert((uintptr_t)to % sizeof(value) == 0);
        memcpy(to, &value, sizeof(value));
}

#endif
