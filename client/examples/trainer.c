/* trainer.c: a training program around dataloaderd, in one page.
 *
 *         trainer DATASET EPOCHS
 *
 * Alone, or once a rank under torchrun, mpirun or srun, which set RANK and WORLD_SIZE or their own names for them. The
 * daemon is found by DATALOADERD_SOCKET. */
#include <dlclient.h>

#include <err.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Stands for the training step: looks at every pixel and every label, in their order. */
static uint64_t train(const struct dlc_batch *batch, uint64_t checksum) {
        const struct dlc_tensor *image = &batch->tensors[0], *label = &batch->tensors[1];
        const int64_t *shape = image->shape, *labels = label->data; /* [n, height, width, 3] and [n] */

        for (uint32_t i = 0; i < batch->n_samples; i++) {
                const uint8_t *pixels = (const uint8_t *)image->data + (int64_t)i * image->strides[0];
                uint64_t sum = 0;

                for (int64_t k = 0; k < shape[1] * shape[2] * shape[3]; k++)
                        sum += pixels[k];
                checksum = checksum * 31 + sum + (uint64_t)labels[i];
        }
        return checksum;
}

static void run_epoch(struct dlc_loader *loader, uint64_t epoch) {
        uint64_t n_batches = 0, n_samples = 0, checksum = 0;
        const struct dlc_batch *batch;
        int r;

        if (dlc_set_epoch(loader, epoch) < 0)
                errx(1, "%s", dlc_error(loader));
        while ((r = dlc_next(loader, -1, &batch)) == 0) {
                checksum = train(batch, checksum);
                n_samples += batch->n_samples;
                n_batches++;
                dlc_release(loader, batch); /* its slot is filled again while the next batch is worked on */
        }
        if (r != DLC_END_OF_EPOCH)
                errx(1, "%s", dlc_error(loader));
        printf("epoch %" PRIu64 ": %" PRIu64 " batches, %" PRIu64 " samples, checksum %016" PRIx64 "\n", epoch,
               n_batches, n_samples, checksum);
}

int main(int argc, char **argv) {
        struct dlc_options options = DLC_OPTIONS_INIT;
        struct dlc_loader *loader;

        if (argc != 3 || atoi(argv[2]) < 1)
                errx(2, "usage: trainer DATASET EPOCHS");
        options.dataset = argv[1];
        options.batch_size = 64;
        options.pipeline = "random_resized_crop(224) hflip(0.5)";
        options.n_epochs = (uint64_t)atoi(argv[2]);
        if (dlc_open(&options, &loader) < 0)
                errx(1, "%s", dlc_last_error());
        for (uint64_t epoch = 0; epoch < options.n_epochs; epoch++)
                run_epoch(loader, epoch);
        dlc_close(loader);
        return 0;
}
