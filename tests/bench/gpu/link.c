/* The link: copies out of the ring's memory, which the library has registered, against the same out of memory that the
 * driver has made, and out of ordinary memory, in turns. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/bench/gpu/bench.h"

#define REPEATS_MAX 101

enum kind {
        REGISTERED, /* the ring's */
        ALLOCATED,  /* cuMemHostAlloc() */
        PAGEABLE,
        N_KINDS
};

double link_rate(const struct bench *bench, const uint8_t *memory, uint64_t n_bytes, cu_pointer to) {
        uint64_t n_piece = batch_bytes(bench), n_pieces = n_bytes / n_piece;

        bench_begin(bench);
        for (int i = 0; i < bench->wish.copies; i++)
                bench_check(
                        bench,
                        bench->driver->copy_in(to, memory + (uint64_t)i % n_pieces * n_piece, n_piece, bench->stream),
                        "copying to the device");
        return (double)n_piece * bench->wish.copies / bench_end(bench) / 1e6;
}

static void open_memory(const struct bench *bench, uint64_t n_bytes, void *memory[N_KINDS]) {
        bench_check(bench, bench->extra.host_allocate(&memory[ALLOCATED], n_bytes, 1), "cuMemHostAlloc()");
        memory[PAGEABLE] = mmap(NULL, n_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory[PAGEABLE] == MAP_FAILED)
                bench_fail(1, "no memory to copy from");
        memset(memory[ALLOCATED], 1, n_bytes);
        memset(memory[PAGEABLE], 1, n_bytes); /* else all of it is one page of zeros */
}

static void measure(const struct bench *bench, void *const memory[N_KINDS], uint64_t n_bytes,
                    double rates[N_KINDS][REPEATS_MAX], double ratios[REPEATS_MAX]) {
        cu_pointer to = bench_allocate(bench, batch_bytes(bench));

        for (int kind = 0; kind < N_KINDS; kind++) /* to warm up */
                link_rate(bench, memory[kind], n_bytes, to);
        for (int repeat = 0; repeat < bench->wish.repeats; repeat++) {
                for (int i = 0; i < N_KINDS; i++) {
                        int kind = (repeat + i) % N_KINDS;

                        rates[kind][repeat] = link_rate(bench, memory[kind], n_bytes, to);
                }
                ratios[repeat] = rates[REGISTERED][repeat] / rates[ALLOCATED][repeat];
        }
        bench_free(bench, to);
}

void measure_link(const struct bench *bench) {
        static double rates[N_KINDS][REPEATS_MAX], ratios[REPEATS_MAX];
        uint32_t n = (uint32_t)bench->wish.repeats;
        void *memory[N_KINDS];
        struct dlc_cuda_info info;
        struct loader loader;
        struct summary ratio;
        uint64_t n_bytes;

        if (n > REPEATS_MAX)
                bench_fail(2, "repeats: at most %d", REPEATS_MAX);
        loader_open(&loader, bench, 2);
        info = loader_info(&loader);
        if (dlc_hold_memory(loader.loader, &memory[REGISTERED], &n_bytes) < 0)
                bench_fail(1, "%s", dlc_last_error());
        open_memory(bench, n_bytes, memory);
        measure(bench, memory, n_bytes, rates, ratios);
        ratio = summarise(ratios, n);
        printf("{\"registered\": %.4f, \"allocated\": %.4f, \"pageable\": %.4f, \"ratio\": %.4f, \"ratio_low\": %.4f, "
               "\"ratio_high\": %.4f, \"copy_bytes\": %llu, \"memory_bytes\": %llu, \"registered_bytes\": %llu}\n",
               summarise(rates[REGISTERED], n).median, summarise(rates[ALLOCATED], n).median,
               summarise(rates[PAGEABLE], n).median, ratio.median, ratio.low, ratio.high,
               (unsigned long long)batch_bytes(bench), (unsigned long long)n_bytes,
               (unsigned long long)info.registered_bytes);
        bench_check(bench, bench->extra.host_release(memory[ALLOCATED]), "cuMemFreeHost()");
        munmap(memory[PAGEABLE], n_bytes);
        dlc_let_memory(loader.loader, memory[REGISTERED]);
        loader_close(&loader);
}
