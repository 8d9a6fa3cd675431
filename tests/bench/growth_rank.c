/* growth_rank DATASET PIPELINE BATCH SLOTS ORDER SEED: one rank of those whose number is raised.
 *
 * Attaches, prints {"attach_ms", "first_ms" (to the first batch, attaching included), "ring_bytes"}, and takes batches
 * as fast as it gets them, looking at a byte of each page, until it is killed: what is measured meanwhile is measured
 * from outside. Ends with who started it. DATALOADERD_SOCKET, RANK, WORLD_SIZE and BENCH_JOB say where it attaches. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "client/include/dlclient.h"

#define TOUCH_STEP 4096 /* bytes */

static volatile uint8_t sink;

static double now_ms(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static _Noreturn void fail(const char *text) {
        fprintf(stderr, "growth_rank: %s\n", text);
        exit(1);
}

static struct dlc_loader *attach(char **argv) {
        struct dlc_options options = DLC_OPTIONS_INIT;
        struct dlc_loader *loader;

        options.dataset = argv[1];
        options.pipeline = argv[2];
        options.batch_size = atoi(argv[3]);
        options.n_slots = atoi(argv[4]);
        options.order = argv[5];
        options.seed = strtoull(argv[6], NULL, 10);
        options.job = getenv("BENCH_JOB");
        options.partition = "drop";
        options.drop_last = true;
        if (dlc_open(&options, &loader) < 0)
                fail(dlc_last_error());
        return loader;
}

static const struct dlc_batch *next(struct dlc_loader *loader) {
        const struct dlc_batch *batch;
        int r;

        while ((r = dlc_next(loader, 60000, &batch)) == DLC_END_OF_EPOCH)
                ;
        if (r < 0)
                fail(dlc_error(loader));
        return batch;
}

static void touch(const struct dlc_batch *batch) {
        const struct dlc_tensor *tensor = &batch->tensors[0];
        const uint8_t *bytes = tensor->data;

        if (tensor->places) {
                for (uint32_t i = 0; i < batch->n_samples; i++)
                        sink ^= bytes[tensor->places[i].offset];
                return;
        }
        for (int64_t i = 0; i < batch->n_samples * tensor->strides[0]; i += TOUCH_STEP)
                sink ^= bytes[i];
}

int main(int argc, char **argv) {
        struct dlc_loader *loader;
        double begin, attached;

        if (argc != 7) {
                fprintf(stderr, "usage: growth_rank DATASET PIPELINE BATCH SLOTS ORDER SEED\n");
                return 2;
        }
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        begin = now_ms();
        loader = attach(argv);
        attached = now_ms();
        for (int is_first = 1;; is_first = 0) {
                const struct dlc_batch *batch = next(loader);

                if (is_first) {
                        printf("{\"attach_ms\": %.3f, \"first_ms\": %.3f, \"ring_bytes\": %llu}\n", attached - begin,
                               now_ms() - begin, (unsigned long long)dlc_get_info(loader)->memory_bytes);
                        fflush(stdout);
                }
                touch(batch);
                dlc_release(loader, batch);
        }
}
