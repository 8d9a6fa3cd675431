/* gpu/kernels.cu: see kernels.h. Not fast: a product of a library keeps a GPU as busy. */
#include "tests/bench/gpu/kernels.h"

#include "client/cuda/kernels/kernel.h"

struct matmul_shared {
        float a[BENCH_TILE][BENCH_TILE], b[BENCH_TILE][BENCH_TILE], c[BENCH_THREADS];
};

DLK_FUNCTION void load_tiles(const struct bench_matmul *p, struct matmul_shared *shared, uint32_t thread, uint32_t x,
                             uint32_t y, uint32_t first) {
        uint32_t row = thread / BENCH_TILE, column = thread % BENCH_TILE;

        shared->a[row][column] = p->a[(uint64_t)(y * BENCH_TILE + row) * p->n + first + column];
        shared->b[row][column] = p->b[(uint64_t)(first + row) * p->n + x * BENCH_TILE + column];
}

DLK_FUNCTION void add_tiles(struct matmul_shared *shared, uint32_t thread) {
        float sum = shared->c[thread];

        DLK_UNROLL
        for (uint32_t i = 0; i < BENCH_TILE; i++)
                sum += shared->a[thread / BENCH_TILE][i] * shared->b[i][thread % BENCH_TILE];
        shared->c[thread] = sum;
}

DLK_KERNEL(dlk_bench_matmul, struct bench_matmul, struct matmul_shared, BENCH_THREADS) {
        DLK_PHASE shared->c[DLK_THREAD] = 0;
        for (uint32_t first = 0; first < p->n; first += BENCH_TILE) {
                DLK_PHASE load_tiles(p, shared, DLK_THREAD, DLK_BLOCK, DLK_BLOCK_Y, first);
                DLK_PHASE add_tiles(shared, DLK_THREAD);
        }
        DLK_PHASE p->c[(uint64_t)(DLK_BLOCK_Y * BENCH_TILE + DLK_THREAD / BENCH_TILE) * p->n + DLK_BLOCK * BENCH_TILE +
                       DLK_THREAD % BENCH_TILE] = shared->c[DLK_THREAD];
}

struct sum_shared {
        uint32_t sum;
};

DLK_FUNCTION uint32_t add_words(const struct bench_sum *p, uint64_t first, uint64_t step) {
        uint32_t sum = 0;

        for (uint64_t i = first; i < p->n_words; i += step)
                sum += p->words[i] * ((uint32_t)i * 2 + 1); /* bench_sum_factor() is the host's */
        return sum;
}

DLK_KERNEL(dlk_bench_sum, struct bench_sum, struct sum_shared, BENCH_THREADS) {
        DLK_PHASE if (DLK_THREAD == 0) shared->sum = 0;
        DLK_PHASE dlk_atomic_add(&shared->sum, add_words(p, DLK_GRID_THREAD, DLK_N_GRID_THREADS));
        DLK_PHASE if (DLK_THREAD == 0) dlk_atomic_add(p->sum, shared->sum);
}
