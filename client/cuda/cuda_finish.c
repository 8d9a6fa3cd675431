#include "client/cuda/cuda_finish.h"

#include <stddef.h>

#include "client/cuda/kernels/color.h"
#include "client/cuda/kernels/finish.h"

#define PIXELS_MOST ((1ull << 31) - 1) /* of one launch */

/* The kernels read what the daemon wrote. */
_Static_assert(sizeof(struct dlk_color_record) == sizeof(struct dlc_left_operations), "the same record");
_Static_assert(offsetof(struct dlk_color_record, flips) == 0 && offsetof(struct dlc_left_operations, flips) == 0,
               "flips are its first byte");
_Static_assert(offsetof(struct dlk_color_record, operations) == offsetof(struct dlc_left_operations, operations) &&
                       offsetof(struct dlk_color_record, sums) == offsetof(struct dlc_left_operations, scratch),
               "the same record");
_Static_assert((int)DLK_COLOR_BRIGHTNESS == (int)DLC_LEFT_BRIGHTNESS &&
                       (int)DLK_COLOR_CONTRAST == (int)DLC_LEFT_CONTRAST &&
                       (int)DLK_COLOR_SATURATION == (int)DLC_LEFT_SATURATION &&
                       (int)DLK_COLOR_HUE == (int)DLC_LEFT_HUE && (int)DLK_COLOR_GRAYSCALE == (int)DLC_LEFT_GRAYSCALE,
               "the same kinds");

static struct dlk_finish_batch cuda_finish_describe(const struct route *route, cu_pointer from,
                                                    const struct dlc_tensor *tensor) {
        const struct dlc_left_form *form = &route->form->form;
        uint32_t first = form->channels_first;

        return (struct dlk_finish_batch){
                .in = from,
                .out = (cu_pointer)(uintptr_t)tensor->data,
                .table = form->dtype == DLC_UINT8 ? 0 : route->form->table,
                .flips = route->has_flips ? from + form->operations_at : 0,
                .in_sample_bytes = route->sample_stride,
                .out_sample_bytes = (uint64_t)tensor->strides[0],
                .height = (uint32_t)tensor->shape[1 + first],
                .width = (uint32_t)tensor->shape[2 + first],
                .n_channels = form->n_channels,
                .element_bytes = (uint32_t)dlc_dtype_bytes(form->dtype),
                .channels_first = first,
        };
}

static cu_result cuda_finish_run(const struct device *device, cu_function kernel, const uint32_t grid[3],
                                 const uint32_t block[3], void *params) {
        void *parameters[] = { params };

        return device->driver->launch(kernel, grid[0], grid[1], grid[2], block[0], block[1], block[2], 0,
                                      device->working, parameters, NULL);
}

/* Pass after pass: each waits for the one before it, as work of one stream does. */
static cu_result launch_operations(const struct device *device, const struct route *route,
                                   const struct dlk_finish_batch *batch, uint32_t n_samples) {
        struct dlk_color_batch colors = {
                .pixels = batch->in,
                .sample_bytes = batch->in_sample_bytes,
                .record_at = route->form->form.operations_at,
                .n_samples = n_samples,
                .n_pixels = batch->height * batch->width,
                .n_channels = batch->n_channels,
        };
        cu_result result = CU_SUCCESS;

        for (uint32_t pass = 0; pass < route->n_passes && result == CU_SUCCESS; pass++) {
                struct dlk_color_launch launch;

                if (!dlk_color_launch(&colors, pass, &launch))
                        return CU_INVALID_VALUE;
                result = cuda_finish_run(device, device->color, launch.grid, launch.block, &launch.params);
        }
        return result;
}

static cu_result cuda_finish_launch(const struct device *device, const struct dlk_finish_batch *batch) {
        struct dlk_finish_launch launch;

        if (!dlk_finish_launch(batch, device->n_multiprocessors, &launch))
                return CU_INVALID_VALUE;
        return cuda_finish_run(device, device->finish[launch.idx_name], launch.grid, launch.block, &launch.params);
}

/* In one launch of each kernel, unless the batch has billions of pixels. */
cu_result finish_launch(const struct device *device, const struct route *route, cu_pointer from,
                        const struct dlc_tensor *tensor) {
        struct dlk_finish_batch batch = cuda_finish_describe(route, from, tensor);
        uint64_t n_pixels = (uint64_t)batch.height * batch.width, n_left = (uint64_t)tensor->shape[0];
        uint64_t n_most = n_pixels > 0 && n_pixels <= PIXELS_MOST ? PIXELS_MOST / n_pixels : 1;
        cu_result result = launch_operations(device, route, &batch, (uint32_t)n_left);

        while (n_left > 0 && result == CU_SUCCESS) {
                batch.n_samples = (uint32_t)(n_left < n_most ? n_left : n_most);
                result = cuda_finish_launch(device, &batch);
                batch.in += batch.n_samples * batch.in_sample_bytes;
                batch.flips += batch.flips > 0 ? batch.n_samples * batch.in_sample_bytes : 0;
                batch.out += batch.n_samples * batch.out_sample_bytes;
                n_left -= batch.n_samples;
        }
        return result;
}
