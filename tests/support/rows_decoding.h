/* tests/support/rows_decoding.h: the kernels of client/cuda/jpeg as functions of the CPU, run for one picture, as a
 * launcher runs them on a GPU. Each array has exactly the size that it needs, so that a sanitizer sees what goes
 * beyond. To be included by one source of a program: it is that source that compiles the kernels. */
#pragma once

#include <stdlib.h>
#include <string.h>

#include "client/cuda/jpeg/entropy.cu"
#include "client/cuda/jpeg/pixels.cu"
#include "client/cuda/jpeg/resize.cu"
#include "daemon/augment/resize/axis.h"
#include "daemon/base/box.h"

_Thread_local bool dlk_cpu_is_backwards;

struct rows_decoding {
        struct dlk_jpeg_picture picture;
        uint8_t *file;
        uint32_t *offsets;
        uint32_t status;
        struct axis x, y;
};

static inline void rows_decoding_free(struct rows_decoding *decoding) {
        struct dlk_jpeg_picture *picture = &decoding->picture;

        free(decoding->file);
        free(decoding->offsets);
        free(picture->coefficients);
        free(picture->samples);
        free(picture->pixels);
        free(picture->across);
        free(picture->out);
        axis_fini(&decoding->x);
        axis_fini(&decoding->y);
        *decoding = (struct rows_decoding){};
}

/* Reads the file, of which it keeps a copy. What dlp_jpeg_read() says of it. */
static inline int rows_decoding_open(struct rows_decoding *decoding, const uint8_t *bytes, size_t n_bytes) {
        struct dlk_jpeg_picture *picture = &decoding->picture;
        struct dlp_jpeg *jpeg = &picture->jpeg;
        int r;

        *decoding = (struct rows_decoding){ .file = malloc(n_bytes ? n_bytes : 1) };
        memcpy(decoding->file, bytes, n_bytes);
        r = dlp_jpeg_read(decoding->file, n_bytes, jpeg, NULL);
        if (r < 0) {
                rows_decoding_free(decoding);
                return r;
        }
        picture->scan = decoding->file + jpeg->scan_at;
        decoding->offsets = malloc((jpeg->n_rows + 1) * sizeof(*decoding->offsets));
        for (uint32_t row = 0; row <= jpeg->n_rows; row++)
                decoding->offsets[row] = dlp_jpeg_offset(jpeg, row);
        picture->offsets = decoding->offsets;
        for (uint32_t c = 0; c < jpeg->n_components; c++) {
                picture->firsts[c] = picture->n_blocks;
                picture->n_blocks += jpeg->components[c].n_blocks_x * jpeg->components[c].n_blocks_y;
        }
        return 0;
}

/* The pixels of a box, in picture->pixels. Returns the status. */
static inline enum dlk_jpeg_status rows_decoding_run(struct rows_decoding *decoding, struct box box) {
        struct dlk_jpeg_picture *picture = &decoding->picture;
        struct dlk_jpeg params = { picture, &decoding->status };
        const uint32_t grid[3] = { 3, 1, 1 }, block[3] = { 32, 1, 1 };

        picture->coefficients = calloc(picture->n_blocks, DLK_JPEG_COEFFICIENT_BYTES);
        picture->samples = malloc((size_t)picture->n_blocks * DLK_JPEG_SAMPLE_BYTES);
        picture->pixels = malloc((size_t)box.width * box.height * PIXEL_BYTES);
        picture->box_x = box.x;
        picture->box_y = box.y;
        picture->box_width = box.width;
        picture->box_height = box.height;
        dlk_jpeg_entropy_run(&params, grid, block);
        dlk_jpeg_blocks_run(&params, grid, block);
        dlk_jpeg_colours_run(&params, grid, block);
        return (enum dlk_jpeg_status)decoding->status;
}

static inline struct dlk_jpeg_axis axis_of(struct axis *axis, uint32_t n_source, uint32_t n_outputs,
                                           enum resize_filter filter) {
        struct axis_key key = { .n_source = n_source, .n_outputs = n_outputs, .window_n = n_outputs, .filter = filter };

        if (axis_prepare(axis, &key) < 0)
                abort();
        return (struct dlk_jpeg_axis){ axis->weights.first, axis->weights.count, axis->weights.whole, n_outputs,
                                       axis->weights.n_taps };
}

/* The box, resized, in picture->out. */
static inline void rows_decoding_resize(struct rows_decoding *decoding, uint32_t width, uint32_t height,
                                        enum resize_filter filter) {
        struct dlk_jpeg_picture *picture = &decoding->picture;
        struct dlk_jpeg params = { picture, &decoding->status };
        const uint32_t grid[3] = { 2, 1, 1 }, block[3] = { 64, 1, 1 };

        picture->x = axis_of(&decoding->x, picture->box_width, width, filter);
        picture->y = axis_of(&decoding->y, picture->box_height, height, filter);
        picture->across = malloc((size_t)width * picture->box_height * PIXEL_BYTES);
        picture->out = malloc((size_t)width * height * PIXEL_BYTES);
        dlk_jpeg_across_run(&params, grid, block);
        dlk_jpeg_down_run(&params, grid, block);
}
