#include "client/cuda/kernels/color.h"

#define NAME(name) #name
const char *const dlk_color_name = DLK_COLOR_KERNELS(NAME);

/* So many that a thread's share of a block's beginning is small, and so few that a picture of 224 x 224 keeps several
 * multiprocessors busy. */
#define PIXELS_OF_A_BLOCK (32u * DLK_COLOR_THREADS)

static bool color_is_possible(const struct dlk_color_batch *batch, uint32_t pass) {
        uint64_t n_bytes = (uint64_t)batch->n_pixels * batch->n_channels;

        if (batch->n_samples == 0 || batch->n_pixels == 0 || batch->n_pixels > DLK_COLOR_PIXELS_MAX)
                return false;
        if ((batch->n_channels != 1 && batch->n_channels != 3) || pass > DLK_COLOR_OPERATIONS_MAX)
                return false;
        if (batch->pixels == 0 || (batch->pixels | batch->sample_bytes | batch->record_at) % 4 != 0)
                return false;
        return batch->record_at >= n_bytes && batch->sample_bytes >= sizeof(struct dlk_color_record) &&
               batch->record_at <= batch->sample_bytes - sizeof(struct dlk_color_record);
}

bool dlk_color_launch(const struct dlk_color_batch *batch, uint32_t pass, struct dlk_color_launch *ret_launch) {
        struct dlk_color_launch launch = { .grid = { 1, 1, 1 }, .block = { DLK_COLOR_THREADS, 1, 1 } };
        uint64_t n_blocks;

        if (!color_is_possible(batch, pass))
                return false;
        launch.params = (struct dlk_color){
                .pixels = (uint8_t *)(uintptr_t)batch->pixels,
                .sample_bytes = batch->sample_bytes,
                .record_at = batch->record_at,
                .n_pixels = batch->n_pixels,
                .n_channels = batch->n_channels,
                .n_chunks = (batch->n_pixels + PIXELS_OF_A_BLOCK - 1) / PIXELS_OF_A_BLOCK,
                .pass = pass,
        };
        n_blocks = (uint64_t)batch->n_samples * launch.params.n_chunks;
        if (n_blocks > INT32_MAX)
                return false;
        launch.grid[0] = (uint32_t)n_blocks;
        *ret_launch = launch;
        return true;
}
