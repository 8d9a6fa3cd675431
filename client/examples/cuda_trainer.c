/* cuda_trainer.c: takes a dataset's batches on a GPU for two epochs.
 *
 *      cuda_trainer DATASET [BATCH_SIZE]
 *
 * Build it with:  cc -o cuda_trainer cuda_trainer.c $(pkg-config --cflags --libs dlclient-cuda dlclient)
 *
 * Where a kernel would be launched on `stream`, it prints what it would get. Without a GPU it says why there is none.
 */
#include <dlclient-cuda.h>

#include <err.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char *argv[]) {
        struct dlc_options o = DLC_OPTIONS_INIT;
        struct dlc_loader *loader;
        struct dlc_cuda *cuda;
        char bus_id[DLC_CUDA_BUS_ID_MAX];
        void *stream = NULL; /* a CUstream or cudaStream_t; NULL: the legacy default stream */

        if (argc < 2)
                errx(2, "usage: cuda_trainer DATASET [BATCH_SIZE]");
        o.dataset = argv[1];
        o.batch_size = argc > 2 ? atoi(argv[2]) : 64;
        o.pipeline = "random_resized_crop(224) hflip(0.5) color_jitter(0.4, 0.4, 0.4) to(float16) layout(nchw)";
        o.leave_forms = true;      /* uint8 crosses the link, and becomes float16 there; */
        o.leave_operations = true; /* and pictures are flipped there, and their colours changed */
        if (dlc_cuda_get_bus_id(-1, bus_id, sizeof(bus_id)) == 0)
                o.near_device = bus_id; /* the daemon takes memory that is near to it */
        if (dlc_open(&o, &loader) < 0)
                errx(1, "%s", dlc_last_error());
        if (dlc_cuda_open(loader, NULL, &cuda) < 0)
                errx(1, "%s", dlc_cuda_last_error());
        for (unsigned epoch = 0; epoch < 2; epoch++) {
                const struct dlc_cuda_batch *b;
                int r;

                if (dlc_cuda_set_epoch(cuda, epoch) < 0)
                        errx(1, "%s", dlc_cuda_error(cuda));
                while ((r = dlc_cuda_next(cuda, -1, stream, &b)) == 0) {
                        const struct dlc_tensor *image = &b->batch.tensors[0];

                        /* train<<<..., stream>>>(image->data, ...): it runs after the copy, without waiting here */
                        printf("epoch %u, step %llu: %s %s [%lld, %lld, %lld, %lld] at %p\n", epoch,
                               (unsigned long long)b->batch.step, image->name, dlc_dtype_name(image->dtype),
                               (long long)image->shape[0], (long long)image->shape[1], (long long)image->shape[2],
                               (long long)image->shape[3], image->data);
                        dlc_cuda_release(cuda, b, stream); /* written again only after what `stream` was asked for */
                }
                if (r < 0)
                        errx(1, "%s", dlc_cuda_error(cuda));
        }
        dlc_cuda_close(cuda);
        dlc_close(loader);
        return 0;
}
