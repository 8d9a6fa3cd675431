#include "client/cuda/finish.h"

#include "client/cuda/kernels/finish.h"

#define PIXELS_MOST ((1ull << 31) - 1) /* of one launch */

static struct dlk_finish_batch describe(const struct finish_form *form, cu_pointer from, uint64_t sample_stride,
                                        const struct dlc_tensor *tensor) {
        uint32_t first = form->form.channels_first;

        return (struct dlk_finish_batch){
                .in = from,
                .out = (cu_pointer)(uintptr_t)tensor->data,
                .table = form->form.dtype == DLC_UINT8 ? 0 : form->table,
                .in_sample_bytes = sample_stride,
                .out_sample_bytes = (uint64_t)tensor->strides[0],
                .height = (uint32_t)tensor->shape[1 + first],
                .width = (uint32_t)tensor->shape[2 + first],
                .n_channels = form->form.n_channels,
                .element_bytes = (uint32_t)dlc_dtype_bytes(form->form.dtype),
                .channels_first = first,
        };
}

static cu_result launch(const struct device *device, const struct dlk_finish_batch *batch) {
        struct dlk_finish_launch launch;
        void *parameters[] = { &launch.params };

        if (!dlk_finish_launch(batch, device->n_multiprocessors, &launch))
                return CU_INVALID_VALUE;
        return device->driver->launch(device->finish[launch.idx_name], launch.grid[0], launch.grid[1], launch.grid[2],
                                      launch.block[0], launch.block[1], launch.block[2], 0, device->working, parameters,
                                      NULL);
}

/* In one launch, unless the batch has billions of pixels. */
cu_result finish_launch(const struct device *device, const struct finish_form *form, cu_pointer from,
                        uint64_t sample_stride, const struct dlc_tensor *tensor) {
        struct dlk_finish_batch batch = describe(form, from, sample_stride, tensor);
        uint64_t n_pixels = (uint64_t)batch.height * batch.width, n_left = (uint64_t)tensor->shape[0];
        uint64_t n_most = n_pixels > 0 && n_pixels <= PIXELS_MOST ? PIXELS_MOST / n_pixels : 1;
        cu_result result = CU_SUCCESS;

        while (n_left > 0 && result == CU_SUCCESS) {
                batch.n_samples = (uint32_t)(n_left < n_most ? n_left : n_most);
                result = launch(device, &batch);
                batch.in += batch.n_samples * batch.in_sample_bytes;
                batch.out += batch.n_samples * batch.out_sample_bytes;
                n_left -= batch.n_samples;
        }
        return result;
}
