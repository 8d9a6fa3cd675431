/* client/cuda/jpeg/resize.cu: a box of a picture -> the output's size, to the bits of Pillow: first along rows, then
 * along columns, and each pass is rounded to 8 bits. The weights are integers, which the host makes. */
#include "client/cuda/jpeg/cuda_jpeg.h"
#include "client/cuda/kernels/kernel.h"

#define CHANNELS  3u
#define PRECISION 22 /* binary digits of a weight */

/* One pixel of the output: pixels that are `step` bytes apart, weighted. */
DLK_FUNCTION void weigh(const struct dlk_jpeg_axis *axis, uint32_t idx, const uint8_t *from, uint64_t step,
                        uint8_t *to) {
        const int32_t *weights = axis->weights + (uint64_t)idx * axis->n_taps;
        int32_t sums[CHANNELS] = { 1 << (PRECISION - 1), 1 << (PRECISION - 1), 1 << (PRECISION - 1) };

        from += axis->firsts[idx] * step;
        for (uint32_t i = 0; i < axis->counts[idx]; i++)
                for (uint32_t c = 0; c < CHANNELS; c++)
                        sums[c] += from[i * step + c] * weights[i];
        for (uint32_t c = 0; c < CHANNELS; c++) {
                int32_t level = sums[c] >> PRECISION;

                to[c] = (uint8_t)(level < 0 ? 0 : level > 255 ? 255 : level);
        }
}

DLK_KERNEL(dlk_jpeg_across, struct dlk_jpeg, struct dlk_unshared, DLK_JPEG_THREADS) {
        const struct dlk_jpeg_picture *picture = p->pictures + DLK_BLOCK_Y;
        uint64_t n = (uint64_t)picture->x.n_outputs * picture->box_height;

        DLK_PHASE for (uint64_t i = DLK_GRID_THREAD; i < n; i += DLK_N_GRID_THREADS)
                weigh(&picture->x, (uint32_t)(i % picture->x.n_outputs),
                      picture->pixels + i / picture->x.n_outputs * picture->box_width * CHANNELS, CHANNELS,
                      picture->across + i * CHANNELS);
}

DLK_KERNEL(dlk_jpeg_down, struct dlk_jpeg, struct dlk_unshared, DLK_JPEG_THREADS) {
        const struct dlk_jpeg_picture *picture = p->pictures + DLK_BLOCK_Y;
        uint32_t width = picture->x.n_outputs;
        uint64_t n = (uint64_t)width * picture->y.n_outputs;

        DLK_PHASE for (uint64_t i = DLK_GRID_THREAD; i < n; i += DLK_N_GRID_THREADS)
                weigh(&picture->y, (uint32_t)(i / width), picture->across + i % width * CHANNELS,
                      (uint64_t)width * CHANNELS, picture->out + i * CHANNELS);
}
