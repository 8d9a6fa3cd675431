/* augment/resize/neon.c: the loops for 64-bit ARM, where NEON is always available: four sums in a register, whole
 * coefficients.
 *
 * The sums equal those of the scalar form, so the result is bit-identical. Other machines compile only the last
 * lines. */
#include "daemon/augment/resize/resize_kernels.h"

#include "daemon/base/box.h"

#if defined(RESIZE_EMULATED) /* by a test that emulates the instructions */
#define NEON
#elif defined(__AARCH64EL__)
#include <arm_neon.h>
#define NEON
#endif

#if defined(NEON)
#define INLINE static inline __attribute__((always_inline))

/* Rounded sums as bytes: 16 of them. */
INLINE uint8x16_t finish(const int32x4_t sums[4]) {
        uint16x4_t words[4];

        for (int i = 0; i < 4; i++)
                words[i] = vqmovun_s32(vshrq_n_s32(sums[i], RESIZE_PRECISION));
        return vcombine_u8(vqmovn_u16(vcombine_u16(words[0], words[1])), vqmovn_u16(vcombine_u16(words[2], words[3])));
}

/* ---- along x ------------------------------------------------------------------------------------------------- */

/* For each of four neighbouring pixels: the source positions of the bytes R 0 0 0 G 0 0 0 B 0 0 0 0 0 0 0; above 15
 * means a zero. */
#define Z 255
static const uint8_t SPREAD[RESIZE_READ_TAPS][16] = {
        { 0, Z, Z, Z, 1, Z, Z, Z, 2, Z, Z, Z, Z, Z, Z, Z },
        { 3, Z, Z, Z, 4, Z, Z, Z, 5, Z, Z, Z, Z, Z, Z, Z },
        { 6, Z, Z, Z, 7, Z, Z, Z, 8, Z, Z, Z, Z, Z, Z, Z },
        { 9, Z, Z, Z, 10, Z, Z, Z, 11, Z, Z, Z, Z, Z, Z, Z },
};

/* Four pixels without the gap after each. */
static const uint8_t CLOSE_UP[16] = { 0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, Z, Z, Z, Z };

INLINE int32x4_t sum_pixel(const uint8_t *pixels, const int32_t *weights, uint32_t n_taps) {
        int32x4_t sum = vdupq_n_s32(RESIZE_HALF);

        for (uint32_t i = 0; i < n_taps; i += RESIZE_READ_TAPS, pixels += RESIZE_READ_TAPS * PIXEL_BYTES) {
                uint8x16_t bytes = vld1q_u8(pixels);

                for (uint32_t k = 0; k < RESIZE_READ_TAPS && i + k < n_taps; k++) {
                        uint8x16_t pixel = vqtbl1q_u8(bytes, vld1q_u8(SPREAD[k]));

                        sum = vmlaq_n_s32(sum, vreinterpretq_s32_u8(pixel), weights[i + k]);
                }
        }
        return sum;
}

/* Writes 16 bytes of which 12 are used: the next pixels overwrite the rest, or the rest is in the slack. */
INLINE void row_of(const struct resize_axis *axis, const uint8_t *source, uint8_t *out, uint32_t n_taps) {
        for (uint32_t x = 0; x < axis->n_outputs; x += RESIZE_OUTPUTS_AT_ONCE) {
                const int32_t *weights = axis->whole + (size_t)x * n_taps;
                const uint32_t *first = axis->first + x;
                int32x4_t sums[RESIZE_OUTPUTS_AT_ONCE];

                for (uint32_t i = 0; i < RESIZE_OUTPUTS_AT_ONCE; i++)
                        sums[i] = sum_pixel(source + (size_t)first[i] * PIXEL_BYTES, weights + (size_t)i * n_taps,
                                            n_taps);
                vst1q_u8(out + (size_t)x * PIXEL_BYTES, vqtbl1q_u8(finish(sums), vld1q_u8(CLOSE_UP)));
        }
}

static void neon_rows(const struct resize_axis *axis, const uint8_t *const source[RESIZE_ROWS_AT_ONCE],
                      uint8_t *const out[RESIZE_ROWS_AT_ONCE]) {
        for (uint32_t i = 0; i < RESIZE_ROWS_AT_ONCE; i++) {
                if (axis->n_taps == 2)
                        row_of(axis, source[i], out[i], 2);
                else if (axis->n_taps == 4)
                        row_of(axis, source[i], out[i], 4);
                else
                        row_of(axis, source[i], out[i], axis->n_taps);
        }
}

/* ---- along y ------------------------------------------------------------------------------------------------- */

#define BLOCK 16u /* columns at once */

INLINE int32x4_t add_four(int32x4_t sum, uint16x4_t pixels, int32_t weight) {
        return vmlaq_n_s32(sum, vreinterpretq_s32_u32(vmovl_u16(pixels)), weight);
}

INLINE void column_block(const int32_t *weights, uint32_t count, const uint8_t *const *rows, size_t x, uint8_t *out) {
        const int32x4_t half = vdupq_n_s32(RESIZE_HALF);
        int32x4_t sums[4] = { half, half, half, half };

        for (uint32_t i = 0; i < count; i++) {
                uint8x16_t bytes = vld1q_u8(rows[i] + x);
                uint16x8_t left = vmovl_u8(vget_low_u8(bytes)), right = vmovl_u8(vget_high_u8(bytes));

                sums[0] = add_four(sums[0], vget_low_u16(left), weights[i]);
                sums[1] = add_four(sums[1], vget_high_u16(left), weights[i]);
                sums[2] = add_four(sums[2], vget_low_u16(right), weights[i]);
                sums[3] = add_four(sums[3], vget_high_u16(right), weights[i]);
        }
        vst1q_u8(out + x, finish(sums));
}

static void neon_column(const struct resize_axis *axis, uint32_t idx_output, const uint8_t *const *rows, uint8_t *out,
                        size_t n_bytes) {
        const int32_t *weights = axis->whole + (size_t)idx_output * axis->n_taps;
        uint32_t count = axis->count[idx_output];

        if (n_bytes < BLOCK) {
                resize_column_scalar(axis, idx_output, rows, out, n_bytes);
                return;
        }
        for (size_t x = 0; x + BLOCK <= n_bytes; x += BLOCK)
                column_block(weights, count, rows, x, out);
        if (n_bytes % BLOCK) /* again for the last block, overlapping: the same values, and no byte past the row */
                column_block(weights, count, rows, n_bytes - BLOCK, out);
}

static const struct resize_kernels KERNELS = { .rows = neon_rows, .column = neon_column };

const struct resize_kernels *resize_kernels_neon(void) {
        return &KERNELS;
}

#else

const struct resize_kernels *resize_kernels_neon(void) {
        return NULL;
}

#endif
