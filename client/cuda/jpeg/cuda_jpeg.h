/* client/cuda/jpeg/cuda_jpeg.h: JPEGs in rows (proto/jpeg/row_index.h) decoded by kernels, to the bits of daemon/decode and
 * daemon/augment/resize. A trial: kernels and their tests on the CPU; no library launches them yet.
 *
 * Of each picture, one after the other:
 *
 *   dlk_jpeg_entropy   bytes -> coefficients. A block for each picture, a thread for each row of MCUs.
 *   dlk_jpeg_blocks    coefficients -> planes of samples. A thread for each block of 8 x 8.
 *   dlk_jpeg_colours   planes -> the RGB pixels of a box. A thread for each pixel.
 *   dlk_jpeg_across    resizes along rows. A thread for each pixel of the output's width and the box's height.
 *   dlk_jpeg_down      resizes along columns. A thread for each pixel of the output.
 *
 * All are launched for many pictures at once: DLK_BLOCK_Y is the picture, and what is said above of its pieces goes
 * round if there are more of them than threads.
 *
 * The host checks each file (dlp_jpeg_read()) and makes the struct. The bytes may be other ones by the time they are
 * decoded: whatever they are, no kernel reads beyond a row's end, none writes outside of the picture's memory, and each
 * ends after as many steps as the picture has coefficients. */
#pragma once

#include <assert.h>
#include <stdint.h>

#include "proto/jpeg/jpeg_rows.h"

#define DLK_JPEG_THREADS 128u

/* Memory that it takes besides the file, for each block of 8 x 8, in bytes: coefficients, and samples. */
#define DLK_JPEG_COEFFICIENT_BYTES 128u
#define DLK_JPEG_SAMPLE_BYTES      64u

/* What became of a picture's rows. The largest counts. */
enum dlk_jpeg_status {
        DLK_JPEG_GOOD,
        DLK_JPEG_LONG,  /* a row has bytes after its last code */
        DLK_JPEG_SHORT, /* a row ends within a code */
        DLK_JPEG_WRONG, /* a code that is none, or more coefficients than a block has */
};

/* Weights of one axis, as daemon/augment/resize makes them: 22 binary digits, and sums that fit 32 bits. */
struct dlk_jpeg_axis {
        const uint32_t *firsts, *counts; /* [n_outputs] of source pixels, within the box */
        const int32_t *weights;          /* [n_outputs][n_taps] */
        uint32_t n_outputs, n_taps;
};

struct dlk_jpeg_picture {
        const uint8_t *scan;     /* the file from its scan on */
        const uint32_t *offsets; /* [n_rows + 1] of rows, in the scan; no more than it has bytes */
        int16_t *coefficients;   /* [n_blocks][64], all 0 at first; row by row, components one after the other */
        uint8_t *samples;        /* [n_blocks * 64]: a plane for each component */
        uint8_t *pixels;         /* [box_height][box_width][3] */
        uint8_t *across;         /* [box_height][x.n_outputs][3] */
        uint8_t *out;            /* [y.n_outputs][x.n_outputs][3] */
        struct dlk_jpeg_axis x, y;
        uint32_t box_x, box_y, box_width, box_height; /* of the picture, within it */
        uint32_t n_blocks;                            /* of all components */
        uint32_t firsts[DLP_JPEG_COMPONENTS];         /* of each component, its first block */
        struct dlp_jpeg jpeg;                         /* `offsets` there is the host's */
};

struct dlk_jpeg {
        const struct dlk_jpeg_picture *pictures;
        uint32_t *statuses; /* of each picture: enum dlk_jpeg_status, 0 at first */
};
static_assert(sizeof(struct dlk_jpeg) == 16, "the device reads what the host wrote");
