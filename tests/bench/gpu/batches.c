/* Loaders, and the arithmetic of what is measured. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "proto/base/clock.h"
#include "tests/bench/gpu/bench.h"

/* ---- loaders --------------------------------------------------------------------------------------------------- */

void loader_open(struct loader *loader, const struct bench *bench, int n_batches) {
        struct dlc_cuda_options cuda_options = DLC_CUDA_OPTIONS_INIT;
        struct dlc_options options = DLC_OPTIONS_INIT;
        char pipeline[128], bus_id[32];

        snprintf(pipeline, sizeof(pipeline), "random_resized_crop(%d) hflip(0.5) to(float16) layout(nchw)",
                 bench->wish.side);
        if (dlc_cuda_get_bus_id(0, bus_id, sizeof(bus_id)) == 0)
                options.near_device = bus_id; /* as trainers are to open theirs */
        options.socket = bench->wish.socket;
        options.dataset = "photos";
        options.pipeline = pipeline;
        options.batch_size = bench->wish.batch;
        options.n_slots = bench->wish.slots;
        options.leave_forms = true;
        options.drop_last = true;
        options.rank = 0;
        options.world_size = 1;
        if (dlc_open(&options, &loader->loader) < 0)
                bench_fail(1, "%s", dlc_last_error());
        cuda_options.n_batches = n_batches;
        cuda_options.device = 0;
        if (dlc_cuda_open(loader->loader, &cuda_options, &loader->cuda) < 0)
                bench_fail(1, "%s", dlc_cuda_last_error());
}

void loader_close(struct loader *loader) {
        dlc_cuda_close(loader->cuda);
        dlc_close(loader->loader);
}

const struct dlc_cuda_batch *loader_next(const struct loader *loader, cu_stream stream) {
        const struct dlc_cuda_batch *batch;
        int r;

        while ((r = dlc_cuda_next(loader->cuda, 60000, stream, &batch)) == DLC_END_OF_EPOCH)
                ;
        if (r < 0)
                bench_fail(1, "%s", dlc_cuda_last_error());
        return batch;
}

void loader_release(const struct loader *loader, const struct dlc_cuda_batch *batch, cu_stream stream) {
        if (dlc_cuda_release(loader->cuda, batch, stream) < 0)
                bench_fail(1, "%s", dlc_cuda_last_error());
}

struct dlc_cuda_info loader_info(const struct loader *loader) {
        struct dlc_cuda_info info;

        dlc_cuda_get_info(loader->cuda, &info, sizeof(info));
        return info;
}

uint64_t batch_bytes(const struct bench *bench) {
        return 3ull * (uint64_t)bench->wish.side * (uint64_t)bench->wish.side * (uint64_t)bench->wish.batch;
}

/* ---- time ------------------------------------------------------------------------------------------------------ */

double seconds_now(void) {
        return (double)clock_now_ns() / 1e9;
}

/* Fields 14 and 15 of its stat line; they are counted from the bracket that ends the name. */
double cpu_seconds_of(int pid) {
        unsigned long long user = 0, kernel = 0;
        char path[64], line[1024];
        const char *rest = NULL;
        FILE *file;

        snprintf(path, sizeof(path), "/proc/%d/stat", pid);
        file = fopen(path, "re");
        if (file && fgets(line, sizeof(line), file))
                rest = strrchr(line, ')');
        if (!rest || sscanf(rest + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu", &user, &kernel) != 2)
                bench_fail(1, "process %d is gone", pid);
        fclose(file);
        return (double)(user + kernel) / (double)sysconf(_SC_CLK_TCK);
}

/* ---- summaries ------------------------------------------------------------------------------------------------- */

static int by_value(const void *a, const void *b) {
        double x = *(const double *)a, y = *(const double *)b;

        return (x > y) - (x < y);
}

double quantile(double *values, uint32_t n, double share) {
        uint32_t at = (uint32_t)((double)n * share);

        qsort(values, n, sizeof(values[0]), by_value);
        return values[at < n ? at : n - 1];
}

struct summary summarise(double *values, uint32_t n) {
        struct summary summary = { .median = quantile(values, n, 0.5) };

        summary.low = values[0];
        summary.high = values[n - 1];
        return summary;
}
