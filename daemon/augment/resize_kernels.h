/* augment/resize_kernels.h: the inner loops of resize.c, in several forms. Private to this floor.
 *
 * A coefficient k (22 binary digits, |k| < 2^24) is kept twice: whole, and split as k = high * 2^12 + low with both
 * parts in 16 bits, so that SIMD multiplies two taps with one instruction. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define RESIZE_PRECISION 22 /* 32 bits less 8 of the pixel and 2 of headroom: the sums fit int32 */
#define RESIZE_SPLIT     12
#define RESIZE_HALF      (1 << (RESIZE_PRECISION - 1))
#define RESIZE_TAPS      4u /* taps are padded with zeros to a multiple of this */

/* The weights of one axis, for the outputs of the window, in the sequence in which they are written. */
struct resize_axis {
        uint32_t n_outputs;
        uint32_t n_taps;     /* an output, multiple of RESIZE_TAPS */
        uint32_t *first;     /* [n_outputs] first source pixel */
        uint32_t *count;     /* [n_outputs] taps that are not padding, 1 <= count <= n_taps */
        int32_t *whole;      /* [n_outputs][n_taps] */
        int16_t *split;      /* [n_outputs][n_taps / 4][4 high parts, 4 low parts] */
        size_t n_read_bytes; /* of a source row that rows() may read; what is past the row's pixels has no weight */
};

#define RESIZE_ROWS_AT_ONCE 4u
#define RESIZE_READ_SLACK   4u /* bytes: rows() reads 16 where four pixels are 12 */
#define RESIZE_OUT_SLACK    1u /* bytes behind an output row that rows() may overwrite: it stores 4 for 3 */

/* One form of the loops. */
struct resize_kernels {
        const char *name;

        /* Resamples RESIZE_ROWS_AT_ONCE rows along x. */
        void (*rows)(const struct resize_axis *axis, const uint8_t *const source[RESIZE_ROWS_AT_ONCE],
                     uint8_t *const out[RESIZE_ROWS_AT_ONCE]);

        /* Adds up the rows of one output, axis->count[idx_output] of them, weighted. Reads and writes exactly n_bytes
         * of each. */
        void (*column)(const struct resize_axis *axis, uint32_t idx_output, const uint8_t *const *rows, uint8_t *out,
                       size_t n_bytes);
};

extern const struct resize_kernels resize_kernels_scalar;

/* NULL if this machine has no AVX2. */
const struct resize_kernels *resize_kernels_avx2(void);

/* The scalar form's column(), which other forms use for rows that are narrower than their registers. */
void resize_column_scalar(const struct resize_axis *axis, uint32_t idx_output, const uint8_t *const *rows, uint8_t *out,
                          size_t n_bytes);
