/* augment/resize/resize_kernels.h: the inner loops of resample.c, in several forms. Private to this floor.
 *
 * A coefficient k (22 binary digits, |k| < 2^24) is kept twice: whole, and split as k = high * 2^15 + low with -2^14 <=
 * low < 2^14, so that SIMD multiplies two taps with one instruction. The split sums come together in 16 bits:
 *
 *      (sum(pixel * k) + 2^21) >> 22  =  ((sum(pixel * high) + (sum(pixel * low) >> 15)) + 64) >> 7
 *
 * exactly, because the bits that the first shift drops lie below those that the second one drops. The sum in the middle
 * is in units of 1/128: even if it is saturated to 16 bits, it rounds to a value that is clipped to the same result. As
 * |low| <= |k|, none of these sums is larger than that of the whole coefficients, which fits 32 bits. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define RESIZE_PRECISION 22 /* 32 bits less 8 of the pixel and 2 of headroom: the sums fit int32 */
#define RESIZE_ONE       (1 << RESIZE_PRECISION)
#define RESIZE_HALF      (1 << (RESIZE_PRECISION - 1))
#define RESIZE_SPLIT     15
#define RESIZE_ROUND     256 /* pmulhrsw by it is (x + 64) >> 7 */

/* The weights of one axis, for the outputs of the window, in the order in which they are written. */
struct resize_axis {
        uint32_t n_outputs;  /* the arrays are padded to a multiple of RESIZE_OUTPUTS_AT_ONCE: rows() writes more */
        uint32_t n_taps;     /* of an output, an even number: missing taps have weight 0 */
        uint32_t *first;     /* [n_outputs] first source pixel; increasing, or decreasing if the picture is mirrored */
        uint32_t *count;     /* [n_outputs] taps that are not padding, 1 <= count <= n_taps */
        int32_t *whole;      /* [n_outputs][n_taps] */
        int16_t *split;      /* [n_outputs][n_taps / 2][2 high parts, 2 low parts] */
        size_t n_read_bytes; /* bytes of a source row that rows() may read; those past the row's pixels have weight 0 */
};

#define RESIZE_ROWS_AT_ONCE    4u
#define RESIZE_OUTPUTS_AT_ONCE 4u
#define RESIZE_READ_TAPS       4u /* rows() reads taps in groups of four ... */
#define RESIZE_READ_SLACK      4u /* ... and 16 bytes where four pixels are 12 */
#define RESIZE_OUT_SLACK                                                                                               \
        16u /* bytes after an output row that rows() may overwrite: up to three pixels and four bytes */

/* One form of the loops. */
struct resize_kernels {
        /* Resamples RESIZE_ROWS_AT_ONCE rows along x. Some may be the same row, in both arrays. */
        void (*rows)(const struct resize_axis *axis, const uint8_t *const source[RESIZE_ROWS_AT_ONCE],
                     uint8_t *const out[RESIZE_ROWS_AT_ONCE]);

        /* Makes one output row: the weighted sum of axis->count[idx_output] rows. Reads and writes exactly n_bytes of
         * each. */
        void (*column)(const struct resize_axis *axis, uint32_t idx_output, const uint8_t *const *rows, uint8_t *out,
                       size_t n_bytes);
};

extern const struct resize_kernels resize_kernels_scalar;

/* NULL if this machine has no such instructions. */
const struct resize_kernels *resize_kernels_avx2(void);
const struct resize_kernels *resize_kernels_neon(void);

/* The scalar form's column(), which other forms use for rows that are narrower than their registers. */
void resize_column_scalar(const struct resize_axis *axis, uint32_t idx_output, const uint8_t *const *rows, uint8_t *out,
                          size_t n_bytes);
