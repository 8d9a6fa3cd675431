/* client/cuda/kernels/color.h: the colours of pictures changed in place, on the GPU, before they are finished.
 *
 * Each sample of a batch is followed by a record that says what is to be done to it: the daemon has made all draws. The
 * numbers are those of the daemon's own operations (daemon/augment/operations), bit for bit: each rounding of theirs is
 * done here too, and nothing is contracted to a fused multiply-add (make_images.py: -fmad=false), which would round
 * less.
 *
 * A contrast needs the mean grey of the whole picture as it is before it. So the operations of a sample are done in
 * passes, one launch after the other: pass k begins with the contrast number k of a sample, or pass 0 with its first
 * operation, and ends before the next contrast, for which it sums up the greys. A sample that has fewer contrasts is
 * left as it is by the later passes.
 *
 * Nothing that a record says leads out of its sample: kinds that are unknown do nothing, and counts are cut. */
#pragma once

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#define DLK_COLOR_OPERATIONS_MAX 8u
#define DLK_COLOR_PIXELS_MAX     (1u << 24) /* of a sample: the sum of their greys fits into 32 bits */

enum dlk_color_kind {
        DLK_COLOR_NONE,
        DLK_COLOR_BRIGHTNESS,
        DLK_COLOR_CONTRAST,
        DLK_COLOR_SATURATION,
        DLK_COLOR_HUE,
        DLK_COLOR_GRAYSCALE,
};

struct dlk_color_operation {
        uint32_t kind;
        float amount; /* of a blend, 1 is the unchanged picture; of the hue, turns of the colour wheel, -0.5 to 0.5 */
};

/* As proto/left.h has it, where the host asserts that they are the same. */
struct dlk_color_record {
        uint32_t flips; /* finish.h */
        uint32_t n_operations;
        struct dlk_color_operation operations[DLK_COLOR_OPERATIONS_MAX];
        uint32_t sums[DLK_COLOR_OPERATIONS_MAX]; /* 0 before pass 0; of pass k: its greys */
};
static_assert(sizeof(struct dlk_color_record) == 104, "the device reads what the host wrote");

/* The one parameter of the kernel. */
struct dlk_color {
        uint8_t *pixels;                  /* of the first sample: [n_pixels][n_channels] */
        uint64_t sample_bytes, record_at; /* from one to the next; from a sample to its record: multiples of 4 */
        uint32_t n_pixels, n_channels;
        uint32_t n_chunks; /* blocks of a sample */
        uint32_t pass;
};
static_assert(sizeof(struct dlk_color) == 40, "the device reads what the host wrote");

/* All kernels: X(symbol). */
#define DLK_COLOR_KERNELS(X) X(dlk_color)

#define DLK_COLOR_THREADS 256u

/* ---- what the host calls --------------------------------------------------------------------------------------- */

/* The symbol in the image. */
extern const char *const dlk_color_name;

/* A batch, with device addresses. */
struct dlk_color_batch {
        uint64_t pixels, sample_bytes, record_at;
        uint32_t n_samples, n_pixels;
        uint32_t n_channels; /* 1: grey, whose pixels count as three equal numbers; or 3 */
};

struct dlk_color_launch {
        uint32_t grid[3], block[3];
        struct dlk_color params;
};

/* How a pass over the batch is made. Returns false, with nothing written, if there is none: for a batch without samples
 * or pixels, samples of more than DLK_COLOR_PIXELS_MAX, records within pixels or beyond their sample, or pass
 * DLK_COLOR_OPERATIONS_MAX + 1 and more. Calls nothing of CUDA. */
bool dlk_color_launch(const struct dlk_color_batch *batch, uint32_t pass, struct dlk_color_launch *ret_launch);
