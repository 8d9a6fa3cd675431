/* A rank of the demonstration: what a training program does with its batches, with a line about each.
 *
 * RANK, WORLD_SIZE and the job's name come from the environment, as torchrun sets them; DATALOADERD_SOCKET says where
 * the daemon is. Every byte of every batch is looked at, as training would. Lines on stdout:
 *
 *         open NS                                      dlc_open() took so long
 *         batch EPOCH STEP WAIT_NS SUBSTITUTED INDEX...  a batch, how long dlc_next() took, and its samples
 *         end NS CHECKSUM                              all of it, from before dlc_open() to after the last batch */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "client/include/dlclient.h"

static uint64_t now_ns(void) {
        struct timespec now;

        clock_gettime(CLOCK_MONOTONIC, &now);
        return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

/* Stands for the training step: reads what is there. */
static uint64_t look_at(const struct dlc_batch *batch) {
        const struct dlc_tensor *image = &batch->tensors[0];
        uint64_t sum = 0, word;

        for (uint32_t i = 0; i < batch->n_samples; i++) {
                const uint8_t *pixels = (const uint8_t *)image->data + (int64_t)i * image->strides[0];

                for (int64_t at = 0; at + 8 <= image->strides[0]; at += 8) {
                        memcpy(&word, pixels + at, sizeof(word));
                        sum += word;
                }
        }
        return sum;
}

static void tell(const struct dlc_batch *batch, uint64_t wait_ns) {
        printf("batch %" PRIu64 " %" PRIu64 " %" PRIu64 " %u", batch->epoch, batch->step, wait_ns,
               batch->n_substituted);
        for (uint32_t i = 0; i < batch->n_samples; i++)
                printf(" %" PRId64, batch->indices[i]);
        putchar('\n');
}

/* Returns what dlc_next() ended the epoch with: DLC_END_OF_EPOCH, 0 if the limit was met, or an error. */
static int read_epoch(struct dlc_loader *loader, uint64_t limit, uint64_t *checksum) {
        const struct dlc_batch *batch;

        for (uint64_t n = 0; n < limit; n++) {
                uint64_t begin_ns = now_ns();
                int r = dlc_next(loader, -1, &batch);

                if (r != 0)
                        return r;
                uint64_t wait_ns = now_ns() - begin_ns;
                *checksum += look_at(batch);
                tell(batch, wait_ns);
                dlc_release(loader, batch);
        }
        return 0;
}

int main(int argc, char **argv) {
        struct dlc_options options = DLC_OPTIONS_INIT;
        struct dlc_loader *loader;
        uint64_t begin_ns = now_ns(), checksum = 0;

        if (argc != 7) {
                fprintf(stderr, "usage: rank DATASET PIPELINE BATCH SEED EPOCHS LIMIT\n");
                return 64;
        }
        options.dataset = argv[1];
        options.pipeline = argv[2];
        options.batch_size = atoi(argv[3]);
        options.seed = strtoull(argv[4], NULL, 10);
        options.n_epochs = strtoull(argv[5], NULL, 10);
        options.on_error = "substitute";

        if (dlc_open(&options, &loader) < 0) {
                fprintf(stderr, "rank: %s\n", dlc_last_error());
                return 1;
        }
        printf("open %" PRIu64 "\n", now_ns() - begin_ns);
        for (uint64_t epoch = 0; epoch < options.n_epochs; epoch++) {
                if (dlc_set_epoch(loader, epoch) < 0 ||
                    read_epoch(loader, strtoull(argv[6], NULL, 10), &checksum) < 0) {
                        fprintf(stderr, "rank: %s\n", dlc_error(loader));
                        dlc_close(loader);
                        return 1;
                }
        }
        printf("end %" PRIu64 " %016" PRIx64 "\n", now_ns() - begin_ns, checksum);
        dlc_close(loader);
        return 0;
}
