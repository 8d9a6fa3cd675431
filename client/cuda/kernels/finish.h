/* client/cuda/kernels/finish.h: the end of the pipeline on the GPU: from uint8 pixels to the wanted type and layout.
 *
 * Pictures cross the link as they were decoded, [n, height, width, channels] of uint8, and become a tensor there. Any
 * conversion of 256 levels is a table for each channel, and the daemon makes the table (augment/conversion.h): the
 * kernels look up and move bits. So they have no arithmetic that could round otherwise than the CPU's.
 *
 * dlk_finish_launch() chooses among three ways:
 *
 *   planes   channels first, or one channel. A thread makes 16 bytes of each channel: 4, 8 or 16 pixels.
 *   flat     channels last. A thread makes 16 bytes of the output.
 *   any      whatever is not aligned as those need it. A thread makes whole pixels, one element at a time. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

/* The one parameter of all these kernels. A unit is what a thread makes at a time. */
struct dlk_finish {
        const uint8_t *in; /* [n_samples][n_pixels][n_channels] */
        uint8_t *out;
        const uint8_t
                *table; /* [n_channels][256] elements of the output; NULL: elements of one byte stay as they are */
        const uint8_t *flips; /* of sample i, the byte i * in_sample_bytes: DLK_FINISH_MIRRORED, ...; NULL: none is */
        uint64_t in_sample_bytes, out_sample_bytes, out_channel_bytes; /* from one to the next */
        uint32_t out_pixel_bytes;
        uint32_t n_pixels, width; /* of a sample */
        uint32_t n_units, n_sample_units;
        uint32_t zero; /* so that no byte is left to chance */
};
static_assert(sizeof(struct dlk_finish) == 80, "the device reads what the host wrote");

/* All kernels: X(symbol, way, channels, bytes of an element). */
#define DLK_FINISH_KERNELS(X)                                                                                          \
        X(dlk_finish_planes_1x1, planes, 1, 1)                                                                         \
        X(dlk_finish_planes_1x2, planes, 1, 2)                                                                         \
        X(dlk_finish_planes_1x4, planes, 1, 4)                                                                         \
        X(dlk_finish_planes_3x1, planes, 3, 1)                                                                         \
        X(dlk_finish_planes_3x2, planes, 3, 2)                                                                         \
        X(dlk_finish_planes_3x4, planes, 3, 4)                                                                         \
        X(dlk_finish_flat_3x1, flat, 3, 1)                                                                             \
        X(dlk_finish_flat_3x2, flat, 3, 2)                                                                             \
        X(dlk_finish_flat_3x4, flat, 3, 4)                                                                             \
        X(dlk_finish_any_1x1, any, 1, 1)                                                                               \
        X(dlk_finish_any_1x2, any, 1, 2)                                                                               \
        X(dlk_finish_any_1x4, any, 1, 4)                                                                               \
        X(dlk_finish_any_3x1, any, 3, 1)                                                                               \
        X(dlk_finish_any_3x2, any, 3, 2)                                                                               \
        X(dlk_finish_any_3x4, any, 3, 4)

#define DLK_FINISH_MIRRORED    1u /* left to right */
#define DLK_FINISH_UPSIDE_DOWN 2u

#define DLK_FINISH_THREADS 256u
/* Bytes that a thread stores at once, and by which outputs of the ways "planes" and "flat" are aligned. */
#define DLK_FINISH_STORE 16u
/* Pixels that a thread of "any" reads before it writes them. */
#define DLK_FINISH_AHEAD 4u

/* ---- what the host calls --------------------------------------------------------------------------------------- */

/* The symbols in the image. */
extern const char *const dlk_finish_names[];
extern const uint32_t dlk_n_finish_names;

/* A batch, with device addresses. */
struct dlk_finish_batch {
        /* table and flips may be 0, as in struct dlk_finish. With flips, planes whose rows are not
         * multiples of DLK_FINISH_STORE bytes are made the slowest way. */
        uint64_t in, out, table, flips;
        uint64_t in_sample_bytes;  /* at least height * width * n_channels */
        uint64_t out_sample_bytes; /* 0: samples, and their planes, lie one after the other */
        uint32_t n_samples, height, width;
        uint32_t n_channels;    /* 1 or 3 */
        uint32_t element_bytes; /* of the output: 1, 2 or 4; `out` and out_sample_bytes are multiples of it, as is
                                   `table` */
        bool channels_first;    /* [n, channels, height, width] instead of [n, height, width, channels] */
};

struct dlk_finish_launch {
        uint32_t idx_name; /* in dlk_finish_names */
        uint32_t grid[3], block[3];
        struct dlk_finish params;
};

/* How a GPU with that number of multiprocessors makes the batch. Returns false, with nothing written, if no kernel can:
 * for a batch without samples or pixels, one of 2^31 pixels and more, a sample of 2^31 elements and more, or another
 * field that is not as said above. Calls nothing of CUDA. */
bool dlk_finish_launch(const struct dlk_finish_batch *batch, uint32_t n_multiprocessors,
                       struct dlk_finish_launch *ret_launch);
