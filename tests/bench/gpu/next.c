/* dlc_cuda_next() of a batch that is ready: what it keeps the trainer's thread from. */
#include <stdio.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "tests/bench/gpu/bench.h"

#define N_MAX    10000
#define PAUSE_US 2000 /* the producer fills the slot that was given back */

void measure_next(const struct bench *bench) {
        static double us[N_MAX];
        uint32_t n = (uint32_t)bench->wish.n, n_warm = 20;
        struct dlc_cuda_info before, after;
        struct loader loader;
        double p50, p99;

        if (n < 1 || n > N_MAX)
                bench_fail(2, "n: 1 to %d", N_MAX);
        loader_open(&loader, bench, 2);
        before = loader_info(&loader);
        for (uint32_t i = 0; i < n_warm + n; i++) {
                const struct dlc_cuda_batch *batch;
                uint64_t begin = clock_now_ns();

                batch = loader_next(&loader, bench->stream);
                if (i >= n_warm)
                        us[i - n_warm] = (double)(clock_now_ns() - begin) / 1000;
                else
                        before = loader_info(&loader);
                loader_release(&loader, batch, bench->stream);
                bench_check(bench, bench->driver->stream_synchronize(bench->stream), "waiting for a batch");
                usleep(PAUSE_US);
        }
        after = loader_info(&loader);
        loader_close(&loader);
        p50 = quantile(us, n, 0.5);
        p99 = quantile(us, n, 0.99);
        printf("{\"p50\": %.3f, \"p99\": %.3f, \"n\": %u, \"n_ahead\": %llu}\n", p50, p99, n,
               (unsigned long long)(after.n_ahead - before.n_ahead));
}
